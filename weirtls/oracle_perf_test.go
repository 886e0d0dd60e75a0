//go:build perf

package weirtls

import "testing"

const longOracles = true

// TestSoakOracles has the oracles asked with all cuts, on both kernels, and for thousands of damages.
func TestSoakOracles(t *testing.T) {
	t.Run("replay", func(t *testing.T) { replays(t, 1000) })
	t.Run("scripts", TestOracle)
	t.Run("records", TestOracleRecords)
	t.Run("handshakes", TestHandshakeOracle)
}
