//go:build perf

package weir

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"
)

// attempts runs a measurement up to three times, as the machine may be busy with something else: a line
// fails if it is missed each time.
func attempts(t *testing.T, measure func() (missed string)) {
	t.Helper()
	var missed string
	for range 3 {
		if missed = measure(); missed == "" {
			return
		}
		t.Log("missed: " + missed)
	}
	t.Error(missed)
}

// load is a flood at a socket on a loop that has a timer to keep.
type load struct {
	bound   Bound
	handler time.Duration // a datagram's
	work    time.Duration // other work each turn
	rate    int           // datagrams a second; 0: as fast as it goes
	tick    time.Duration
	d       time.Duration
}

type loadResult struct {
	sent, received, dropped int
	fired                   int
	lags                    []time.Duration // sorted
}

func (r loadResult) delivered() float64 { return 100 * float64(r.received) / float64(r.sent) }

func (r loadResult) lag(q float64) time.Duration {
	if len(r.lags) == 0 {
		return 1<<63 - 1
	}
	return r.lags[min(int(q*float64(len(r.lags))), len(r.lags)-1)]
}

func (c load) run(t *testing.T) (r loadResult) {
	t.Helper()
	l := newLoop(t, Config{Bound: c.bound})
	var timer *Timer
	var due time.Duration
	tick := func() {
		r.fired++
		r.lags = append(r.lags, l.now-due)
		due = timer.when
	}
	u := listen(t, l, Bound{}, func(*UDP, *Datagram) {
		if timer == nil { // with the first datagram: a process takes its time to start
			timer = l.Every(c.tick, tick)
			due = timer.when
		}
		r.received++
		spin(c.handler)
	})
	if c.work > 0 {
		// A timer that is always due is what the loop cannot govern; NextTurn's functions get a share.
		var work *Timer
		work = l.AfterFunc(0, func() {
			spin(c.work)
			work.Reset(0)
		})
	}
	length := c.d
	if c.rate == 0 {
		length += time.Second // an endless flood outlasts the loop
	}
	sent := startFlood(t, u.LocalAddr(), c.rate, length)
	ctx, cancel := context.WithTimeout(t.Context(), c.d+50*time.Millisecond)
	defer cancel()
	_ = l.Run(ctx)
	r.sent = sent()
	r.dropped = int(l.Stats().UDP.KernelDropped)
	slices.Sort(r.lags)
	lag := "no lag"
	if r.fired > 0 {
		lag = fmt.Sprintf("lag p50 %v p99 %v max %v", r.lag(0.5), r.lag(0.99), r.lag(1))
	}
	t.Logf("%v: sent %d, received %.1f %%, %d ticks, %s", c.bound, r.sent, r.delivered(), r.fired, lag)
	return r
}

func spin(d time.Duration) {
	for start := time.Now(); time.Since(start) < d; {
	}
}

// TestPerfStarvation: a handler of 2 ms, an endless flood, a timer of 20 ms.
func TestPerfStarvation(t *testing.T) {
	c := load{handler: 2 * time.Millisecond, tick: 20 * time.Millisecond, d: 10 * time.Second}
	due := int(c.d / c.tick)
	attempts(t, func() string {
		c.bound = Share()
		r := c.run(t)
		switch {
		case r.fired < due*95/100:
			return "under Share, less than 95 % of the ticks fired"
		case r.lag(0.95) > 2*c.handler:
			return "under Share, the lag's p95 is above two callbacks"
		}
		return ""
	})
	c.bound = Unbounded()
	if r := c.run(t); r.fired > 0 {
		t.Errorf("without a bound, %d ticks fired: the flood is not endless", r.fired)
	}
}

// TestPerfNoCeiling: 100 datagrams a millisecond, and 0.5 ms of other work each turn.
func TestPerfNoCeiling(t *testing.T) {
	c := load{work: 500 * time.Microsecond, rate: 100_000, tick: 5 * time.Millisecond, d: 3 * time.Second}
	attempts(t, func() string {
		results := map[Bound]loadResult{}
		for _, bound := range []Bound{Unbounded(), Share(), Count(32)} {
			c.bound = bound
			results[bound] = c.run(t)
		}
		share, none, count := results[Share()], results[Unbounded()], results[Count(32)]
		switch {
		case share.delivered() < none.delivered()-2:
			return "Share delivered over 2 points less than no bound"
		case share.lag(0.99) > none.lag(0.99)+time.Millisecond:
			return "Share's timer lag p99 is over 1 ms above that of no bound"
		case count.delivered() > 75:
			return "Count(32) was no ceiling: the load is too small to tell"
		}
		return ""
	})
}
