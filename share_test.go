package weir

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirnet/weir/internal/memsys"
	"github.com/weirnet/weir/internal/sock"
	"github.com/weirnet/weir/internal/sys"
)

// outsider is a socket without a loop, for a goroutine of the test.
type outsider struct {
	t     *testing.T
	k     sys.Kernel
	fd    int
	batch *sys.SendBatch
}

func openOutsider(t *testing.T, net *memsys.Net) *outsider {
	t.Helper()
	k := net.Backend().Kernel
	fd, _, err := sock.OpenUDP(k, sock.UDPOptions{Local: loopback4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close(fd) })
	return &outsider{t, k, fd, sys.NewSendBatch(128)}
}

// send sends n datagrams that carry a number.
func (o *outsider) send(to netip.AddrPort, n int, number uint64) {
	payload := binary.NativeEndian.AppendUint64(nil, number)
	for i := range n {
		o.batch.Msgs[i] = sys.Message{Buf: payload, Addr: to}
	}
	if sent, err := o.k.Send(o.fd, o.batch, 0, n); sent != n || err != nil {
		o.t.Errorf("sent %d of %d: %v", sent, n, err)
	}
}

// "A due timer waits at most the rest of one visit, one callback and one flush": a thousand sockets have a
// backlog, and it falls due in the middle of their round.
func TestTimerWaitsForOneVisit(t *testing.T) {
	for _, c := range []struct {
		sockets int
		cost    time.Duration
	}{{1000, 20 * time.Microsecond}, {100, time.Microsecond}, {100, 3 * time.Millisecond}} {
		t.Run(fmt.Sprint(c.sockets, " ", c.cost), func(t *testing.T) {
			inBubble(t, func(t *testing.T, net *memsys.Net) {
				l := loopIn(t, net, Config{})
				sender := listen(t, l, Bound{}, nil)
				cost, left := c.cost, 0
				for range c.sockets {
					u := listen(t, l, Share(), func(*UDP, *Datagram) { time.Sleep(cost); left-- })
					sendNow(t, sender, u.LocalAddr(), 5)
					left += 5
				}
				round := time.Duration(c.sockets) * min(5*cost, minShare+cost)
				start := time.Now()
				for _, part := range []time.Duration{3, 5, 7} {
					due := round * part / 10
					l.AfterFunc(due, func() {
						if late := time.Since(start) - due; late > minShare+cost {
							t.Errorf("the timer of %v came %v late, want a visit of %v at most", due, late, minShare+cost)
						}
						if left == 0 || left == 5*c.sockets {
							t.Errorf("the timer of %v was not in the middle: %d datagrams are left", due, left)
						}
					})
				}
				l.AfterFunc(round*3, func() { _ = l.Close() })
				run(t, l)
			})
		})
	}
}

// "Handler 2 ms, endless flood": a timer comes in time under Share, and not at all where there is no bound.
func TestTimerInAFlood(t *testing.T) {
	const cost, period = 2 * time.Millisecond, 20 * time.Millisecond
	for _, bound := range []Bound{Share(), Unbounded()} {
		t.Run(bound.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, net *memsys.Net) {
				l := loopIn(t, net, Config{})
				e := openEndless(t, l, bound, cost)
				fired := 0
				l.Every(period, func() { fired++ })
				runFor(t, l, 10*time.Second)
				if e.calls < 4990 {
					t.Errorf("%d datagrams of 2 ms in 10 s", e.calls)
				}
				if bound == Unbounded() {
					if fired > 0 {
						t.Errorf("the timer fired %d times: this flood shows nothing", fired)
					}
					return
				}
				if fired < 475 {
					t.Errorf("the timer fired %d times of 500", fired)
				}
				stats := l.Stats()
				if lag := stats.TimerLag.Quantile(0.95); lag >= 2*cost {
					t.Errorf("it was late by %v (p95), want less than two callbacks", lag)
				}
			})
		})
	}
}

