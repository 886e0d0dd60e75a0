//go:build perf

package weirtest

import "testing"

const soaking = true

// TestSoakSweeps has the sweeps of streams try each errno of each call.
func TestSoakSweeps(t *testing.T) {
	t.Run("echo", TestSweepTCPEcho)
	t.Run("file", TestSweepFile)
	t.Run("pass", TestSweepUnixPass)
	t.Run("unixgram", TestSweepUnixgram)
	t.Run("watch", TestSweepWatch)
}
