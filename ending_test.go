package weir

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirnet/weir/internal/memsys"
)

// openClosing opens a socket and notes what its OnClose hears.
func openClosing(t *testing.T, l *Loop, heard *[]error) *UDP {
	t.Helper()
	u, err := l.ListenUDP(loopback4, UDPConfig{}, UDPHandler{OnClose: func(_ *UDP, err error) { *heard = append(*heard, err) }})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// isDone tells whether Done says so.
func isDone(l *Loop) bool {
	select {
	case <-l.Done():
		return true
	default:
		return false
	}
}

// "Run … returns context.Cause(ctx) when the context ended it." "Whatever ends it, every source is closed and
// its OnClose has run when Run is left."
func TestEnds(t *testing.T) {
	cause := errors.New("enough")
	for _, c := range []struct {
		name    string
		end     func(l *Loop, cancel context.CancelCauseFunc) // before Run
		want    error
		onClose error
	}{
		{"the context, before Run", func(_ *Loop, cancel context.CancelCauseFunc) { cancel(cause) }, cause, ErrClosed},
		{"the context, from a callback", func(l *Loop, cancel context.CancelCauseFunc) {
			l.AfterFunc(time.Second, func() { cancel(cause) })
		}, cause, ErrClosed},
		{"the context, from a goroutine", func(_ *Loop, cancel context.CancelCauseFunc) {
			time.AfterFunc(time.Second, func() { cancel(cause) })
		}, cause, ErrClosed},
		{"the context, while a flood is on", func(l *Loop, cancel context.CancelCauseFunc) {
			u, _ := l.ListenUDP(loopback4, UDPConfig{Bound: Unbounded()}, UDPHandler{OnDatagram: func(u *UDP, d *Datagram) {
				time.Sleep(time.Millisecond)
				_ = u.Send(d.Payload, u.LocalAddr())
			}})
			_ = u.Send(nil, u.LocalAddr())
			time.AfterFunc(time.Second, func() { cancel(cause) })
		}, cause, ErrClosed},
		{"Close, from a callback", func(l *Loop, _ context.CancelCauseFunc) {
			l.AfterFunc(time.Second, func() { _ = l.Close(); _ = l.Close() })
		}, nil, ErrClosed},
		{"Close, from a goroutine", func(l *Loop, _ context.CancelCauseFunc) {
			time.AfterFunc(time.Second, func() { _ = l.Close(); _ = l.Close() })
		}, nil, ErrClosed},
		{"Close, then the context", func(l *Loop, cancel context.CancelCauseFunc) {
			l.AfterFunc(time.Second, func() { _ = l.Close(); cancel(cause); synctest.Wait() })
		}, nil, ErrClosed},
		{"Stop, from a callback", func(l *Loop, _ context.CancelCauseFunc) {
			l.AfterFunc(time.Second, func() { l.Stop(time.Hour); l.Stop(-1) })
		}, nil, nil},
		{"Stop, from a goroutine", func(l *Loop, _ context.CancelCauseFunc) {
			time.AfterFunc(time.Second, func() { l.Stop(-1) })
		}, nil, nil},
		{"Stop, then the context", func(l *Loop, cancel context.CancelCauseFunc) { // which cuts it short
			l.AfterFunc(time.Second, func() { l.Stop(-1); cancel(cause); synctest.Wait() })
		}, cause, ErrClosed},
		{"Stop, before Run", func(l *Loop, _ context.CancelCauseFunc) { l.Stop(-1) }, nil, nil},
		{"Stop(0), from a callback", func(l *Loop, _ context.CancelCauseFunc) {
			l.AfterFunc(time.Second, func() { l.Stop(0) })
		}, nil, ErrClosed},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, net *memsys.Net) {
				l := loopIn(t, net, Config{})
				var heard []error
				for range 3 {
					openClosing(t, l, &heard)
				}
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				c.end(l, cancel)
				if isDone(l) {
					t.Error("done before Run")
				}
				if err := l.Run(ctx); err != c.want {
					t.Errorf("Run: %v, want %v", err, c.want)
				}
				if want := []error{c.onClose, c.onClose, c.onClose}; !slices.Equal(heard, want) {
					t.Errorf("OnClose heard %v, want %v", heard, want)
				}
				checkEnded(t, l, net)
			})
		})
	}
}

