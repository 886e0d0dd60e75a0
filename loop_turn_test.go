package weir

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weirnet/weir/internal/memsys"
)

// "A turn of the loop has four phases: timers that were due when it began; one look at the poller …; visits
// to the ready sources …; and the end of the turn: sends that are queued go out, and callbacks that were put
// off run."
func TestPhases(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		var l *Loop
		var log []string
		note := func(what string) { log = append(log, fmt.Sprint(l.Turn(), " ", what)) }
		l = watchPoller(t, net, Config{}, func(time.Duration) { note("poll") })

		var u *UDP
		u, err := l.ListenUDP(loopback4, UDPConfig{MaxQueuedSends: 1}, UDPHandler{
			OnDatagram: func(*UDP, *Datagram) { note("visit: datagram") },
			OnDrain:    func(*UDP) { note("end: drain") },
			OnClose:    func(*UDP, error) { note("end: close") },
		})
		if err != nil {
			t.Fatal(err)
		}
		sendNow(t, u, u.LocalAddr(), 1)
		l.AfterFunc(0, func() {
			note("timer")
			_ = u.Send(nil, u.LocalAddr())
			_ = u.Send(nil, u.LocalAddr()) // one too many: OnDrain is owed
		})
		l.AfterFunc(time.Millisecond, func() {
			note("timer")
			_ = u.Send(nil, u.LocalAddr())
			_ = l.Post(func() { note("visit: post"); _ = u.Close() })
			l.NextTurn(func() { note("visit: next turn"); _ = l.Close() })
		})
		run(t, l)
		wantOrder(t, log, []string{
			"1 timer", "1 end: drain", // as nothing is left to visit, the end of the turn comes before the wait
			"1 poll", "1 visit: datagram", "1 visit: datagram",
			"2 poll", // waits for the timer
			"3 timer", "3 poll", "3 visit: post", "3 end: close",
			"4 poll", "4 visit: next turn",
		})
	})
}

// "A d of zero or less is due in the next turn", also if the chain of them never ends.
func TestTimersOfTimers(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		var turns []uint64
		var again func()
		again = func() {
			if turns = append(turns, l.Turn()); len(turns) == 6 {
				_ = l.Close()
			}
			l.AfterFunc(time.Duration(-len(turns)), again)
		}
		l.AfterFunc(0, again)
		run(t, l)
		if want := []uint64{1, 2, 3, 4, 5, 6}; !slices.Equal(turns, want) {
			t.Errorf("they ran in turns %v, want %v", turns, want)
		}
	})
}

// "Timers as a class at most MaxShare in a row before a ring visit."
func TestTimersShare(t *testing.T) {
	const cost = 300 * time.Microsecond
	for _, maxShare := range []time.Duration{50 * time.Microsecond, time.Millisecond, 2 * time.Millisecond} {
		t.Run(maxShare.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, net *memsys.Net) {
				l := loopIn(t, net, Config{MaxShare: maxShare})
				row, longest, fired := time.Duration(0), time.Duration(0), 0
				for range 100 {
					l.AfterFunc(0, func() {
						time.Sleep(cost)
						fired++
						row += cost
						longest = max(longest, row)
					})
				}
				l.Work(func() bool {
					row = 0
					if fired == 100 {
						_ = l.Close()
					}
					return true
				})
				run(t, l)
				want := (maxShare + cost - 1) / cost * cost
				if longest != want {
					t.Errorf("timers held the loop for %v, want %v", longest, want)
				}
			})
		})
	}
}

// "NextTurn has the loop call fn in its next turn, after functions given earlier": what they give is for the
// turn after.
func TestNextTurn(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		var log []string
		note := func(what string) func() {
			return func() { log = append(log, fmt.Sprint(l.Turn(), " ", what)) }
		}
		l.NextTurn(note("a"))
		l.NextTurn(func() {
			note("b")()
			l.NextTurn(func() { note("b, inside")(); l.NextTurn(func() { note("b, inside of inside")(); _ = l.Close() }) })
		})
		l.NextTurn(note("c"))
		l.AfterFunc(0, func() { note("timer")(); l.NextTurn(note("of the timer")) })
		run(t, l)
		wantOrder(t, log, []string{
			"1 timer", "1 a", "1 b", "1 c",
			"2 of the timer", "2 b, inside",
			"3 b, inside of inside",
		})
	})
}

// "These functions are one source under the bound: while sockets are busy they get an equal share of the time",
// and they keep their order.
func TestNextTurnShare(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		other := openEndless(t, l, Share(), 10*time.Microsecond)
		var order []int
		var spent, most time.Duration
		for i := range 100 {
			l.NextTurn(func() {
				time.Sleep(10 * time.Microsecond)
				spent += 10 * time.Microsecond
				if order = append(order, i); len(order) == 100 {
					_ = l.Close()
				}
			})
		}
		other.each = func() { most, spent = max(most, spent), 0 }
		run(t, l)
		if !slices.IsSorted(order) || len(order) != 100 {
			t.Errorf("order %v", order)
		}
		if most != minShare {
			t.Errorf("next-turn functions had %v before the socket, want %v", most, minShare)
		}
	})
}

