package weir

import (
	"context"
	"errors"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirnet/weir/internal/memsys"
	"github.com/weirnet/weir/internal/poll"
)

// loopIn makes a loop on a network in memory.
func loopIn(t *testing.T, net *memsys.Net, cfg Config) *Loop {
	t.Helper()
	cfg.Kernel = NewKernel(net.Backend())
	cfg.NoGSO = true // so that a message is a datagram
	return newLoop(t, cfg)
}

var errTimeUp = errors.New("the time is up")

// runFor runs the loop for d, on the clock of the bubble.
func runFor(t *testing.T, l *Loop, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), d, errTimeUp)
	defer cancel()
	if err := l.Run(ctx); err != errTimeUp {
		t.Fatalf("Run: %v, want it to go on until the time is up", err)
	}
}

// background runs the loop on a goroutine of its own, and answers what Run does.
func background(t *testing.T, l *Loop) <-chan error {
	result := make(chan error, 1)
	go func() { result <- l.Run(t.Context()) }()
	return result
}

// endless is a socket that sends every datagram back to itself, so that it always has one.
type endless struct {
	*UDP
	calls int
	time  time.Duration // of its callbacks
	each  func()        // at the end of each, if not nil
}

func openEndless(t *testing.T, l *Loop, bound Bound, cost time.Duration) *endless {
	t.Helper()
	e := &endless{}
	e.UDP = listen(t, l, bound, func(u *UDP, d *Datagram) {
		time.Sleep(cost)
		e.calls++
		e.time += cost
		_ = u.Send(d.Payload, u.LocalAddr())
		if e.each != nil {
			e.each()
		}
	})
	sendNow(t, e.UDP, e.LocalAddr(), recvSlots+2) // more than a receive call takes
	return e
}

// watchPoller makes a loop that calls waiting before each look at the poller.
func watchPoller(t *testing.T, net *memsys.Net, cfg Config, waiting func(timeout time.Duration)) *Loop {
	t.Helper()
	backend := net.Backend()
	newPoller := backend.NewPoller
	backend.NewPoller = func() (poll.Poller, error) {
		p, err := newPoller()
		return watchedPoller{p, waiting}, err
	}
	cfg.Kernel = NewKernel(backend)
	return newLoop(t, cfg)
}

type watchedPoller struct {
	poll.Poller
	waiting func(timeout time.Duration)
}

func (p watchedPoller) Wait(events []poll.Event, timeout time.Duration) (int, error) {
	p.waiting(timeout)
	return p.Poller.Wait(events, timeout)
}

// unreachable is an address of nobody (RFC 5737).
var unreachable = netip.MustParseAddrPort("192.0.2.1:9")

func wantOrder(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("order:\n\t%s\nwant:\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		cfg  Config
	}{
		{"a count of zero", Config{Bound: Count(0)}},
		{"a share below 50 µs", Config{MaxShare: 49 * time.Microsecond}},
		{"a negative share", Config{MaxShare: -1}},
		{"a queue of functions without a limit", Config{MaxPosts: -1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if l, err := New(c.cfg); err == nil {
				_ = l.Close()
				t.Error("New took it")
			}
		})
	}
}

// "Now is the time as the loop last read it: at the end of the last wait or callback."
func TestNow(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		start := time.Now()
		if !l.Now().Equal(start) {
			t.Errorf("before Run: %v after New", l.Now().Sub(start))
		}
		check := func(where string, want time.Duration) {
			t.Helper()
			if got := l.Now().Sub(start); got != want {
				t.Errorf("%s: Now is %v after New, want %v", where, got, want)
			}
		}
		l.AfterFunc(10*time.Millisecond, func() {
			check("after a wait", 10*time.Millisecond)
			time.Sleep(3 * time.Millisecond)
			check("in the middle of a callback", 10*time.Millisecond)
		})
		l.AfterFunc(10*time.Millisecond, func() {
			check("after another callback", 13*time.Millisecond)
			_ = l.Close()
		})
		run(t, l)
	})
}

// "Turn is the number of the turn that runs now or ran last, counted from 1; any goroutine."
func TestTurn(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		if l.Turn() != 0 {
			t.Errorf("before Run: turn %d", l.Turn())
		}
		var turns []uint64
		var next func()
		next = func() {
			if turns = append(turns, l.Turn()); len(turns) == 5 {
				_ = l.Close()
			}
			l.NextTurn(next)
		}
		l.NextTurn(next)
		run(t, l)
		if want := []uint64{1, 2, 3, 4, 5}; !slices.Equal(turns, want) || l.Turn() != 5 {
			t.Errorf("turns %v and at last %d, want %v", turns, l.Turn(), want)
		}
	})
}

