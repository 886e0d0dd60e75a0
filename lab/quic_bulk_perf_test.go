//go:build linux && perf

package lab

import (
	"fmt"
	"testing"
)

// mostBulkCost is what a MB may take of the processor time that it takes over net.UDPConn.
const mostBulkCost = 0.80

// TestPerfQUICBulk holds "quic-go over a dgram.Conn moves 1.4 times the bytes that it moves over a net.UDPConn with one
// connection, 1.25 times with 16, and takes at most 0.8 of the processor time a MB", both ends together.
func TestPerfQUICBulk(t *testing.T) {
	lab := newQUICLab(t)
	for _, c := range []struct {
		conns int
		least float64
	}{{1, 1.4}, {16, 1.25}} {
		t.Run(fmt.Sprint(c.conns), func(t *testing.T) {
			lab := lab.in(t)
			attempts(t, func() string {
				got := compareQUIC(t, unit{"MB/s", "MB", 1e6}, func(kind string) figures {
					return lab.measure(kind, "down", c.conns)
				})
				if got.rate < c.least || got.cost > mostBulkCost {
					return fmt.Sprintf("%d connections: %.2f of net's rate, less than %.2f, or %.2f of its processor time, more than %.2f",
						c.conns, got.rate, c.least, got.cost, mostBulkCost)
				}
				return ""
			})
		})
	}
}
