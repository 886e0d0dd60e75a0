package weir

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/weirnet/weir/internal/memsys"
	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sock"
	"github.com/weirnet/weir/internal/sys"
)

// foreign is a UDP socket that the loop knows by a Watch alone.
type foreign struct {
	t     *testing.T
	k     sys.Kernel
	fd    int
	local netip.AddrPort
	batch *sys.RecvBatch
}

func openForeign(t *testing.T, k sys.Kernel) *foreign {
	t.Helper()
	fd, _, err := sock.OpenUDP(k, sock.UDPOptions{Local: loopback4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close(fd) })
	local, err := k.LocalAddr(fd)
	if err != nil {
		t.Fatal(err)
	}
	return &foreign{t, k, fd, local, sys.NewRecvBatch(1, slotBytes)}
}

// take receives one datagram and tells whether there was one.
func (f *foreign) take() bool {
	_, err := f.k.Recv(f.fd, f.batch, 1)
	if err != nil && err != syscall.EAGAIN {
		f.t.Error(err)
	}
	return err == nil
}

func watchFD(t *testing.T, l *Loop, fd int, h WatchHandler) *Watch {
	t.Helper()
	w, err := l.Watch(fd, h)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// "What it leaves is not lost: it is called again." "The descriptor may be closed when Close returns."
func TestWatch(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		const n = 5
		l := newLoop(t, Config{Kernel: k})
		f := openForeign(t, k.backend.Kernel)
		calls, heard := 0, []error{}
		h := WatchHandler{
			OnReadable: func(w *Watch) {
				if calls++; !f.take() {
					t.Error("nothing to read")
				}
				if calls == n {
					if w.FD() != f.fd || w.Close() != nil || w.Close() != ErrClosed {
						t.Error("Close")
					}
				}
			},
			OnWritable: func(*Watch) { t.Error("OnWritable, which nobody wanted") },
			OnClose: func(_ *Watch, err error) {
				heard = append(heard, err)
				l.AfterFunc(time.Millisecond, func() { _ = l.Close() })
			},
		}
		watchFD(t, l, f.fd, h)
		if w, err := l.Watch(f.fd, h); w != nil || !errors.Is(err, syscall.EEXIST) {
			t.Errorf("twice: %v", err)
		}
		sendNow(t, listen(t, l, Bound{}, nil), f.local, n+1)
		run(t, l)
		if calls != n || len(heard) != 1 || heard[0] != nil {
			t.Errorf("%d calls, OnClose heard %v", calls, heard)
		}
		if _, err := l.Watch(f.fd, h); !errors.Is(err, ErrClosed) {
			t.Errorf("after the end: %v", err)
		}
	})
}

func TestWatchRefuses(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		_, err := l.Watch(-1, WatchHandler{})
		var op *OpError
		if !errors.As(err, &op) || op.Op != "watch" || op.Net != "fd" || !errors.Is(err, syscall.EBADF) {
			t.Errorf("no descriptor: %v", err)
		}
		if l.table.len() != 0 || len(l.watches) != 0 {
			t.Error("it was left behind")
		}
		f := openForeign(t, k.backend.Kernel)
		w := watchFD(t, l, f.fd, WatchHandler{})
		w.endTurn() // nothing is wanted, so that the poller does not know it any more
		if _, err := l.Watch(f.fd, WatchHandler{}); !errors.Is(err, syscall.EEXIST) {
			t.Errorf("while it wants nothing: %v", err)
		}
		_ = w.Close()
		watchFD(t, l, f.fd, WatchHandler{})
	})
}

// Pause ends the calls at once, Resume brings them back, and room to write is told only who wants it.
func TestWatchInterest(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		f := openForeign(t, k.backend.Kernel)
		reads, writes := 0, 0
		w := watchFD(t, l, f.fd, WatchHandler{
			OnReadable: func(w *Watch) {
				switch reads++; reads {
				case 1:
					w.Pause()
					w.WantWritable(true)
				case 2:
					w.WantWritable(true) // and read nothing: both are ready
				case 3:
				default:
					_ = w.Close()
				}
			},
			OnWritable: func(w *Watch) {
				switch writes++; {
				case writes == 3:
					w.WantWritable(false)
					l.AfterFunc(5*time.Millisecond, func() {
						if reads != 1 || writes != 3 || !w.outside {
							t.Errorf("%d reads and %d writes while nothing was wanted", reads, writes)
						}
						w.Resume()
					})
				case writes > 3 && reads == 3:
					w.WantWritable(false)
				}
			},
			OnClose: func(*Watch, error) { _ = l.Close() },
		})
		sendNow(t, listen(t, l, Bound{}, nil), f.local, 1)
		run(t, l)
		if reads != 4 || writes != 4 || !w.closed {
			t.Errorf("%d reads, %d writes", reads, writes)
		}
	})
}

// A callback that closes the watch is the last, also where the descriptor is writable as well.
func TestWatchClosesBetween(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		f := openForeign(t, l.kernel)
		w := watchFD(t, l, f.fd, WatchHandler{
			OnReadable: func(w *Watch) { _ = w.Close() },
			OnWritable: func(*Watch) { t.Error("OnWritable after Close") },
		})
		w.WantWritable(true)
		w.syncInterest()
		sendNow(t, listen(t, l, Bound{}, nil), f.local, 1)
		runFor(t, l, time.Second)
	})
}

