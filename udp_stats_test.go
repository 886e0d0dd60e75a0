package weir

import (
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/weirnet/weir/internal/memsys"
	"github.com/weirnet/weir/internal/sys"
)

// TestUDPStatsCounts holds each counter to the number of system calls and datagrams that there were.
func TestUDPStatsCounts(t *testing.T) {
	for _, row := range []struct {
		bound      Bound
		calls      uint64 // of receiving 100 datagrams; 0: depends on their cost
		boundStops uint64
	}{
		// 32, 32, 32, 4 and the EAGAIN.
		{Count(32), 5, 3},
		{Count(50), 5, 2}, // 32, 18, stop, 32, 18, stop, EAGAIN
		{Count(100), 5, 1},
		{Count(101), 5, 0},
		{Unbounded(), 5, 0},
		{Share(), 0, 0},
	} {
		t.Run(row.bound.String(), func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				const count, size = 100, 11
				l := newLoop(t, Config{NoGSO: true, Kernel: k})
				got := 0
				u := listen(t, l, row.bound, func(*UDP, *Datagram) {
					if got++; got == count {
						l.NextTurn(func() { l.NextTurn(func() { _ = l.Close() }) })
					}
				})
				from := listen(t, l, Bound{}, nil)
				for range count {
					mustSend(t, from, "hello world", u.LocalAddr())
				}
				from.flush()
				if s := from.Stats(); s.Sent != count || s.SentBytes != count*size || s.SendCalls != 2 ||
					s.SendLost != 0 || s.Unsent != 0 || s.Refused != 0 || s.Received != 0 {
					t.Errorf("the sender: %+v", s)
				}
				run(t, l)
				s := u.Stats()
				if s.Received != count || s.ReceivedBytes != count*size || s.ReceiveErrors != 0 || s.Truncated != 0 ||
					s.Discarded != 0 || s.KernelDropped != 0 || s.Sent != 0 || s.SendCalls != 0 {
					t.Errorf("the receiver: %+v", s)
				}
				if row.calls != 0 && (s.ReceiveCalls != row.calls || s.BoundStops != row.boundStops) {
					t.Errorf("%d receive calls, %d bound stops; want %d, %d", s.ReceiveCalls, s.BoundStops, row.calls, row.boundStops)
				}
				if s.ReceiveCalls < 4 {
					t.Errorf("%d receive calls for %d datagrams", s.ReceiveCalls, count)
				}
			})
		})
	}
}

// TestUDPStatsSendCalls: as few calls as 64 a call allow.
func TestUDPStatsSendCalls(t *testing.T) {
	for queued, calls := range map[int]uint64{1: 1, 63: 1, 64: 1, 65: 2, 100: 2, 128: 2, 129: 3} {
		onEachKernel(t, func(t *testing.T, k *Kernel) {
			l := newLoop(t, Config{NoGSO: true, Kernel: k})
			u := listen(t, l, Bound{}, nil)
			for range queued {
				mustSend(t, u, "x", u.LocalAddr())
			}
			l.NextTurn(func() { l.NextTurn(func() { _ = l.Close() }) })
			run(t, l)
			if s := u.Stats(); s.Sent != uint64(queued) || s.SendCalls != calls {
				t.Errorf("%d sent in %d calls, want %d in %d", s.Sent, s.SendCalls, queued, calls)
			}
		})
	}
}

// TestUDPShareSavesACall: under Share a short batch shows that the socket is empty, and no call is made to
// hear it.
func TestUDPShareSavesACall(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		u := listen(t, l, Share(), func(*UDP, *Datagram) {
			l.NextTurn(func() { l.NextTurn(func() { _ = l.Close() }) })
		})
		sendNow(t, listen(t, l, Bound{}, nil), u.LocalAddr(), 1)
		run(t, l)
		want := uint64(1)
		if l.fast.single {
			want = 2 // single calls have to see the EAGAIN, as an error may be behind the datagram
		}
		if s := u.Stats(); s.ReceiveCalls != want {
			t.Errorf("%d receive calls, want %d", s.ReceiveCalls, want)
		}
	})
}

// TestUDPKernelDropped holds "what the kernel dropped is counted and visible at once": what was sent was
// received or dropped, to the datagram.
func TestUDPKernelDropped(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		const count = 200
		l := newLoop(t, Config{NoGSO: true, Kernel: k})
		var u *UDP
		got := 0
		balanced := func() bool {
			s := u.Stats()
			if s.Received+s.KernelDropped > count {
				t.Fatalf("%d received, %d dropped, of %d", s.Received, s.KernelDropped, count)
			}
			return uint64(got)+s.KernelDropped == count
		}
		u = mustListen(t, l, loopback4, UDPConfig{RecvBufferBytes: 8192}, UDPHandler{OnDatagram: func(*UDP, *Datagram) { got++ }})
		if s := u.Stats(); s.RecvBufferBytes != 2*8192 || s.SendBufferBytes == 0 {
			t.Errorf("buffers of %d and %d bytes, want %d and some", s.RecvBufferBytes, s.SendBufferBytes, 2*8192)
		}
		sendNow(t, listen(t, l, Bound{}, nil), u.LocalAddr(), count)
		if s := u.Stats(); s.KernelDropped == 0 || s.KernelDropped == count {
			t.Errorf("%d dropped of %d before any was received", s.KernelDropped, count)
		}
		var look func()
		look = func() {
			if balanced() {
				_ = u.Close()
				_ = l.Close()
				return
			}
			l.NextTurn(look)
		}
		look()
		run(t, l)
		s := u.Stats()
		if uint64(got) != s.Received || s.Received+s.KernelDropped != count {
			t.Errorf("%d delivered, %d received, %d dropped, of %d", got, s.Received, s.KernelDropped, count)
		}
		if s.RecvBufferBytes != 0 || s.SendBufferBytes != 0 {
			t.Errorf("closed: buffers of %d and %d bytes, want 0", s.RecvBufferBytes, s.SendBufferBytes)
		}
		if all := l.Stats().UDP; all.KernelDropped != s.KernelDropped {
			t.Errorf("the loop counts %d dropped, want %d", all.KernelDropped, s.KernelDropped)
		}
	})
}