// checkEnded holds what is so after the end, however it came.
func checkEnded(t *testing.T, l *Loop, net *memsys.Net) {
	t.Helper()
	if !isDone(l) {
		t.Error("Done is open")
	}
	if c := net.Calls(); c.Close != c.Socket || c.CloseAdded != 0 {
		t.Errorf("of %d sockets %d were closed, %d of them in the poller", c.Socket, c.Close, c.CloseAdded)
	}
	turns := l.Turn()
	if err := l.Run(t.Context()); err != ErrClosed {
		t.Errorf("Run again: %v", err)
	}
	if _, err := l.ListenUDP(loopback4, UDPConfig{}, UDPHandler{}); !errors.Is(err, ErrClosed) {
		t.Errorf("ListenUDP: %v", err)
	}
	if err := l.Post(func() {}); err != ErrClosed {
		t.Errorf("Post: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	l.Stop(0)
	l.Stop(time.Second)
	if err := l.Shutdown(t.Context()); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if l.Turn() != turns {
		t.Error("it made another turn")
	}
	_, _ = l.Stats(), l.Now()
}

// "ErrClosed … matches net.ErrClosed."
func TestErrClosed(t *testing.T) {
	if !errors.Is(ErrClosed, net.ErrClosed) {
		t.Error("it does not")
	}
}

// No turn is made where the context was done before Run.
func TestContextDoneBeforeRun(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		l.AfterFunc(0, func() { t.Error("a timer was called") })
		_ = l.Post(func() { t.Error("a posted function was called") })
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.Run(ctx); err != context.Canceled || l.Turn() != 0 {
			t.Errorf("Run: %v, after %d turns", err, l.Turn())
		}
	})
}

// "Before Run it closes the sources itself, at once …; a Run that follows only calls their OnClose."
func TestCloseUnrun(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(l *Loop)
	}{
		{"Close", func(l *Loop) { _ = l.Close() }},
		{"Close twice", func(l *Loop) { _, _ = l.Close(), l.Close() }},
		{"Stop(0)", func(l *Loop) { l.Stop(0) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, net *memsys.Net) {
				l := loopIn(t, net, Config{})
				var heard []error
				sockets := []*UDP{openClosing(t, l, &heard), openClosing(t, l, &heard)}
				_ = sockets[0].Send(nil, sockets[1].LocalAddr())
				l.AfterFunc(0, func() { t.Error("a timer was called") })
				_ = l.Post(func() { t.Error("a posted function was called") })
				c.end(l)
				if !isDone(l) || net.Calls().Close != 2 || len(heard) > 0 {
					t.Errorf("done: %v, with %d sockets closed; OnClose heard %v", isDone(l), net.Calls().Close, heard)
				}
				if err := sockets[0].Send(nil, loopback4); err != ErrClosed {
					t.Errorf("Send: %v", err)
				}
				if err := l.Run(t.Context()); err != nil {
					t.Errorf("Run: %v", err)
				}
				if !slices.Equal(heard, []error{ErrClosed, ErrClosed}) {
					t.Errorf("OnClose heard %v", heard)
				}
				checkEnded(t, l, net)
			})
		})
	}
}

