//go:build linux && perf

package lab

import (
	"slices"
	"time"
)

// cost is the server's processor time, in nanoseconds, for one of what the load counts.
func cost(server, load *child) float64 {
	load.t.Helper()
	time.Sleep(200 * time.Millisecond)
	cpu, n := server.ask("")[0], load.ask("")[0]
	time.Sleep(600 * time.Millisecond)
	cpu, n = server.ask("")[0]-cpu, load.ask("")[0]-n
	if n == 0 {
		load.t.Fatalf("%v stands still", load.cmd)
	}
	return cpu / n
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}
