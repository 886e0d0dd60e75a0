//go:build perf && unix

package weirtls

import (
	"runtime/debug"
	"syscall"
	"testing"
	"time"
)

// TestPerfNoSpin holds "a peer that stalls costs memory and nothing else" on the machine's kernel: the whole process
// takes less than a fiftieth of a processor in two seconds.
func TestPerfNoSpin(t *testing.T) {
	for _, x := range stalls() {
		for _, blocking := range []bool{false, true} {
			name := x.name
			if blocking {
				name += ", blocking"
			}
			t.Run(name, func(t *testing.T) {
				s := newScene(t, nil)
				var used time.Duration
				var turns uint64
				var began time.Time
				debug.FreeOSMemory() // what was before is not the stall's
				x.sample(t, &stalled{scene: *s, blocking: blocking},
					func() { used, began, turns = processorTime(t), time.Now(), s.l.Turn() },
					func() { used, turns = processorTime(t)-used, s.l.Turn()-turns })
				took := time.Since(began)
				t.Logf("%v of the processor in %v, %d turns", used, took, turns)
				if used > took/50 {
					t.Errorf("%v of the processor in %v", used, took)
				}
			})
		}
	}
}

// processorTime is what the process has used.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
