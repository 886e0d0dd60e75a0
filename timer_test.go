package weir

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirnet/weir/internal/memsys"
)

// A heap of 100,000 timers costs each operation one walk along its depth: the timers that change their
// place are counted.
func TestTimerHeapDepth(t *testing.T) {
	t.Parallel()
	const n = 100_000
	const depth = 9 // 4^0 + … + 4^8 is less than n, with 4^9 it is more
	rnd := rand.New(rand.NewPCG(1, 2))
	var h timerHeap
	timers := make([]*Timer, n)
	for i := range timers {
		timers[i] = &Timer{index: -1}
		h.arm(timers[i], time.Duration(rnd.Int64N(int64(time.Hour))))
	}
	places := make([]int, n)
	moved := func(op func()) (count int) {
		for i, timer := range timers {
			places[i] = timer.index
		}
		op()
		for i, timer := range timers {
			if timer.index != places[i] {
				count++
			}
		}
		return count
	}
	for i := range 9 {
		timer := timers[rnd.IntN(n)]
		if i%3 == 0 {
			timer = h.first() // from the top, all the way down
		}
		if m := moved(func() { h.remove(timer) }); m > depth+2 {
			t.Errorf("taking out a timer moved %d, the depth is %d", m, depth)
		}
		when := time.Duration(rnd.Int64N(int64(time.Hour)))
		if i%3 == 1 {
			when = -time.Duration(i) // to the top, all the way up
		}
		if m := moved(func() { h.arm(timer, when) }); m > depth+1 {
			t.Errorf("arming a timer moved %d, the depth is %d", m, depth)
		}
	}
	checkHeap(t, &h)
}

// checkHeap holds that no timer is before its parent, and that each knows its place.
func checkHeap(t interface{ Fatalf(string, ...any) }, h *timerHeap) {
	for i, timer := range h.timers {
		if timer.index != i {
			t.Fatalf("the timer at %d believes to be at %d", i, timer.index)
		}
		if parent := (i - 1) / heapArity; i > 0 && h.less(i, parent) {
			t.Fatalf("the timer at %d is before its parent at %d", i, parent)
		}
	}
}

// The heap against a sorted list: armed, stopped, armed again and fired at random.
func TestTimerHeapModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var h timerHeap
		var model []*Timer // running, in order
		timers := make([]*Timer, 40)
		for i := range timers {
			timers[i] = &Timer{index: -1}
		}
		order := func(a, b *Timer) int { return cmp.Or(cmp.Compare(a.when, b.when), cmp.Compare(a.seq, b.seq)) }
		stop := func(timer *Timer) {
			if i := slices.Index(model, timer); i >= 0 {
				h.remove(timer)
				model = slices.Delete(model, i, i+1)
			}
		}
		pick := rapid.SampledFrom(timers)
		when := rapid.IntRange(0, 20)
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				checkHeap(t, &h)
				if h.len() != len(model) {
					t.Fatalf("%d timers, want %d", h.len(), len(model))
				}
			},
			"arm": func(t *rapid.T) {
				timer := pick.Draw(t, "timer")
				stop(timer)
				h.arm(timer, time.Duration(when.Draw(t, "when")))
				model = append(model, timer)
				slices.SortFunc(model, order)
			},
			"stop": func(t *rapid.T) {
				timer := pick.Draw(t, "timer")
				if stop(timer); timer.index != -1 {
					t.Fatalf("a stopped timer has place %d", timer.index)
				}
			},
			"fire": func(t *rapid.T) {
				now, before := time.Duration(when.Draw(t, "now")), h.seq-uint64(rapid.IntRange(0, int(min(h.seq, 5))).Draw(t, "new"))
				var want *Timer
				if len(model) > 0 && model[0].when <= now && model[0].seq < before {
					want = model[0]
					model = model[1:]
				}
				if got := h.popDue(now, before); got != want {
					t.Fatalf("due is %+v, want %+v", got, want)
				}
			},
		})
	})
}