// "Close ends the loop after the callback that runs now": nothing but OnError and OnClose is called then,
// whatever is due.
func TestNothingAfterClose(t *testing.T) {
	for _, from := range []string{"timer", "OnDatagram", "post", "next turn", "task", "OnDrain"} {
		t.Run(from, func(t *testing.T) {
			inBubble(t, func(t *testing.T, net *memsys.Net) {
				l := loopIn(t, net, Config{})
				closed, closes := false, 0
				call := func(kind string) {
					if closed {
						t.Errorf("%s was called after Close", kind)
					}
					if kind == from {
						closed = true
						_ = l.Close()
					}
				}
				for range 2 {
					l.AfterFunc(0, func() { call("timer") })
					_ = l.Post(func() { call("post") })
					l.NextTurn(func() { call("next turn") })
					l.Work(func() bool { call("task"); return true })
					u, err := l.ListenUDP(loopback4, UDPConfig{MaxQueuedSends: 1}, UDPHandler{
						OnDatagram: func(*UDP, *Datagram) { call("OnDatagram") },
						OnDrain:    func(*UDP) { call("OnDrain") },
						OnClose:    func(*UDP, error) { closes++ },
					})
					if err != nil {
						t.Fatal(err)
					}
					sendNow(t, u, u.LocalAddr(), 1)
					_, _ = u.Send(nil, u.LocalAddr()), u.Send(nil, u.LocalAddr())
				}
				run(t, l)
				if !closed || closes != 2 {
					t.Errorf("closed: %v, with %d calls of OnClose", closed, closes)
				}
			})
		})
	}
}

// "What the kernel has queued for them at that moment is read and delivered, what they have queued is sent,
// then they are closed", with OnClose(nil), though what is queued takes many turns.
func TestStopDelivers(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		for _, bound := range []Bound{Share(), Count(7), Unbounded()} {
			t.Run(bound.String(), func(t *testing.T) {
				const n = 200
				receiver := newLoop(t, Config{Kernel: k})
				answers := listen(t, receiver, Bound{}, nil)

				l := newLoop(t, Config{Kernel: k, MaxShare: minShare})
				var heard []error
				delivered := 0
				u, err := l.ListenUDP(loopback4, UDPConfig{Bound: bound}, UDPHandler{
					OnDatagram: func(u *UDP, d *Datagram) {
						delivered++
						if err := u.Send(d.Payload, answers.LocalAddr()); err != nil {
							t.Error(err)
						}
					},
					OnClose: func(_ *UDP, err error) { heard = append(heard, err) },
				})
				if err != nil {
					t.Fatal(err)
				}
				quiet := openClosing(t, l, &heard)
				sendNow(t, answers, u.LocalAddr(), n)
				if err := quiet.Send([]byte("last words"), answers.LocalAddr()); err != nil {
					t.Error(err)
				}
				l.AfterFunc(0, func() { l.Stop(-1) })
				run(t, l)
				if delivered != n || !slices.Equal(heard, []error{nil, nil}) {
					t.Errorf("%d datagrams of %d were delivered, OnClose heard %v", delivered, n, heard)
				}
				if s := l.Stats().UDP; s.Sent != n+1 || s.Unsent != 0 || s.Discarded != 0 {
					t.Errorf("sent %d of %d, unsent %d, discarded %d", s.Sent, n+1, s.Unsent, s.Discarded)
				}
			})
		}
	})
}

// What cannot be sent at once is waited for, as long as the grace lasts.
func TestStopFlushes(t *testing.T) {
	for _, c := range []struct {
		name      string
		unblocked time.Duration
		want      error
		sent      uint64
	}{
		{"in time", 500 * time.Millisecond, nil, 10},
		{"too late", 2 * time.Second, ErrClosed, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, net *memsys.Net) {
				l := loopIn(t, net, Config{})
				var heard []error
				u := openClosing(t, l, &heard)
				if err := net.BlockSends(u.fd, true); err != nil {
					t.Fatal(err)
				}
				unblock := time.AfterFunc(c.unblocked, func() { _ = net.BlockSends(u.fd, false) })
				defer unblock.Stop()
				sendNow(t, u, listen(t, l, Bound{}, nil).LocalAddr(), 10)
				l.Stop(time.Second)
				start := time.Now()
				run(t, l)
				if took, want := time.Since(start), min(c.unblocked, time.Second); took != want {
					t.Errorf("it took %v, want %v", took, want)
				}
				if s := u.Stats(); s.Sent != c.sent || s.Unsent != 10-c.sent || !slices.Equal(heard, []error{c.want}) {
					t.Errorf("%d sent and %d not, OnClose heard %v", s.Sent, s.Unsent, heard)
				}
			})
		})
	}
}