// "Sources that are busy at the same time get equal time, whatever one datagram costs": at any moment two
// are apart by Q and a callback of each at most.
func TestEqualTime(t *testing.T) {
	for _, costs := range [][]time.Duration{
		{2 * time.Millisecond, 20 * time.Microsecond},
		{2 * time.Millisecond, 3 * time.Microsecond},
		{10 * time.Microsecond, 10 * time.Microsecond},
		{time.Microsecond, 49 * time.Microsecond, 50 * time.Microsecond, 51 * time.Microsecond, 9 * time.Millisecond},
	} {
		t.Run(fmt.Sprint(costs), func(t *testing.T) {
			inBubble(t, func(t *testing.T, net *memsys.Net) {
				l := loopIn(t, net, Config{})
				sockets := make([]*endless, len(costs))
				for i, cost := range costs {
					sockets[i] = openEndless(t, l, Share(), cost)
					sockets[i].each = func() {
						for j, other := range sockets {
							if d := sockets[i].time - other.time; d > minShare+cost+costs[j] {
								t.Errorf("the socket of %v is %v ahead of that of %v", cost, d, costs[j])
							}
						}
					}
				}
				runFor(t, l, 100*time.Millisecond)
				for i, e := range sockets {
					if want := 100*time.Millisecond/time.Duration(len(costs)) - 15*time.Millisecond; e.time < want {
						t.Errorf("the socket of %v had %v, want %v and more", costs[i], e.time, want)
					}
				}
			})
		})
	}
}

// A quiet socket among floods: "sources newly ready go before those that stopped on their bound, for one
// visit" a round, and the poller is looked at every millisecond, whatever the length of the round. One look
// tells of 128 sockets, so where there are more floods, it takes a look for each 128 of them.
func TestQuietAmongFloods(t *testing.T) {
	const visit = minShare // a flood's: one callback
	for _, floods := range []int{1, 100, 1000} {
		t.Run(fmt.Sprint(floods), func(t *testing.T) {
			inBubble(t, func(t *testing.T, net *memsys.Net) {
				const n, every = 2, 57_913 * time.Microsecond // less often than a round of the 1,000
				l := loopIn(t, net, Config{})
				o := openOutsider(t, net)
				for range floods {
					openEndless(t, l, Share(), visit)
				}
				var longest time.Duration
				got := 0
				start := time.Now()
				quiet := listen(t, l, Share(), func(_ *UDP, d *Datagram) {
					got++
					longest = max(longest, time.Since(start)-time.Duration(binary.NativeEndian.Uint64(d.Payload)))
					time.Sleep(visit / 3) // a receive call asks for more than one, so one is seen to be the last
				})
				go func() {
					for range n {
						time.Sleep(every)
						o.send(quiet.LocalAddr(), 1, uint64(time.Since(start)))
					}
				}()
				runFor(t, l, (n+1)*every)
				looks := time.Duration((floods + 1 + maxEvents - 1) / maxEvents)
				if want := looks*pollEvery + visit; got != n || longest > want {
					t.Errorf("%d datagrams of %d came, the last after %v, want %v at most", got, n, longest, want)
				}
			})
		})
	}
}

// The quiet one that becomes busy has the same part as each of the floods.
func TestBusyAmongFloods(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		const cost = 20 * time.Microsecond
		l := loopIn(t, net, Config{})
		var floods []*endless
		for range 100 {
			floods = append(floods, openEndless(t, l, Share(), cost))
		}
		var late *endless
		var before time.Duration // of the first flood, when the late one began
		late = openEndless(t, l, Share(), cost)
		late.Pause()
		l.AfterFunc(100*time.Millisecond, func() { late.Resume(); before = floods[0].time })
		late.each = func() {
			if d := (late.time - (floods[0].time - before)).Abs(); d > 2*minShare+2*cost {
				t.Errorf("it is apart from a flood by %v", d)
			}
		}
		runFor(t, l, 300*time.Millisecond)
		if late.time < 1900*time.Microsecond {
			t.Errorf("it had %v of 200 ms among 101, want 2 ms", late.time)
		}
	})
}