// By time, then by arming; nobody early, nobody lost.
func TestTimerOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		const n = 10_000
		l := loopIn(t, net, Config{})
		type fired struct{ due, i int }
		var got []fired
		rnd := rand.New(rand.NewPCG(3, 4))
		start := time.Now()
		for i := range n {
			due := rnd.IntN(1000)
			d := time.Duration(due) * time.Millisecond
			l.AfterFunc(d, func() {
				if e := time.Since(start); e != d {
					t.Errorf("the timer of %v came after %v", d, e)
				}
				if got = append(got, fired{due, i}); len(got) == n {
					_ = l.Close()
				}
			})
		}
		run(t, l)
		if len(got) != n {
			t.Fatalf("%d timers of %d", len(got), n)
		}
		if !slices.IsSortedFunc(got, func(a, b fired) int { return cmp.Or(a.due-b.due, a.i-b.i) }) {
			t.Error("out of order")
		}
		if s := l.Stats(); s.TimersFired != n || s.TimerLag.Count() != n || s.TimerLag.Quantile(1) > 2*time.Microsecond {
			t.Errorf("%d fired, lags of up to %v", s.TimersFired, s.TimerLag.Quantile(1))
		}
	})
}

// "Every calls fn each d, on a fixed grid that begins now. Ticks whose time has passed before the loop got to
// them are skipped and counted in Missed."
func TestEvery(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		costs := []time.Duration{0, 9, 10, 11, 25, 0, 30, 0, 0} // of the ticks, in ms
		start := time.Now()
		var at []int
		var missed []uint64
		var tick *Timer
		time.Sleep(3 * time.Millisecond) // the grid has nothing to do with New
		tick = l.Every(10*time.Millisecond, func() {
			at = append(at, int(time.Since(start)/time.Millisecond))
			missed = append(missed, tick.Missed())
			time.Sleep(costs[len(at)-1] * time.Millisecond)
			if len(at) == len(costs) {
				_ = l.Close()
			}
		})
		run(t, l)
		// The tick of 33 lasts to 43 and that of 43 is at once; that one lasts to 54, so 53 comes at 54, and
		// lasts to 79: 73 comes then and 63 is missed; 83 lasts to 113, and 93 and 103 are missed.
		if want := []int{13, 23, 33, 43, 54, 79, 83, 113, 123}; !slices.Equal(at, want) {
			t.Errorf("ticks at %v ms, want %v", at, want)
		}
		if want := []uint64{0, 0, 0, 0, 0, 1, 1, 3, 3}; !slices.Equal(missed, want) {
			t.Errorf("missed %v, want %v", missed, want)
		}
	})
}

// Each tick of the grid is called or counted, whatever keeps the loop.
func TestEveryCountsAllTicks(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		rnd := rand.New(rand.NewPCG(5, 6))
		calls := 0
		tick := l.Every(time.Millisecond, func() { calls++ })
		var work func()
		work = func() { time.Sleep(time.Duration(rnd.IntN(3_500)) * time.Microsecond); l.NextTurn(work) }
		l.NextTurn(work)
		runFor(t, l, time.Second)
		if sum := calls + int(tick.Missed()); sum < 996 || sum > 1000 || tick.Missed() < 100 {
			t.Errorf("%d ticks and %d missed in 1 s, want 1,000 together", calls, tick.Missed())
		}
	})
}

// "It panics if d is not above zero, as time.NewTicker does."
func TestEveryPanics(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		for _, d := range []time.Duration{0, -1} {
			mustPanic(t, fmt.Sprintf("Every(%d)", d), func() { l.Every(d, func() {}) })
			tick := l.Every(time.Second, func() {})
			mustPanic(t, fmt.Sprintf("Reset(%d)", d), func() { tick.Reset(d) })
			if !tick.Stop() {
				t.Errorf("a Reset(%d) that panicked stopped the timer", d)
			}
		}
	})
}

func mustPanic(t *testing.T, what string, fn func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s does not panic", what)
		}
	}()
	fn()
}