// TestUDPDropsWrap: the kernel's count has 32 bits.
func TestUDPDropsWrap(t *testing.T) {
	t.Parallel()
	var m memory
	total := uint64(0)
	for _, step := range []uint32{0, 1, 1 << 31, 1 << 31, 5, 1<<32 - 1} {
		total += uint64(step)
		m.count(sys.MemInfo{Drops: uint32(total)})
		if m.drops != total {
			t.Errorf("%d dropped, want %d", m.drops, total)
		}
	}
}

// TestUDPStatsOfLoop holds "sums over all UDP sockets, closed ones included".
func TestUDPStatsOfLoop(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{NoGSO: true, Kernel: k})
		sum := func(socks ...*UDP) (s UDPStats) {
			for _, u := range socks {
				s.add(u.Stats())
			}
			return s
		}
		got := 0
		var a, b, c *UDP
		check := func(when string) {
			if all, want := l.Stats().UDP, sum(a, b, c); all != want {
				t.Errorf("%s: the loop has\n%+v, its sockets\n%+v", when, all, want)
			}
		}
		closed := 0
		one := func() {
			if closed++; closed == 2 {
				l.NextTurn(func() { _ = l.Close() })
			}
		}
		a = listen(t, l, Count(1), func(u *UDP, d *Datagram) {
			check("in OnDatagram")
			if got++; got == 3 {
				_ = u.Close()
				check("after Close in OnDatagram")
				one()
			}
		})
		b = mustListen(t, l, loopback4, UDPConfig{MaxQueuedSends: 1, MaxDatagramBytes: 1}, UDPHandler{
			OnError: func(*UDP, error) { check("in OnError") },
			OnDrain: func(*UDP) { check("in OnDrain") },
			OnDatagram: func(u *UDP, d *Datagram) {
				_ = u.Close()
				check("after Close of the second")
				one()
			},
			OnClose: func(*UDP, error) { check("in OnClose") },
		})
		c = listen(t, l, Bound{}, nil)
		check("new")
		sendNow(t, c, a.LocalAddr(), 5)
		mustSend(t, b, "lost", nowhere)
		_ = b.Send(nil, nowhere)
		l.NextTurn(func() { l.NextTurn(func() { mustSend(t, c, "too long", b.LocalAddr()) }) })
		run(t, l)
		check("after Run")
		s := l.Stats().UDP
		if s.Received != 4 || s.Sent != 6 || s.SendLost != 1 || s.Refused != 1 || s.Truncated != 1 || s.BoundStops != 2 {
			t.Errorf("in all: %+v", s)
		}
	})
}

// TestUDPStatsAnyGoroutine reads statistics while sockets work, open and close.
func TestUDPStatsAnyGoroutine(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		const count = 200
		l := newLoop(t, Config{Kernel: k})
		got := 0
		u := listen(t, l, Bound{}, func(u *UDP, d *Datagram) {
			if got++; got == count {
				_ = l.Close()
				return
			}
			mustSend(t, u, "again", d.Source)
			_ = listen(t, l, Bound{}, nil).Close()
		})
		var readers sync.WaitGroup
		for range 2 {
			readers.Go(func() {
				var last, lastAll UDPStats
				for {
					s, all := u.Stats(), l.Stats().UDP
					if s.Received < last.Received || all.Received < lastAll.Received || s.Sent < last.Sent {
						t.Errorf("counters went back: %+v after %+v", s, last)
					}
					last, lastAll = s, all
					runtime.Gosched() // with one processor, the loop's turn is next
					select {
					case <-l.Done():
						return
					default:
					}
				}
			})
		}
		mustSend(t, u, "again", u.LocalAddr())
		run(t, l)
		readers.Wait()
		if s := u.Stats(); s.Received != count {
			t.Errorf("%d received, want %d", s.Received, count)
		}
	})
}

// TestUDPStatsErrors counts what a receive answered, and what Send did.
func TestUDPStatsErrors(t *testing.T) {
	net := memsys.New()
	l := newLoop(t, Config{Kernel: NewKernel(net.Backend())})
	u := mustListen(t, l, loopback4, UDPConfig{MaxQueuedSends: 2}, UDPHandler{})
	if err := net.BlockSends(u.fd, true); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if err := u.Send(nil, u.LocalAddr()); err != nil && !errors.Is(err, ErrWouldBlock) {
			t.Error(err)
		}
	}
	l.NextTurn(func() { l.NextTurn(func() { _ = l.Close() }) })
	run(t, l)
	if s := u.Stats(); s.Refused != 3 || s.Unsent != 2 || s.Sent != 0 || s.SendLost != 0 || s.SendCalls < 1 || s.SendCalls > 2 {
		t.Errorf("%+v; want 3 refused, 2 unsent, 1 call at the end of the turn and 1 at the close", s)
	}
}
