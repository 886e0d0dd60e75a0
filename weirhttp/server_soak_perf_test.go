//go:build perf

package weirhttp

import "testing"

// The same as TestShutdownDelivers, a thousand times at once; fewer with the race detector, where a thousand connections
// are no longer a matter of seconds.
func TestSoakShutdown(t *testing.T) {
	if raceDetector {
		shutdownDelivers(t, 200)
		return
	}
	shutdownDelivers(t, 1000)
}
