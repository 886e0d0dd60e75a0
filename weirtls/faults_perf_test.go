//go:build perf

package weirtls

import "testing"

// TestSoakFaults has each call fail with each errno, once and from then on, and sessions cut off at each byte.
func TestSoakFaults(t *testing.T) {
	t.Run("sweep", TestSweepTLSEcho)
	t.Run("truncation", TestTruncation)
}