// "Expired tells a callback whether it has used up its source's credit."
func TestExpired(t *testing.T) {
	const q = minShare
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		for _, bound := range []Bound{Share(), Count(32), Unbounded()} {
			l := loopIn(t, net, Config{})
			calls := 0
			check := func(kind string) {
				t.Helper()
				calls++
				time.Sleep(q - 1)
				if l.Expired() {
					t.Errorf("%v: %s: expired after %v of %v", bound, kind, q-1, q)
				}
				time.Sleep(time.Nanosecond)
				if !l.Expired() {
					t.Errorf("%v: %s: not expired after %v", bound, kind, q)
				}
			}
			u, err := l.ListenUDP(loopback4, UDPConfig{Bound: bound, MaxQueuedSends: 1}, UDPHandler{
				OnDatagram: func(*UDP, *Datagram) { check("datagram") },
				OnDrain:    func(*UDP) { check("drain") },
			})
			if err != nil {
				t.Fatal(err)
			}
			l.AfterFunc(0, func() { check("timer") })
			l.Work(func() bool { check("task"); return false })
			l.NextTurn(func() { check("next turn") })
			if err := l.Post(func() { check("post") }); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(u.Send(nil, u.LocalAddr()), u.Send(nil, u.LocalAddr())); !errors.Is(err, ErrWouldBlock) {
				t.Fatal(err)
			}
			l.AfterFunc(time.Second, func() { _ = l.Close() })
			run(t, l)
			if calls != 6 {
				t.Errorf("%v: %d kinds of callback, want 6", bound, calls)
			}
		}
	})
}

// What a visit has used before counts: two callbacks share one credit.
func TestExpiredCountsTheVisit(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		var got []bool
		l.Work(func() bool {
			time.Sleep(minShare / 2)
			if got = append(got, l.Expired()); len(got) == 4 {
				_ = l.Close()
			}
			return true
		})
		run(t, l)
		if want := []bool{false, true, false, true}; !slices.Equal(got, want) {
			t.Errorf("steps of half a share found themselves expired: %v, want %v", got, want)
		}
	})
}

// nestGuard finds a callback that is called while another runs.
type nestGuard struct {
	t       *testing.T
	running string
	seen    map[string]int
}

func (n *nestGuard) call(name string, fn func()) {
	if n.running != "" {
		n.t.Errorf("%s was called from within %s", name, n.running)
	}
	outer := n.running
	n.running = name
	n.seen[name]++
	fn()
	n.running = outer
}

// "No call of this package calls a handler. Callbacks come from the loop, and never nest."
func TestCallbacksNeverNest(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{MaxPosts: 4})
		n := &nestGuard{t: t, seen: map[string]int{}}
		var sockets []*UDP // one for each of the first callbacks
		calls := func() {
			if len(sockets) > 0 {
				u := sockets[0]
				sockets = sockets[1:]
				everyCall(l, n, u)
			}
		}
		for range 100 {
			u, err := l.ListenUDP(netip.AddrPort{}, UDPConfig{MaxQueuedSends: 4}, UDPHandler{
				OnDatagram: func(*UDP, *Datagram) { n.call("OnDatagram", calls) },
				OnDrain:    func(*UDP) { n.call("OnDrain", calls) },
				OnError:    func(*UDP, error) { n.call("OnError", calls) },
				OnClose:    func(*UDP, error) { n.call("OnClose", calls) },
			})
			if err != nil {
				t.Fatal(err)
			}
			sockets = append(sockets, u)
		}
		l.AfterFunc(0, func() { n.call("timer", calls) })
		l.AfterFunc(10*time.Millisecond, func() { n.call("timer", func() { l.Stop(time.Millisecond); _ = l.Close() }) })
		run(t, l)
		for _, kind := range []string{"OnDatagram", "OnDrain", "OnError", "OnClose", "timer", "post", "next turn", "task"} {
			if n.seen[kind] == 0 {
				t.Errorf("%s was never called", kind)
			}
		}
	})
}