// "Stop … tells whether that was still to come." "Reset … tells whether the timer was running."
func TestTimerResults(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		is := func(what string, got, want bool) {
			t.Helper()
			if got != want {
				t.Errorf("%s: %v", what, got)
			}
		}
		var at []time.Duration
		start := time.Now()
		never := l.AfterFunc(time.Millisecond, func() { t.Error("a stopped timer was called") })
		is("Stop of a running timer", never.Stop(), true)
		is("Stop of a stopped timer", never.Stop(), false)
		var twice *Timer
		twice = l.AfterFunc(time.Millisecond, func() {
			at = append(at, time.Since(start))
			is("Stop inside its own callback", twice.Stop(), false)
			if len(at) == 1 {
				is("Reset inside its own callback", twice.Reset(5*time.Millisecond), false)
				is("Reset of a running timer", twice.Reset(2*time.Millisecond), true)
			}
		})
		l.AfterFunc(10*time.Millisecond, func() {
			is("Stop of a timer that ran", twice.Stop(), false)
			is("Reset of a timer that ran", twice.Reset(-5), false)
		})
		l.AfterFunc(20*time.Millisecond, func() { _ = l.Close() })
		run(t, l)
		if want := []time.Duration{time.Millisecond, 3 * time.Millisecond, 10 * time.Millisecond}; !slices.Equal(at, want) {
			t.Errorf("called at %v, want %v", at, want)
		}
	})
}

// "One made by Every gets a new grid that begins now, with d as its period."
func TestEveryReset(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		start := time.Now()
		var at []int
		var tick *Timer
		tick = l.Every(10*time.Millisecond, func() {
			at = append(at, int(time.Since(start)/time.Millisecond))
			switch len(at) {
			case 2:
				time.Sleep(time.Millisecond)
				if !tick.Reset(7 * time.Millisecond) {
					t.Error("Reset says that it was not running")
				}
			case 4:
				if !tick.Stop() {
					t.Error("Stop inside its own callback says that no tick was to come")
				}
			}
		})
		l.AfterFunc(100*time.Millisecond, func() { tick.Reset(20 * time.Millisecond) })
		l.AfterFunc(150*time.Millisecond, func() { _ = l.Close() })
		run(t, l)
		if want := []int{10, 20, 28, 35, 120, 140}; !slices.Equal(at, want) {
			t.Errorf("ticks at %v ms, want %v", at, want)
		}
	})
}

// A timer that another one stops, or puts off, is not called, though both were due when the turn began.
func TestTimerStopsAnother(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		var log []string
		note := func(what string) { log = append(log, fmt.Sprint(l.Turn(), " ", what)) }
		var second, third, fourth *Timer
		l.AfterFunc(0, func() {
			note("first")
			if !second.Stop() || !third.Reset(0) || !fourth.Stop() {
				t.Error("the others were not running")
			}
		})
		second = l.AfterFunc(0, func() { note("second") })
		third = l.AfterFunc(0, func() { note("third"); _ = l.Close() })
		fourth = l.Every(1, func() { note("fourth") })
		time.Sleep(time.Millisecond)
		run(t, l)
		wantOrder(t, log, []string{"1 first", "2 third"})
	})
}

// A duration without end is one: it does not wrap around to now.
func TestTimerFarAway(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		time.Sleep(time.Second)
		never := func() { t.Error("292 years are over") }
		l.AfterFunc(math.MaxInt64, never)
		l.AfterFunc(0, never).Reset(math.MaxInt64)
		tick := l.Every(math.MaxInt64, never)
		tick.Reset(math.MaxInt64 - 1)
		runFor(t, l, time.Hour)
	})
}

// The real clock: nobody early, all in order.
func TestTimersOnTheKernel(t *testing.T) {
	l := newLoop(t, Config{})
	var got []time.Duration
	start := time.Now()
	delays := []time.Duration{3 * time.Millisecond, 0, 1100 * time.Microsecond, 50 * time.Microsecond}
	for _, d := range delays {
		l.AfterFunc(d, func() {
			if e := time.Since(start); e < d {
				t.Errorf("the timer of %v came after %v", d, e)
			}
			if got = append(got, d); len(got) == len(delays) {
				_ = l.Close()
			}
		})
	}
	run(t, l)
	if !slices.IsSorted(got) {
		t.Errorf("order %v", got)
	}
}