// "A fixed count per event is a ceiling": other work of 0.5 ms each turn, and 100 datagrams a millisecond. The
// work is a timer's, which comes in each turn whatever the bound; next-turn functions are governed by the ring.
func TestOtherWorkEachTurn(t *testing.T) {
	for _, c := range []struct {
		name    string
		again   func(l *Loop, fn func())
		ceiling bool // of Count(32)
	}{
		{"timer", func(l *Loop, fn func()) { l.AfterFunc(0, fn) }, true},
		{"next turn", func(l *Loop, fn func()) { l.NextTurn(fn) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			share, free, count := deliveredBeside(t, Share(), c.again), deliveredBeside(t, Unbounded(), c.again),
				deliveredBeside(t, Count(32), c.again)
			if share < free-2 || free < 90 {
				t.Errorf("Share delivered %.1f %%, no bound %.1f %%", share, free)
			}
			if c.ceiling && count > 60 {
				t.Errorf("Count(32) delivered %.1f %%, want half", count)
			}
		})
	}
}

// deliveredBeside is the part of 100 datagrams a millisecond that a socket gets beside work of 0.5 ms that is
// started again and again.
func deliveredBeside(t *testing.T, bound Bound, again func(l *Loop, fn func())) (percent float64) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		o := openOutsider(t, net)
		got, offered := 0, 0
		u := listen(t, l, bound, func(*UDP, *Datagram) { time.Sleep(3 * time.Microsecond); got++ })
		var work func()
		work = func() { time.Sleep(500 * time.Microsecond); again(l, work) }
		again(l, work)
		go func() {
			for range 100 {
				time.Sleep(time.Millisecond)
				o.send(u.LocalAddr(), 100, 0)
				offered += 100
			}
		}()
		runFor(t, l, 105*time.Millisecond)
		synctest.Wait()
		percent = 100 * float64(got) / float64(offered)
		t.Logf("%v: %.1f %%", bound, percent)
	})
	return percent
}

// "Alone, a source's turn ends after Q like any other; an empty turn costs one clock read and one
// zero-timeout poll": what Share costs a lone source more than no bound.
func TestLoneSourceCosts(t *testing.T) {
	const n, cost = 200, 10 * time.Microsecond
	measure := func(t *testing.T, bound Bound) (polls, clocks int) {
		inBubble(t, func(t *testing.T, net *memsys.Net) {
			l := watchRing(t, net)
			got := 0
			u := listen(t, l, bound, func(*UDP, *Datagram) {
				time.Sleep(cost)
				if got++; got == n {
					_ = l.Close()
				}
			})
			sendNow(t, listen(t, l, Bound{}, nil), u.LocalAddr(), n)
			clock := l.clock
			l.clock = func() time.Duration { clocks++; return clock() }
			start := time.Now()
			run(t, l)
			if took := time.Since(start); took != n*cost {
				t.Errorf("%v: %d datagrams of %v took %v", bound, n, cost, took)
			}
			polls = net.Calls().WaitNow
		})
		return polls, clocks
	}
	freePolls, freeClocks := measure(t, Unbounded())
	polls, clocks := measure(t, Share())
	shares := n * int(cost) / int(minShare)
	if d := polls - freePolls; d > shares {
		t.Errorf("%d polls more in %d shares", d, shares)
	}
	if d := clocks - freeClocks; d > shares {
		t.Errorf("%d readings of the clock more in %d shares", d, shares)
	}
}

// watchRing makes a loop that fails the test when it waits while the ring is not empty.
func watchRing(t *testing.T, net *memsys.Net) (l *Loop) {
	l = watchPoller(t, net, Config{}, func(timeout time.Duration) {
		if timeout != 0 && l.ring.Len() > 0 {
			t.Errorf("a wait of %v with %d sources in the ring", timeout, l.ring.Len())
		}
	})
	return l
}