// everyCall calls all there is to call, on a socket of its own; half of the sockets are closed.
func everyCall(l *Loop, n *nestGuard, u *UDP) {
	time.Sleep(50 * time.Microsecond)
	nothing := func() {}
	self := netip.AddrPortFrom(netip.IPv6Loopback(), u.LocalAddr().Port())
	for range 6 { // more than fits the queue
		_ = u.Send([]byte("x"), self)
		_ = u.Send([]byte("x"), unreachable)
	}
	u.Pause()
	u.Resume()
	_, _ = u.Connect(self), u.Disconnect()
	_, _, _ = u.Stats(), l.Stats(), l.Expired()
	for range 5 {
		_ = l.Post(func() { n.call("post", nothing) })
	}
	l.NextTurn(func() { n.call("next turn", nothing) })
	step := l.Work(func() bool { n.call("task", nothing); return false })
	step.Again()
	timer := l.AfterFunc(0, func() { n.call("timer", nothing) })
	timer.Stop()
	timer.Reset(0)
	l.Every(time.Microsecond, nothing).Stop()
	_ = l.Run(context.Background())
	if n.seen[n.running]%2 == 0 {
		_ = u.Close()
	}
}

// A wait must not outlast the next timer, however long the other goroutines take that it lets run before.
func TestWaitAfterYield(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		var late time.Duration
		readings := -1 // since the callback; the second is the one behind the yield
		clock := l.clock
		l.clock = func() time.Duration {
			if readings >= 0 {
				if readings++; readings == 2 {
					time.Sleep(5 * time.Millisecond)
				}
			}
			return clock()
		}
		due := time.Now().Add(20 * time.Millisecond)
		l.AfterFunc(20*time.Millisecond, func() { late = time.Since(due); _ = l.Close() })
		l.AfterFunc(time.Millisecond, func() { readings = 0 })
		run(t, l)
		if late != 0 {
			t.Errorf("a timer came %v late, as the wait before it was yielded and not shortened", late)
		}
	})
}

// "A goroutine that a callback woke would otherwise wait for the processor that the blocking call holds."
// The times are looked at by TestPerfPostBack; here it need only come to an end.
func TestPostBack(t *testing.T) {
	postBack(t, 1000)
}

// postBack has callbacks wake a goroutine that posts back, n times on one processor, and answers how long
// each took, sorted.
func postBack(t *testing.T, n int) []time.Duration {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	l := newLoop(t, Config{})
	work := make(chan time.Time, 1)
	var times []time.Duration
	go func() {
		for began := range work {
			if l.Post(func() {
				if times = append(times, time.Since(began)); len(times) == n {
					_ = l.Close()
					return
				}
				work <- time.Now()
			}) != nil {
				return
			}
		}
	}()
	l.AfterFunc(0, func() { work <- time.Now() })
	run(t, l)
	close(work)
	if len(times) != n {
		t.Fatalf("%d came back of %d", len(times), n)
	}
	slices.Sort(times)
	return times
}

// A loop that waits for nothing but the end sleeps, and each reason to wake it does.
func TestWakes(t *testing.T) {
	for _, c := range []struct {
		name string
		wake func(l *Loop)
	}{
		{"Post", func(l *Loop) { _ = l.Post(func() { _ = l.Close() }) }},
		{"PostContext", func(l *Loop) { _ = l.PostContext(context.Background(), func() { _ = l.Close() }) }},
		{"Close", func(l *Loop) { _ = l.Close() }},
		{"Stop", func(l *Loop) { l.Stop(-1) }},
		{"Shutdown", func(l *Loop) { _ = l.Shutdown(context.Background()) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Run("memory", func(t *testing.T) {
				inBubble(t, func(t *testing.T, net *memsys.Net) {
					l := loopIn(t, net, Config{})
					ended := background(t, l)
					synctest.Wait()
					turns := l.Turn()
					time.Sleep(time.Hour)
					if l.Turn() != turns {
						t.Errorf("%d turns of an idle loop in an hour", l.Turn()-turns)
					}
					c.wake(l)
					if err := <-ended; err != nil {
						t.Error(err)
					}
				})
			})
			t.Run("kernel", func(t *testing.T) {
				l := newLoop(t, Config{})
				ended := background(t, l)
				for l.Turn() == 0 {
					runtime.Gosched()
				}
				c.wake(l)
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A loop can be looked at from other goroutines while it runs.
func TestAnyGoroutine(t *testing.T) {
	l := newLoop(t, Config{})
	e := openEndless(t, l, Share(), 0)
	ended := background(t, l)
	var last atomic.Uint64
	for range 4 {
		go func() {
			for {
				select {
				case <-l.Done():
					return
				default:
				}
				last.Store(l.Stats().Turns + l.Turn() + e.Stats().Received)
			}
		}()
	}
	for range 50 {
		done := make(chan struct{})
		if err := l.Post(func() { close(done) }); err != nil {
			t.Fatal(err)
		}
		<-done
	}
	l.Stop(-1)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if last.Load() == 0 {
		t.Error("nobody saw it run")
	}
}
