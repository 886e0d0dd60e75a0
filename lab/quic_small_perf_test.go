//go:build linux && perf

package lab

import (
	"fmt"
	"testing"
)

// leastSmallRate is where there is nothing to batch: no worse, but for chance.
const leastSmallRate = 0.95

// TestPerfQUICSmall holds "requests of 64 bytes over a dgram.Conn are at least 0.95 of those over a net.UDPConn, with one
// connection and with 64".
func TestPerfQUICSmall(t *testing.T) {
	lab := newQUICLab(t)
	for _, conns := range []int{1, 64} {
		t.Run(fmt.Sprint(conns), func(t *testing.T) {
			lab := lab.in(t)
			attempts(t, func() string {
				got := compareQUIC(t, unit{"requests/s", "request", 1}, func(kind string) figures {
					return lab.measure(kind, "small", conns)
				})
				if got.rate < leastSmallRate {
					return fmt.Sprintf("%d connections: %.2f of net's requests, less than %.2f", conns, got.rate, leastSmallRate)
				}
				return ""
			})
		})
	}
}