// "Work conserving: no blocking wait while the ring is non-empty", whoever is in debt.
func TestNoWaitWhileBusy(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := watchRing(t, net)
		busy := time.Duration(0)
		each := func(cost time.Duration) func() {
			return func() { time.Sleep(cost); busy += cost }
		}
		u := listen(t, l, Share(), func(u *UDP, d *Datagram) {
			each(7 * time.Millisecond)()
			_ = u.Send(d.Payload, u.LocalAddr())
		})
		sendNow(t, u, u.LocalAddr(), 1)
		step := each(9 * time.Millisecond)
		l.Work(func() bool { step(); return true })
		var again, next func()
		post, turn := each(3*time.Millisecond), each(5*time.Millisecond)
		again = func() { post(); _ = l.Post(again) }
		next = func() { turn(); l.NextTurn(next) }
		again()
		next()
		busy = 0
		start := time.Now()
		l.Every(11*time.Millisecond, each(time.Millisecond))
		ended := false
		l.AfterFunc(time.Second, func() {
			if d := time.Since(start) - busy; d != 0 {
				t.Errorf("it idled for %v", d)
			}
			ended = true
			_ = l.Close()
		})
		run(t, l)
		if !ended {
			t.Error("the timer never came")
		}
	})
}

// "Q = clamp(50 µs, longest inelastic activity of the last turn, MaxShare)": a slow timer lets the sources
// take as long, and MaxShare is the limit; what the ring governs does not count.
func TestShareFollowsTimers(t *testing.T) {
	for _, c := range []struct {
		name     string
		timer    time.Duration
		maxShare time.Duration
		want     time.Duration
	}{
		{"quick", 10 * time.Microsecond, 0, minShare},
		{"slower", 700 * time.Microsecond, 0, 700 * time.Microsecond},
		{"slow", 30 * time.Millisecond, 0, 2 * time.Millisecond},
		{"limited", 30 * time.Millisecond, 300 * time.Microsecond, 300 * time.Microsecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, net *memsys.Net) {
				l := loopIn(t, net, Config{MaxShare: c.maxShare})
				e := openEndless(t, l, Share(), 10*time.Microsecond)
				l.Work(func() bool { time.Sleep(5 * time.Millisecond); return true })
				var qs []time.Duration
				e.each = func() { qs = append(qs, l.ring.Q()) }
				l.AfterFunc(50*time.Millisecond, func() { time.Sleep(c.timer); qs = nil })
				l.AfterFunc(150*time.Millisecond, func() { _ = l.Close() })
				run(t, l)
				if len(qs) == 0 {
					t.Fatal("the socket was not visited after the timer")
				}
				most := minShare
				for _, q := range qs {
					most = max(most, q)
				}
				if last := qs[len(qs)-1]; most != c.want || last != minShare {
					t.Errorf("Q rose to %v and was %v at last, want %v and %v", most, last, c.want, minShare)
				}
			})
		})
	}
}

// A chain of sockets, each opened by the last one's datagram, leaves a busy socket and posted functions their
// visits: "A source has its first visit in the round after the one that it was made in."
func TestChainsOfNewSockets(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		busy, posted, chained := 0, 0, 0
		u := listen(t, l, Bound{}, func(u *UDP, d *Datagram) {
			busy++
			time.Sleep(10 * time.Microsecond)
			_ = u.Send(d.Payload, u.LocalAddr())
		})
		sendNow(t, u, u.LocalAddr(), 2)
		var again func()
		again = func() { posted++; time.Sleep(10 * time.Microsecond); _ = l.Post(again) }
		_ = l.Post(again)
		var open func()
		open = func() {
			s := listen(t, l, Bound{}, func(u *UDP, _ *Datagram) {
				chained++
				time.Sleep(300 * time.Microsecond)
				_ = u.Close()
				if l.end.stage() == stageRunning {
					open()
				}
			})
			sendNow(t, s, s.LocalAddr(), 1)
		}
		for range 4 {
			open()
		}
		runFor(t, l, 100*time.Millisecond)
		for name, n := range map[string]int{"datagrams": busy, "posted functions": posted} {
			if n < 100 {
				t.Errorf("%d %s beside %d links of the chains in 100 ms", n, name, chained)
			}
		}
	})
}
