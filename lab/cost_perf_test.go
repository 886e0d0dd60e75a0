//go:build linux && perf

package lab

import (
	"fmt"
	"slices"
	"strings"
	"testing"
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

// compare has servers do the same in turns, and returns the medians of what the first of them cost to what each did in
// the same turn. The last is the first's program again, to show what chance does.
func compare(t *testing.T, unit string, names []string, cost func(i int) float64) (ratios []float64) {
	t.Helper()
	costs, all := make([][]float64, len(names)), make([][]float64, len(names))
	for range rounds() {
		for i := range names {
			costs[i] = append(costs[i], cost(i))
			all[i] = append(all[i], last(costs[0])/last(costs[i]))
		}
	}
	var text strings.Builder
	for i, name := range names {
		ratios = append(ratios, median(all[i]))
		fmt.Fprintf(&text, "\n%-12s %8.0f", name, median(costs[i]))
		if i > 0 {
			fmt.Fprintf(&text, "  %s/%s %.2f (%.2f to %.2f)", names[0], name, ratios[i], slices.Min(all[i]), slices.Max(all[i]))
		}
	}
	t.Logf("ns of CPU %s:%s", unit, text.String())
	return ratios
}

// rounds is what a median is of; with -short, which shows that the tests run and no more, one.
func rounds() int {
	if testing.Short() {
		return 1
	}
	return pairs
}

// attempts fails the test if a measurement misses its line each time.
func attempts(t *testing.T, measure func() (missed string)) {
	t.Helper()
	var missed string
	for range tries {
		if missed = measure(); missed == "" {
			return
		}
		t.Log("missed: " + missed)
	}
	t.Error(missed)
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}
