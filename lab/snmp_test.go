//go:build linux && perf

package lab

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// rcvbufErrors is how many datagrams the kernel has dropped for want of room in any socket's buffer (proc(5), net/snmp).
func rcvbufErrors(t *testing.T) float64 {
	t.Helper()
	text, err := os.ReadFile("/proc/net/snmp")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0 || fields[0] != "Udp:":
		case names == nil:
			names = fields
		default:
			if i := slices.Index(names, "RcvbufErrors"); i > 0 && i < len(fields) {
				n, err := strconv.ParseFloat(fields[i], 64)
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
		}
	}
	t.Fatal("/proc/net/snmp has no RcvbufErrors")
	return 0
}