// A flood does not keep a Stop from ending: no more is read than the kernel's queue can have held.
func TestStopInAFlood(t *testing.T) {
	for _, bound := range []Bound{Share(), Count(32), Unbounded()} {
		for _, cost := range []time.Duration{5 * time.Microsecond, 20 * time.Microsecond, 2 * time.Millisecond} {
			t.Run(fmt.Sprint(bound, " ", cost), func(t *testing.T) {
				inBubble(t, func(t *testing.T, net *memsys.Net) {
					l := loopIn(t, net, Config{})
					e := openEndless(t, l, bound, cost)
					limit := e.queuedAtMost() + 2*recvSlots // the batch in which it comes, and the last one
					time.AfterFunc(50*time.Millisecond, func() { l.Stop(time.Hour) })
					before := 0
					e.each = func() {
						if l.end.stage() == stageRunning {
							before++
						}
					}
					start := time.Now()
					if err := l.Run(t.Context()); err != nil {
						t.Fatal(err)
					}
					after := e.calls - before
					if after > limit {
						t.Errorf("%d datagrams after Stop, want at most %d", after, limit)
					}
					if took := time.Since(start) - 50*time.Millisecond; took > time.Duration(limit+1)*cost {
						t.Errorf("it took %v", took)
					}
				})
			})
		}
	}
}

// A handler whose cost varies stops in the middle of its batches; that is not the end of them.
func TestStopInAFloodOfKeptBatches(t *testing.T) {
	for _, period := range []int{3, 7, 11, 23, 31, 33, 40, 57} {
		t.Run(fmt.Sprint(period), func(t *testing.T) {
			inBubble(t, func(t *testing.T, net *memsys.Net) {
				l := loopIn(t, net, Config{})
				n := 0
				u := listen(t, l, Share(), func(u *UDP, d *Datagram) {
					if n++; n%period == 0 {
						time.Sleep(70 * time.Microsecond)
					} else {
						time.Sleep(time.Microsecond)
					}
					_ = u.Send(d.Payload, u.LocalAddr())
				})
				sendNow(t, u, u.LocalAddr(), 200)
				limit := u.queuedAtMost() + 2*recvSlots // what was kept before, and the last batch
				l.AfterFunc(10*time.Millisecond, func() { n = 0; l.Stop(-1) })
				run(t, l)
				if n > limit {
					t.Errorf("%d datagrams after Stop, want at most %d", n, limit)
				}
			})
		})
	}
}

// A socket that is paused while it is stopped goes on when it is resumed; the grace has an end.
func TestStopAndPause(t *testing.T) {
	for _, c := range []struct {
		name      string
		queued    int
		pauseAt   int
		resumed   time.Duration
		delivered int
		took      time.Duration
		want      error
	}{
		{"before", 3, 0, 0, 3, 0, nil},
		{"by the last of a batch that is not full", 3, 3, time.Hour, 3, 0, nil},
		{"by the last of a full batch", 32, 32, 300 * time.Millisecond, 32, 300 * time.Millisecond, nil},
		{"in the middle", 3, 1, 300 * time.Millisecond, 3, 300 * time.Millisecond, nil},
		{"for good", 3, 1, time.Hour, 1, time.Second, ErrClosed},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, net *memsys.Net) {
				l := loopIn(t, net, Config{})
				var heard []error
				delivered := 0
				u, err := l.ListenUDP(loopback4, UDPConfig{}, UDPHandler{
					OnDatagram: func(u *UDP, _ *Datagram) {
						if delivered++; delivered == c.pauseAt {
							u.Pause()
							l.AfterFunc(c.resumed, u.Resume)
						}
					},
					OnClose: func(_ *UDP, err error) { heard = append(heard, err) },
				})
				if err != nil {
					t.Fatal(err)
				}
				u.Pause()
				sendNow(t, u, u.LocalAddr(), c.queued)
				l.Stop(time.Second)
				start := time.Now()
				run(t, l)
				if took := time.Since(start); took != c.took || delivered != c.delivered || !slices.Equal(heard, []error{c.want}) {
					t.Errorf("%d delivered, it took %v, OnClose heard %v", delivered, took, heard)
				}
			})
		})
	}
}

