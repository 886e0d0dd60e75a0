//go:build linux && perf

package lab

import (
	"math"
	"os"
	"slices"
	"testing"
)

// layoutEnv says where the ends of a connection are: "both" in one process, or "split". Else what is steadier decides.
const layoutEnv = "WEIR_LAB_LAYOUT"

func newQUICLab(t *testing.T) quicLab {
	t.Helper()
	l := quicLab{t: t, dir: build(t)}
	switch layout := os.Getenv(layoutEnv); {
	case layout == "both":
	case layout == "split", layout == "" && testing.Short():
		l.split = true
	case layout == "":
		l.split = l.steadierSplit()
	default:
		t.Fatalf("%s=%s: not both or split", layoutEnv, layout)
	}
	return l
}

// steadierSplit compares how far runs that should give the same are apart.
func (l quicLab) steadierSplit() bool {
	l.t.Helper()
	const runs = 6
	noise := func(split bool) float64 {
		l.split = split
		var rates []float64
		for range runs {
			rates = append(rates, l.measure(netKind, "down", 1).rate)
		}
		return math.Log(slices.Max(rates) / slices.Min(rates))
	}
	both, split := noise(false), noise(true)
	l.t.Logf("the same, %d times: %.0f %% apart with both ends in one process, %.0f %% with two processes", runs, 100*both, 100*split)
	return split < both
}
