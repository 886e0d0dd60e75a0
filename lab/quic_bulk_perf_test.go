//go:build linux && perf

package lab

import (
	"fmt"
	"testing"
)

// mostBulkCost is what a MB may take of the processor time that it takes over net.UDPConn.
const mostBulkCost = 0.80

// TestPerfQUICBulk holds "quic-go over a dgram.Conn moves 1.4 times the bytes that it moves over a net.UDPConn with one
// connection, 1.25 times with 16, and takes at most 0.8 of the processor time a MB", both ends together. With both ends in
// one process one connection does not keep two processors busy, and gains less: docs/adr/0019 and 0020 say why.
func TestPerfQUICBulk(t *testing.T) {
	lab := quicLab{t: t, dir: build(t)}
	for _, c := range []struct {
		split bool
		conns int
		least float64
	}{{true, 1, 1.4}, {true, 16, 1.25}, {false, 1, 1.25}, {false, 16, 1.25}} {
		t.Run(fmt.Sprintf("split %v, %d", c.split, c.conns), func(t *testing.T) {
			lab := lab.in(t)
			lab.split = c.split
			attempts(t, func() string {
				got := compareQUIC(t, unit{"MB/s", "MB", 1e6}, func(kind string) figures {
					return lab.measure(kind, "down", c.conns)
				})
				if got.rate < c.least || got.cost > mostBulkCost {
					return fmt.Sprintf("%.2f of net's rate, less than %.2f, or %.2f of its processor time, more than %.2f",
						got.rate, c.least, got.cost, mostBulkCost)
				}
				return ""
			})
		})
	}
}
