//go:build linux && perf

package lab

import (
	"fmt"
	"testing"
)

// TestPerfTLSBulk holds "CPU per MB at most that of tls.Conn over net.TCPConn", both ways, in writes of 16 KiB.
func TestPerfTLSBulk(t *testing.T) {
	names := []string{"weirtlsecho", "stdtlsecho", "weirtlsecho"}
	lab := newTLSLab(t)
	for _, c := range []struct{ do, load string }{{"pour", "down"}, {"sink", "up"}} {
		for _, conns := range []int{1, 16} {
			t.Run(fmt.Sprint(c.load, " ", conns), func(t *testing.T) {
				lab := lab.in(t)
				attempts(t, func() string {
					var servers []*child
					for _, name := range names {
						s := lab.server(-1, name, "-do", c.do)
						defer s.stop()
						servers = append(servers, s)
					}
					unit := fmt.Sprintf("a MB %s, %d connections", c.load, conns)
					ratios := compare(t, unit, names, func(i int) float64 {
						return 1e6 * lab.loadCost(servers[i], c.load, conns)
					})
					if ratios[1] > 1 {
						return fmt.Sprintf("weirtls takes %.2f of crypto/tls's processor time over net", ratios[1])
					}
					return ""
				})
			})
		}
	}
}
