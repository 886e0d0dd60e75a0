//go:build perf

package weirtest

import "testing"

const soaking = true

// TestSoakSweeps has the sweeps try each errno of each call, and also have them last on the machine's kernel.
func TestSoakSweeps(t *testing.T) {
	t.Run("udp", TestSweepEcho)
	t.Run("echo", TestSweepTCPEcho)
	t.Run("file", TestSweepFile)
	t.Run("pass", TestSweepUnixPass)
	t.Run("unixgram", TestSweepUnixgram)
	t.Run("watch", TestSweepWatch)
}