// "A Stop of the loop calls the handler once more for what is ready at that moment, resumed if it was paused, and
// then closes the watch": also of more than a look at the poller tells of.
func TestWatchStops(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		const n = 3 * maxEvents
		l := newLoop(t, Config{Kernel: k})
		sender := listen(t, l, Bound{}, nil)
		calls, closed := 0, 0
		for i := range n {
			f := openForeign(t, k.backend.Kernel)
			w := watchFD(t, l, f.fd, WatchHandler{
				OnReadable: func(*Watch) { calls++ }, // and reads nothing
				OnClose: func(_ *Watch, err error) {
					if closed++; err != nil {
						t.Error(err)
					}
				},
			})
			switch i % 3 {
			case 0:
				w.Pause()
				sendNow(t, sender, f.local, 1)
			case 1:
				sendNow(t, sender, f.local, 2)
			}
		}
		l.Stop(-1)
		ctx, cancel := context.WithTimeout(t.Context(), runTimeout)
		defer cancel()
		if err := l.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if ready := n / 3 * 2; calls != ready || closed != n {
			t.Errorf("%d calls for %d that were ready; %d of %d closed", calls, ready, closed, n)
		}
	})
}

// A Stop that comes while the loop waits, or is busy with others, closes one that has nothing to read.
func TestWatchStopsIdle(t *testing.T) {
	for _, busy := range []bool{false, true} {
		t.Run(fmt.Sprint("busy ", busy), func(t *testing.T) {
			inBubble(t, func(t *testing.T, net *memsys.Net) {
				l := loopIn(t, net, Config{})
				f := openForeign(t, l.kernel)
				var heard []error
				watchFD(t, l, f.fd, WatchHandler{
					OnReadable: func(*Watch) { t.Error("OnReadable") },
					OnClose:    func(_ *Watch, err error) { heard = append(heard, err) },
				})
				if busy {
					l.Work(func() bool { time.Sleep(10 * time.Microsecond); return true })
				}
				l.AfterFunc(time.Second, func() { l.Stop(-1) })
				run(t, l)
				if len(heard) != 1 || heard[0] != nil {
					t.Errorf("OnClose heard %v", heard)
				}
			})
		})
	}
}

// "a descriptor that is always ready is served once a look at the poller, for as much time as others that are busy
// get": a socket has half of the time beside it, and a timer waits for one callback at most.
func TestWatchIsBounded(t *testing.T) {
	for _, bound := range []Bound{Share(), Unbounded()} {
		t.Run(bound.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, net *memsys.Net) {
				const cost, length = time.Millisecond, time.Second
				l := loopIn(t, net, Config{Bound: bound})
				e := openEndless(t, l, Share(), 10*time.Microsecond)
				f := openForeign(t, l.kernel)
				var spent, latest time.Duration
				watchFD(t, l, f.fd, WatchHandler{OnReadable: func(*Watch) { time.Sleep(cost); spent += cost }})
				sendNow(t, e.UDP, f.local, 1)
				start := time.Now()
				for due := 7 * time.Millisecond; due < length; due += 7 * time.Millisecond {
					l.AfterFunc(due, func() { latest = max(latest, time.Since(start)-due) })
				}
				runFor(t, l, length)
				if part := float64(spent) / float64(spent+e.time); part < 0.4 || part > 0.6 {
					t.Errorf("the watch has had %.2f of the time: %v, and the socket %v", part, spent, e.time)
				}
				if latest > cost+minShare {
					t.Errorf("a timer was %v late", latest)
				}
			})
		})
	}
}

// A poller that refuses a watch that comes back closes it with what it said.
func TestWatchFails(t *testing.T) {
	for _, c := range []struct{ name, plan string }{
		{"add", "add#2=ENOSPC"}, {"modify", "modify#1=ENOSPC"}, {"remove", "remove#1=ENOSPC"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, net *memsys.Net) {
				l := loopIn(t, net, Config{Faults: plan(t, c.plan)})
				f := openForeign(t, l.kernel)
				var heard error
				w := watchFD(t, l, f.fd, WatchHandler{
					OnReadable: func(*Watch) {}, OnWritable: func(*Watch) {},
					OnClose: func(_ *Watch, err error) { heard = err; _ = l.Close() },
				})
				l.AfterFunc(time.Millisecond, w.Pause)
				l.AfterFunc(2*time.Millisecond, w.Resume)
				l.AfterFunc(3*time.Millisecond, func() { w.WantWritable(true); l.AfterFunc(0, w.Pause) })
				run(t, l)
				var op *OpError
				if !errors.As(heard, &op) || op.Op != "poll" || !errors.Is(heard, syscall.ENOSPC) {
					t.Errorf("OnClose heard %v", heard)
				}
			})
		})
	}
}

// What the poller told before is forgotten when a watch is paused, and when it leaves the poller.
func TestWatchForgets(t *testing.T) {
	for name, then := range map[string]func(w *Watch){
		"paused":            func(*Watch) {},
		"away and back":     func(w *Watch) { w.endTurn(); w.Resume() },
		"away, and waiting": func(w *Watch) { w.endTurn() },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, net *memsys.Net) {
				l := loopIn(t, net, Config{})
				f := openForeign(t, l.kernel)
				w := watchFD(t, l, f.fd, WatchHandler{OnReadable: func(*Watch) { t.Error("OnReadable") }})
				w.ready(poll.Readable)
				w.Pause()
				then(w)
				runFor(t, l, time.Second)
			})
		})
	}
}