// "After grace the loop is closed with what is left": the shortest grace given counts.
func TestStopGrace(t *testing.T) {
	for _, c := range []struct {
		name  string
		stops func(l *Loop)
		want  time.Duration
	}{
		{"once", func(l *Loop) { l.Stop(time.Second) }, time.Second},
		{"a shorter one at once", func(l *Loop) { l.Stop(time.Hour); l.Stop(time.Second) }, time.Second},
		{"a longer one at once", func(l *Loop) { l.Stop(time.Second); l.Stop(time.Hour) }, time.Second},
		{"then without limit", func(l *Loop) { l.Stop(time.Second); l.Stop(-1) }, time.Second},
		{"a limit later", func(l *Loop) {
			l.Stop(-1)
			l.AfterFunc(500*time.Millisecond, func() { l.Stop(time.Second) })
		}, 1500 * time.Millisecond},
		{"then Close", func(l *Loop) {
			l.Stop(-1)
			l.AfterFunc(500*time.Millisecond, func() { l.Stop(0) })
		}, 500 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, net *memsys.Net) {
				l := loopIn(t, net, Config{})
				var heard []error
				u := openClosing(t, l, &heard)
				if err := net.BlockSends(u.fd, true); err != nil {
					t.Fatal(err)
				}
				sendNow(t, u, u.LocalAddr(), 1)
				ticks := 0
				l.Every(100*time.Millisecond, func() { ticks++ }) // "timers go on until then"
				c.stops(l)
				start := time.Now()
				run(t, l)
				if took := time.Since(start); took != c.want || ticks < int(c.want/(100*time.Millisecond))-1 {
					t.Errorf("it took %v with %d ticks, want %v", took, ticks, c.want)
				}
				if !slices.Equal(heard, []error{ErrClosed}) {
					t.Errorf("OnClose heard %v", heard)
				}
			})
		})
	}
}

// "Timers, tasks and next-turn functions are not waited for": an end without a socket is at once.
func TestStopWaitsForNobodyElse(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		l.AfterFunc(time.Hour, func() { t.Error("a timer was called") })
		l.Every(time.Second, func() {})
		l.Work(func() bool { time.Sleep(time.Millisecond); return true })
		var again func()
		again = func() { l.NextTurn(again) }
		again()
		l.AfterFunc(10*time.Millisecond, func() { l.Stop(time.Hour) })
		start := time.Now()
		run(t, l)
		if took := time.Since(start); took > 14*time.Millisecond {
			t.Errorf("it took %v", took-10*time.Millisecond)
		}
	})
}

// "Functions that were posted before are run", all of them and those alone are waited for; at Close they are
// dropped.
func TestPostsAtTheEnd(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(l *Loop)
		want int
	}{
		{"Stop", func(l *Loop) { l.Stop(-1) }, 1000},
		{"Close", func(l *Loop) { _ = l.Close() }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, net *memsys.Net) {
				l := loopIn(t, net, Config{})
				ran := 0
				l.AfterFunc(0, func() {
					for range 1000 {
						if err := l.Post(func() { ran++; time.Sleep(10 * time.Microsecond) }); err != nil {
							t.Error(err)
						}
					}
					c.end(l)
				})
				run(t, l)
				if ran != c.want {
					t.Errorf("%d ran of 1,000, want %d", ran, c.want)
				}
			})
		})
	}
	t.Run("posted for ever", func(t *testing.T) {
		inBubble(t, func(t *testing.T, net *memsys.Net) {
			l := loopIn(t, net, Config{})
			n := 0
			var again func()
			again = func() { n++; time.Sleep(time.Microsecond); _ = l.Post(again) }
			again()
			l.AfterFunc(time.Millisecond, func() { n = 0; l.Stop(-1) })
			run(t, l)
			if n > 200 {
				t.Errorf("%d ran after Stop, want no more than two visits", n)
			}
		})
	})
}

