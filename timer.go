package weir

import (
	"math"
	"time"
)

// Timer calls a function of the loop at a time.
type Timer struct {
	loop   *Loop
	fn     func()
	when   time.Duration // on the loop's clock
	period time.Duration // 0: once
	seq    uint64        // order of arming: among timers of one time, and to tell what was armed in this turn
	index  int           // in the heap, or -1
	missed uint64
}

// AfterFunc calls fn once, d from the call at the earliest. A d of zero or less is due in the next turn. It
// panics if fn is nil.
func (l *Loop) AfterFunc(d time.Duration, fn func()) *Timer {
	mustFunc("AfterFunc", fn != nil)
	t := &Timer{loop: l, fn: fn, index: -1}
	l.timers.arm(t, l.after(d))
	return t
}

// Every calls fn each d, on a fixed grid that begins now. Ticks whose time has passed before the loop got
// to them are skipped and counted in Missed. It panics if d is not above zero, as time.NewTicker does, or fn
// is nil.
func (l *Loop) Every(d time.Duration, fn func()) *Timer {
	if d <= 0 {
		panic("weir: Every: the period must be above zero")
	}
	mustFunc("Every", fn != nil)
	t := &Timer{loop: l, fn: fn, period: d, index: -1}
	l.timers.arm(t, l.after(d))
	return t
}

// after is the time d from now; beyond what can be counted, the last there is.
func (l *Loop) after(d time.Duration) time.Duration {
	now := l.clock()
	return now + min(max(d, 0), math.MaxInt64-now)
}

// Stop keeps the timer from calling its function. It tells whether that was still to come.
func (t *Timer) Stop() bool {
	if t.index < 0 {
		return false
	}
	t.loop.timers.remove(t)
	return true
}

// Reset has the timer call its function d from now, also if it was stopped or has run. One made by Every
// gets a new grid that begins now, with d as its period, and panics if that is not above zero. It tells whether
// the timer was running.
func (t *Timer) Reset(d time.Duration) bool {
	if t.period > 0 {
		if d <= 0 {
			panic("weir: Reset: the period must be above zero")
		}
		t.period = d
	}
	running := t.Stop()
	t.loop.timers.arm(t, t.loop.after(d))
	return running
}

// resetAt has a timer that AfterFunc made call its function at a time on the loop's clock.
func (t *Timer) resetAt(when time.Duration) {
	t.Stop()
	t.loop.timers.arm(t, when)
}

// Missed is how many ticks of Every were skipped.
func (t *Timer) Missed() uint64 { return t.missed }

// runTimers calls the timers that were due when the turn began, for MaxShare at most.
func (l *Loop) runTimers() {
	due := l.now
	for l.now-due < l.cfg.MaxShare && l.end.stage() != stageClosing {
		t := l.timers.popDue(due, l.turnSeq)
		if t == nil {
			return
		}
		l.stats.timersFired.Add(1)
		l.stats.timerLag.record(l.now - t.when)
		if t.period > 0 {
			t.nextTick(l.now)
			l.timers.arm(t, t.when)
		}
		l.ring.Inelastic(l.callback(t, t.fn))
	}
}

func (t *Timer) name() string { return "timer" }

// nextTick moves the timer to the first point of its grid after now.
func (t *Timer) nextTick(now time.Duration) {
	skipped := (now - t.when) / t.period
	t.missed += uint64(skipped)
	t.when += (skipped + 1) * t.period
}

// untilTimer is how long the loop may wait for the next timer: negative for ever, 0 when one is due.
func (l *Loop) untilTimer() time.Duration {
	if l.timers.len() == 0 {
		return -1
	}
	return max(l.timers.first().when-l.now, 0)
}

// mustFunc has a nil function fail where it was given, not where it is called.
func mustFunc(method string, given bool) {
	if !given {
		panic("weir: " + method + ": the function is nil")
	}
}
