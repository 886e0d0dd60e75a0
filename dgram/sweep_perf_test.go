//go:build perf && linux

package dgram

import (
	"fmt"
	"testing"
)

// TestSoakSweepQUIC is the whole one: every call of a transfer, with each errno.
func TestSoakSweepQUIC(t *testing.T) {
	for _, lasting := range []bool{false, true} {
		t.Run(fmt.Sprintf("lasting %v", lasting), func(t *testing.T) {
			sweepQUIC(t, quicSweep{lasting: lasting})
		})
	}
}
