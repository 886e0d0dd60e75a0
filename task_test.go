package weir

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weirnet/weir/internal/memsys"
)

// "Work has the loop call step again and again while it returns true, as one source with its share of time":
// beside a busy socket, and beside tasks whose steps cost more or less, it has the same time as they.
func TestTaskShare(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		socket := openEndless(t, l, Share(), 20*time.Microsecond)
		costs := []time.Duration{5 * time.Microsecond, 30 * time.Microsecond, 700 * time.Microsecond, 2 * time.Millisecond}
		times := make([]time.Duration, len(costs))
		for i, cost := range costs {
			l.Work(func() bool {
				time.Sleep(cost)
				times[i] += cost
				for j, other := range costs {
					if d, limit := times[i]-times[j], minShare+cost+other; d > limit {
						t.Errorf("steps of %v have %v more than those of %v, want at most %v", cost, d, other, limit)
					}
				}
				if d, limit := (times[i] - socket.time).Abs(), minShare+cost+20*time.Microsecond; d > limit {
					t.Errorf("steps of %v and the socket are %v apart, want at most %v", cost, d, limit)
				}
				return !t.Failed()
			})
		}
		runFor(t, l, 500*time.Millisecond)
		if socket.time < 90*time.Millisecond {
			t.Errorf("the socket had %v of 500 ms, want a fifth", socket.time)
		}
	})
}

// "Expired tells one with much to do when its credit is used up": a task that looks at it holds the loop no
// longer than one that has small steps.
func TestTaskExpired(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		socket := openEndless(t, l, Share(), minShare)
		left := 10_000
		var longest time.Duration
		l.Work(func() bool {
			began := time.Now()
			for left > 0 && !l.Expired() {
				time.Sleep(time.Microsecond)
				left--
			}
			longest = max(longest, time.Since(began))
			if left == 0 {
				_ = l.Close()
			}
			return left > 0
		})
		run(t, l)
		if longest != minShare {
			t.Errorf("a step took %v, want %v", longest, minShare)
		}
		if d := (socket.time - 10*time.Millisecond).Abs(); d > 2*minShare {
			t.Errorf("the socket had %v while the task had 10 ms", socket.time)
		}
	})
}

func TestTaskAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		var log []string
		note := func(what string) { log = append(log, fmt.Sprint(what, " ", l.Turn())) }

		// Rests until it is called for; to call twice is to call once.
		rests := l.Work(func() bool { note("rests"); return false })
		// Calls for itself: its false does not count.
		steps := 0
		var itself *Task
		itself = l.Work(func() bool {
			time.Sleep(minShare)
			if note("itself"); steps < 2 {
				steps++
				itself.Again()
			}
			return false
		})
		l.AfterFunc(time.Second, func() { rests.Again(); rests.Again() })
		l.AfterFunc(2*time.Second, func() { _ = l.Close() })
		run(t, l)
		wantOrder(t, log, []string{"rests 1", "itself 1", "itself 2", "itself 3", "rests 5"})
	})
}

// "Close ends the task; step is not called any more."
func TestTaskClose(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(l *Loop, other, own *Task)
		want []string
	}{
		{"by another", func(_ *Loop, other, _ *Task) { other.Close(); other.Close(); other.Again() }, []string{"own", "own", "own"}},
		{"itself", func(_ *Loop, _, own *Task) { own.Close(); own.Close(); own.Again() }, []string{"own", "other", "other"}},
		{"again, then itself", func(_ *Loop, _, own *Task) { own.Again(); own.Close() }, []string{"own", "other", "other"}},
		{"both", func(_ *Loop, other, own *Task) { other.Close(); own.Close() }, []string{"own"}},
		{"by a timer", func(l *Loop, other, own *Task) {
			l.AfterFunc(time.Millisecond, func() { other.Close(); own.Close() })
		}, []string{"own"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, net *memsys.Net) {
				l := loopIn(t, net, Config{})
				var log []string
				var own, other *Task
				own = l.Work(func() bool {
					if log = append(log, "own"); len(log) == 1 {
						c.end(l, other, own)
					}
					time.Sleep(2 * time.Millisecond)
					return len(log) < 3
				})
				other = l.Work(func() bool {
					log = append(log, "other")
					time.Sleep(2 * time.Millisecond)
					return len(log) < 3
				})
				l.AfterFunc(time.Second, func() { _ = l.Close() })
				run(t, l)
				if !slices.Equal(log, c.want) {
					t.Errorf("steps %v, want %v", log, c.want)
				}
				if l.ring.Len() != 0 {
					t.Errorf("%d sources are left in the ring", l.ring.Len())
				}
			})
		})
	}
}

// A task in debt is not the last there is: it goes on at once.
func TestTaskAloneDoesNotWait(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		steps := 0
		l.Work(func() bool {
			time.Sleep(5 * time.Millisecond)
			if steps++; steps == 100 {
				_ = l.Close()
			}
			return true
		})
		start := time.Now()
		run(t, l)
		if d := time.Since(start); d != 500*time.Millisecond {
			t.Errorf("100 steps of 5 ms took %v", d)
		}
	})
}