// "Shutdown is Stop, and waits until Run has returned. When the context is done first, it closes the loop."
func TestShutdown(t *testing.T) {
	cause := errors.New("enough")
	for _, c := range []struct {
		name      string
		unblocked time.Duration
		want      error
		onClose   error
	}{
		{"waits", 500 * time.Millisecond, nil, nil},
		{"the context is done first", 2 * time.Second, cause, ErrClosed},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, net *memsys.Net) {
				l := loopIn(t, net, Config{})
				var heard []error
				u := openClosing(t, l, &heard)
				if err := net.BlockSends(u.fd, true); err != nil {
					t.Fatal(err)
				}
				sendNow(t, u, u.LocalAddr(), 1)
				unblock := time.AfterFunc(c.unblocked, func() { _ = net.BlockSends(u.fd, false) })
				defer unblock.Stop()
				ended := background(t, l)
				synctest.Wait()
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
				defer cancel()
				var all sync.WaitGroup
				for range 3 {
					all.Go(func() {
						if err := l.Shutdown(ctx); err != c.want {
							t.Errorf("Shutdown: %v, want %v", err, c.want)
						}
						if c.want == nil && !isDone(l) {
							t.Error("it did not wait for Run")
						}
					})
				}
				all.Wait()
				if err := <-ended; err != nil {
					t.Errorf("Run: %v", err)
				}
				if !slices.Equal(heard, []error{c.onClose}) {
					t.Errorf("OnClose heard %v", heard)
				}
			})
		})
	}
}

// "StopWhenIdle ends Run when no socket, timer, task and queued function is left."
func TestStopWhenIdle(t *testing.T) {
	const d = 10 * time.Millisecond
	for _, c := range []struct {
		name string
		work func(t *testing.T, l *Loop)
		want time.Duration
	}{
		{"nothing", func(*testing.T, *Loop) {}, 0},
		{"a timer", func(_ *testing.T, l *Loop) { l.AfterFunc(d, func() {}) }, d},
		{"a stopped timer", func(_ *testing.T, l *Loop) { l.AfterFunc(d, func() {}).Stop() }, 0},
		{"a timer that stops the last one", func(_ *testing.T, l *Loop) {
			other := l.Every(d, func() {})
			l.AfterFunc(d/2, func() { other.Stop() })
		}, d / 2},
		{"a task", func(_ *testing.T, l *Loop) {
			steps := 0
			l.Work(func() bool { time.Sleep(time.Millisecond); steps++; return steps < 10 })
		}, d},
		{"a task that rests", func(_ *testing.T, l *Loop) { l.Work(func() bool { return false }) }, 0},
		{"a posted function", func(_ *testing.T, l *Loop) { _ = l.Post(func() { time.Sleep(d) }) }, d},
		{"a next-turn function", func(_ *testing.T, l *Loop) {
			l.NextTurn(func() { l.NextTurn(func() { l.NextTurn(func() { time.Sleep(d) }) }) })
		}, d},
		{"a socket", func(t *testing.T, l *Loop) {
			u := listen(t, l, Bound{}, nil)
			l.AfterFunc(d, func() { _ = u.Close() })
		}, d},
		{"an OnClose", func(t *testing.T, l *Loop) {
			u, err := l.ListenUDP(loopback4, UDPConfig{}, UDPHandler{OnClose: func(*UDP, error) { time.Sleep(d) }})
			if err != nil {
				t.Fatal(err)
			}
			_ = u.Close()
		}, d},
		{"an OnClose that posts", func(t *testing.T, l *Loop) {
			u, err := l.ListenUDP(loopback4, UDPConfig{}, UDPHandler{OnClose: func(*UDP, error) {
				_ = l.Post(func() { l.AfterFunc(d, func() {}) })
			}})
			if err != nil {
				t.Fatal(err)
			}
			_ = u.Close()
		}, d},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, net *memsys.Net) {
				l := loopIn(t, net, Config{StopWhenIdle: true})
				c.work(t, l)
				start := time.Now()
				run(t, l)
				if took := time.Since(start); took != c.want {
					t.Errorf("it ended after %v, want %v", took, c.want)
				}
			})
		})
	}
}