// "The end of a turn … what is more than MaxShare of it becomes a source of the ring": many callbacks that
// were put off, each of them slow, keep no timer waiting.
func TestEndOfTurnShare(t *testing.T) {
	const cost = 500 * time.Microsecond
	for _, c := range []struct {
		name string
		end  func(u *UDP)
	}{
		{"OnClose", func(u *UDP) { _ = u.Close() }},
		{"OnDrain", func(u *UDP) { _, _ = u.Send(nil, u.LocalAddr()), u.Send(nil, u.LocalAddr()) }},
		{"OnError", func(u *UDP) { _ = u.Send(nil, unreachable) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, net *memsys.Net) {
				l := loopIn(t, net, Config{})
				called := 0
				slow := func() { time.Sleep(cost); called++ }
				var sockets []*UDP
				for range 200 {
					u, err := l.ListenUDP(loopback4, UDPConfig{MaxQueuedSends: 1}, UDPHandler{
						OnDrain: func(*UDP) { slow() },
						OnError: func(*UDP, error) { slow() },
						OnClose: func(_ *UDP, err error) {
							if err == nil {
								slow()
							}
						},
					})
					if err != nil {
						t.Fatal(err)
					}
					sockets = append(sockets, u)
				}
				l.AfterFunc(0, func() {
					for _, u := range sockets {
						c.end(u)
					}
				})
				tick := l.Every(4*time.Millisecond, func() {})
				l.AfterFunc(120*time.Millisecond, func() { _ = l.Close() })
				run(t, l)
				if called != len(sockets) {
					t.Errorf("%d were called of %d", called, len(sockets))
				}
				stats := l.Stats()
				if lag := stats.TimerLag.Quantile(1); lag > 2*time.Millisecond+2*cost {
					t.Errorf("a timer was late by %v, want no more than MaxShare and a callback", lag)
				}
				if tick.Missed() != 0 || stats.TimersFired < 30 {
					t.Errorf("%d timers fired and %d ticks were missed", stats.TimersFired, tick.Missed())
				}
			})
		})
	}
}

// Once it is a source of the ring, the end of the turn shares time with the others.
func TestEndOfTurnInTheRing(t *testing.T) {
	const cost = 100 * time.Microsecond
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		other := openEndless(t, l, Share(), 20*time.Microsecond)
		var spent time.Duration
		done := 0
		l.AfterFunc(0, func() {
			for range 500 {
				u, err := l.ListenUDP(loopback4, UDPConfig{}, UDPHandler{OnClose: func(_ *UDP, err error) {
					time.Sleep(cost)
					spent += cost
					if done++; done == 500 {
						_ = l.Close()
					}
					if l := 2*time.Millisecond + minShare + 2*cost; spent > other.time+l || other.time > spent+l {
						t.Errorf("the end of the turn has %v, the socket %v", spent, other.time)
					}
				}})
				if err != nil {
					t.Error(err)
					return
				}
				_ = u.Close()
			}
		})
		run(t, l)
		if done != 500 {
			t.Errorf("%d of 500", done)
		}
	})
}

// "Timeout 0 while the ring is non-empty (then at most once a round or per 1 ms), else until the next timer."
func TestLooksAtThePoller(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		var l *Loop
		var last time.Duration
		looks := 0
		l = watchPoller(t, net, Config{}, func(timeout time.Duration) {
			now := time.Since(l.start)
			if timeout != 0 && l.ring.Len() > 0 {
				t.Errorf("a wait of %v with %d sources in the ring", timeout, l.ring.Len())
			}
			if now-last > pollEvery+minShare+20*time.Microsecond {
				t.Errorf("%v without a look at the poller", now-last)
			}
			if looks++; looks > 1 && !l.roundOver && now-last < pollEvery {
				t.Errorf("a look %v after the last, in the middle of a round", now-last)
			}
			last = now
		})
		for range 100 { // a round is of more than 5 ms
			openEndless(t, l, Share(), 20*time.Microsecond)
		}
		var tick func() // falls due at any point of a round
		tick = func() { l.AfterFunc(330*time.Microsecond, tick) }
		tick()
		runFor(t, l, 100*time.Millisecond)
		if looks < 90 {
			t.Errorf("%d looks in 100 ms", looks)
		}
	})
}

// An idle loop waits for its next timer, and not in steps.
func TestWaitsForTheTimer(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		var waits []time.Duration
		l := watchPoller(t, net, Config{}, func(timeout time.Duration) { waits = append(waits, timeout) })
		l.AfterFunc(time.Second, func() {})
		l.AfterFunc(time.Millisecond, func() {}).Stop()
		l.AfterFunc(25*time.Second, func() { _ = l.Close() })
		run(t, l)
		if want := []time.Duration{time.Second, 24 * time.Second}; !slices.Equal(waits, want) {
			t.Errorf("waits of %v, want %v", waits, want)
		}
	})
}

// A timer that falls due while a long round stops for the end-of-turn work does not wait for another visit.
func TestTimerDueInALongRound(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		var due time.Time // of the timer that is armed, if not zero
		drains := 0
		slow, err := l.ListenUDP(loopback4, UDPConfig{MaxQueuedSends: 1}, UDPHandler{OnDrain: func(*UDP) {
			time.Sleep(1900 * time.Microsecond)
			if time.Now().After(due) {
				drains++
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			e := openEndless(t, l, Share(), 20*time.Microsecond)
			e.each = func() {
				if late := time.Since(due); !due.IsZero() && late > minShare+40*time.Microsecond {
					t.Errorf("a visit while a timer was due for %v", late)
				}
				if due.IsZero() {
					due = time.Now().Add(2 * time.Millisecond)
					l.AfterFunc(2*time.Millisecond, func() { due = time.Time{} })
					_, _ = slow.Send(nil, unreachable), slow.Send(nil, unreachable)
				}
			}
		}
		runFor(t, l, 300*time.Millisecond)
		if drains < 10 {
			t.Errorf("it was tried %d times only", drains)
		}
	})
}