// The poller's error ends Run, with the usual consequences.
func TestPollerFails(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		var heard []error
		openClosing(t, l, &heard)
		l.AfterFunc(time.Second, func() { _ = l.poller.Close() })
		var op *OpError
		if err := l.Run(t.Context()); !errors.As(err, &op) || op.Op != "wait" {
			t.Errorf("Run: %v", err)
		}
		if !slices.Equal(heard, []error{ErrClosed}) {
			t.Errorf("OnClose heard %v", heard)
		}
		if !isDone(l) {
			t.Error("Done is open")
		}
	})
}

// Close, Stop, Shutdown and the context at once, on the real kernel: it ends, once.
func TestEndsAtOnce(t *testing.T) {
	for range 20 {
		l := newLoop(t, Config{})
		var heard []error
		openClosing(t, l, &heard)
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() { result <- l.Run(ctx) }()
		for l.Turn() == 0 {
			runtime.Gosched()
		}
		var all sync.WaitGroup
		for _, end := range []func(){
			cancel,
			func() { _ = l.Close() },
			func() { l.Stop(time.Hour) },
			func() { _ = l.Shutdown(context.Background()) },
			func() { _ = l.Post(func() {}) },
			func() { <-l.Done() },
		} {
			all.Go(end)
		}
		all.Wait()
		if err := <-result; err != nil && err != context.Canceled {
			t.Errorf("Run: %v", err)
		}
		if len(heard) != 1 || heard[0] != nil && heard[0] != ErrClosed {
			t.Errorf("OnClose heard %v", heard)
		}
		cancel()
	}
}

// "It waits for a Run that has not begun, too": what was posted before it begins is run, and sockets hear a nil
// error.
func TestShutdownBeforeRun(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		var heard []error
		openClosing(t, l, &heard)
		ran := false
		_ = l.Post(func() { ran = true })
		shut := make(chan error, 1)
		go func() { shut <- l.Shutdown(context.Background()) }()
		synctest.Wait()
		if err := l.Run(t.Context()); err != nil {
			t.Errorf("Run: %v", err)
		}
		if err := <-shut; err != nil || !ran || !slices.Equal(heard, []error{nil}) {
			t.Errorf("Shutdown: %v; the function ran: %t; OnClose heard %v", err, ran, heard)
		}
	})
}

// A function that Post took during a Stop is called: nil means so.
func TestPostsDuringStop(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		listen(t, l, Bound{}, nil)
		var taken, ran atomic.Int64
		var posters sync.WaitGroup
		for range 4 {
			posters.Go(func() {
				for {
					switch err := l.Post(func() { ran.Add(1) }); err {
					case nil:
						taken.Add(1)
					case ErrWouldBlock:
						runtime.Gosched()
					default:
						return
					}
				}
			})
		}
		l.AfterFunc(time.Millisecond, func() { l.Stop(-1) })
		run(t, l)
		posters.Wait()
		if taken.Load() != ran.Load() {
			t.Errorf("%d functions were taken, %d called", taken.Load(), ran.Load())
		}
	})
}
