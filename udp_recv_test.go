package weir

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirnet/weir/internal/memsys"
	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
)

// pattern is n bytes that tell which datagram they are of.
func pattern(seed, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(seed*31 + i*7 + i>>8)
	}
	return b
}

// TestUDPSizes sends datagrams of special sizes; by default all arrive whole.
func TestUDPSizes(t *testing.T) {
	for _, row := range []struct {
		name  string
		local netip.AddrPort
		sizes []int
	}{
		{"IPv4", loopback4, []int{0, 1, 0, 1472, 2048, 9000, 0, maxPayload4}},
		{"IPv6", loopback6, []int{0, 1, 0, 1452, 2048, 9000, 0, maxPayload6}},
	} {
		t.Run(row.name, func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				l := newLoop(t, Config{Kernel: k})
				if row.local == loopback6 {
					needIPv6(t, l)
				}
				next := 0
				u := mustListen(t, l, row.local, UDPConfig{}, UDPHandler{OnDatagram: func(_ *UDP, d *Datagram) {
					if want := pattern(next, row.sizes[next]); !bytes.Equal(d.Payload, want) || d.Truncated {
						t.Errorf("datagram %d: %d bytes, truncated %v; want %d", next, len(d.Payload), d.Truncated, len(want))
					}
					if next++; next == len(row.sizes) {
						_ = l.Close()
					}
				}})
				from := mustListen(t, l, row.local, UDPConfig{}, UDPHandler{})
				for i, size := range row.sizes {
					if err := from.Send(pattern(i, size), u.LocalAddr()); err != nil {
						t.Fatal(err)
					}
				}
				run(t, l)
				if s := u.Stats(); s.Truncated != 0 {
					t.Errorf("%d truncated", s.Truncated)
				}
			})
		})
	}
}

// TestUDPTruncation holds "MaxDatagramBytes is the most of a datagram that is delivered; the rest of a
// longer one is cut off, which Datagram.Truncated tells", also for datagrams that a visit left behind.
func TestUDPTruncation(t *testing.T) {
	const most = 100
	sizes := []int{0, 99, 100, 101, 2000, 65_507, 100}
	for _, pause := range []bool{false, true} {
		t.Run(fmt.Sprintf("pause %v", pause), func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				l := newLoop(t, Config{Kernel: k})
				next := 0
				u := mustListen(t, l, loopback4, UDPConfig{MaxDatagramBytes: most}, UDPHandler{
					OnDatagram: func(u *UDP, d *Datagram) {
						want := pattern(next, sizes[next])[:min(most, sizes[next])]
						if !bytes.Equal(d.Payload, want) || d.Truncated != (sizes[next] > most) {
							t.Errorf("%d bytes: got %d, truncated %v", sizes[next], len(d.Payload), d.Truncated)
						}
						if next++; next == len(sizes) {
							_ = l.Close()
						}
						if pause {
							u.Pause()
							l.NextTurn(u.Resume)
						}
					}})
				from := listen(t, l, Bound{}, nil)
				for i, size := range sizes {
					if err := from.Send(pattern(i, size), u.LocalAddr()); err != nil {
						t.Fatal(err)
					}
				}
				run(t, l)
				if s := u.Stats(); s.Truncated != 3 {
					t.Errorf("%d truncated, want 3", s.Truncated)
				}
			})
		})
	}
}

// cutting is a kernel that says it cut every second datagram.
type cutting struct{ sys.Kernel }

func (k cutting) Recv(fd int, b *sys.RecvBatch, n int) (int, error) {
	got, err := k.Kernel.Recv(fd, b, n)
	for i := range got {
		if b.Msgs[i].Buf[0]%2 == 1 {
			b.Msgs[i].Flags |= sys.Truncated
		}
	}
	return got, err
}

// TestUDPTruncatedByKernel: what the kernel cut is told, too.
func TestUDPTruncatedByKernel(t *testing.T) {
	backend := memsys.New().Backend()
	backend.Kernel = cutting{backend.Kernel}
	l := newLoop(t, Config{Kernel: NewKernel(backend), NoGSO: true})
	got := 0
	u := listen(t, l, Bound{}, func(u *UDP, d *Datagram) {
		if d.Truncated != (d.Payload[0]%2 == 1) {
			t.Errorf("datagram %d: truncated %v", d.Payload[0], d.Truncated)
		}
		switch got++; got {
		case 3:
			u.Pause()
			l.NextTurn(u.Resume)
		case 10:
			_ = l.Close()
		}
	})
	sendNow(t, listen(t, l, Bound{}, nil), u.LocalAddr(), 10)
	run(t, l)
	if s := u.Stats(); s.Truncated != 5 {
		t.Errorf("%d truncated, want 5", s.Truncated)
	}
}

// TestUDPPayloadMayBeWritten holds "the payload may be written to": neither the next datagram nor one that
// is kept sees it.
func TestUDPPayloadMayBeWritten(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		next := 0
		u := listen(t, l, Unbounded(), func(u *UDP, d *Datagram) {
			if !bytes.Equal(d.Payload, pattern(next, 10*next)) {
				t.Errorf("datagram %d was changed: %x", next, d.Payload)
			}
			all := d.Payload[:cap(d.Payload)]
			for i := range all {
				all[i] = 0xee
			}
			if next++; next == 60 {
				_ = l.Close()
			}
			if next%7 == 0 {
				u.Pause()
				l.NextTurn(u.Resume)
			}
		})
		from := listen(t, l, Bound{}, nil)
		for i := range 60 {
			if err := from.Send(pattern(i, 10*i), u.LocalAddr()); err != nil {
				t.Fatal(err)
			}
		}
		run(t, l)
	})
}

// TestUDPPause holds "Pause stops the delivery of datagrams, at once also in the middle of a batch; those
// that were received already are kept".
func TestUDPPause(t *testing.T) {
	for _, bound := range []Bound{Share(), Count(32), Count(3), Unbounded()} {
		t.Run(bound.String(), func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				l := newLoop(t, Config{Kernel: k})
				from := listen(t, l, Bound{}, nil)
				var got []byte
				paused := false
				u := listen(t, l, bound, func(u *UDP, d *Datagram) {
					if paused {
						t.Error("OnDatagram while paused")
					}
					got = append(got, d.Payload[0])
					switch len(got) {
					case 10, 11, 20: // before, at the beginning and in the middle of what was kept
						paused = true
						u.Pause()
						received := u.Stats().Received
						sendNow(t, from, u.LocalAddr(), 5)
						l.NextTurn(func() {
							l.NextTurn(func() {
								if u.Stats().Received != received {
									t.Errorf("received while paused: %d, then %d", received, u.Stats().Received)
								}
								paused = false
								u.Resume()
								u.Resume() // again does nothing
							})
						})
					case 55:
						_ = l.Close()
					}
				})
				sendNow(t, from, u.LocalAddr(), 40)
				run(t, l)
				want := []byte{}
				for _, n := range []int{40, 5, 5, 5} {
					for i := range n {
						want = append(want, byte(i))
					}
				}
				if !bytes.Equal(got, want) {
					t.Errorf("got %v, want %v", got, want)
				}
			})
		})
	}
}

// TestUDPPauseAndResumeAtOnce: within one callback they cancel out.
func TestUDPPauseAndResumeAtOnce(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		got := 0
		u := listen(t, l, Count(32), func(u *UDP, d *Datagram) {
			if int(d.Payload[0]) != got {
				t.Errorf("got %d, want %d", d.Payload[0], got)
			}
			u.Pause()
			u.Resume()
			if got++; got == 40 {
				_ = l.Close()
			}
		})
		sendNow(t, listen(t, l, Bound{}, nil), u.LocalAddr(), 40)
		run(t, l)
	})
}

// TestUDPPauseModel pauses, resumes and sends at random, and compares with a queue that loses nothing.
func TestUDPPauseModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l, err := New(Config{Kernel: NewKernel(memsys.New().Backend())})
		if err != nil {
			rt.Fatal(err)
		}
		defer l.Close()
		bound := rapid.SampledFrom([]Bound{Share(), Count(1), Count(5), Count(40), Unbounded()}).Draw(rt, "bound")
		moves := rapid.SliceOfN(rapid.IntRange(0, 9), 1, 60).Draw(rt, "moves")
		sent, got := 0, 0
		paused := false
		u, _ := l.ListenUDP(loopback4, UDPConfig{Bound: bound, RecvBufferBytes: 1 << 20}, UDPHandler{})
		from, _ := l.ListenUDP(loopback4, UDPConfig{}, UDPHandler{})
		send := func(n int) {
			for range n {
				if err := from.Send([]byte{byte(sent), byte(sent >> 8)}, u.LocalAddr()); err != nil {
					rt.Fatal(err)
				}
				sent++
			}
			from.flush()
		}
		u.handler.OnDatagram = func(u *UDP, d *Datagram) {
			if paused {
				rt.Fatal("OnDatagram while paused")
			}
			if n := int(d.Payload[0]) | int(d.Payload[1])<<8; n != got {
				rt.Fatalf("datagram %d came instead of %d", n, got)
			}
			got++
			if len(moves) == 0 {
				return
			}
			move := moves[0]
			moves = moves[1:]
			switch {
			case move < 4:
				send(10 * move)
			case move < 8:
				paused = true
				u.Pause()
			}
		}
		send(40)
		for rounds := 0; got < sent; rounds++ {
			if rounds > 10_000 {
				rt.Fatalf("got %d of %d", got, sent)
			}
			if paused {
				paused = false
				u.Resume()
			}
			l.NextTurn(func() {}) // so that the turn does not wait for what will not come
			if err := l.turn(); err != nil {
				rt.Fatal(err)
			}
		}
		if s := u.Stats(); s.Received != uint64(sent) || s.KernelDropped != 0 || u.kept.Len() != 0 {
			rt.Fatalf("sent %d, received %d, dropped %d, kept %d", sent, s.Received, s.KernelDropped, u.kept.Len())
		}
	})
}

// TestUDPCloseInBatch closes in the middle of a batch, or of what a pause kept of one.
func TestUDPCloseInBatch(t *testing.T) {
	for _, row := range []struct{ pauseAt, closeAt int }{{0, 1}, {0, 5}, {0, 32}, {3, 4}, {3, 9}, {3, 32}} {
		t.Run(fmt.Sprintf("pause at %d, close at %d", row.pauseAt, row.closeAt), func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) { closeInBatch(t, k, row.pauseAt, row.closeAt) })
		})
	}
}

func closeInBatch(t *testing.T, k *Kernel, pauseAt, closeAt int) {
	l := newLoop(t, Config{NoGSO: true, Kernel: k, Bound: Unbounded()}) // so that 32 are asked for
	from := listen(t, l, Bound{}, nil)
	got, closed := 0, 0
	check := func(when string, u *UDP) {
		for name, s := range map[string]UDPStats{"the socket's": u.Stats(), "the loop's": l.Stats().UDP} {
			if s.Received != 32 || s.Discarded != uint64(32-closeAt) {
				t.Errorf("%s stats %s: received %d, discarded %d; want 32, %d", name, when, s.Received, s.Discarded, 32-closeAt)
			}
		}
	}
	u := mustListen(t, l, loopback4, UDPConfig{}, UDPHandler{
		OnDatagram: func(u *UDP, d *Datagram) {
			switch got++; got {
			case pauseAt:
				u.Pause()
				l.NextTurn(u.Resume)
			case closeAt:
				if err := u.Close(); err != nil {
					t.Error(err)
				}
				// "The descriptor is closed and its port free when Close returns."
				again := mustListen(t, l, u.LocalAddr(), UDPConfig{}, UDPHandler{OnDatagram: func(*UDP, *Datagram) {
					t.Error("the new socket hears what was sent to the old one")
				}})
				check("after Close", u)
				if d.Payload[0] != byte(closeAt-1) {
					t.Errorf("the payload became %v by Close", d.Payload)
				}
				l.NextTurn(func() { _ = again.Close() })
			}
			if got > closeAt {
				t.Error("OnDatagram after Close")
			}
		},
		OnClose: func(u *UDP, err error) {
			closed++
			check("in OnClose", u)
			l.NextTurn(func() { l.NextTurn(func() { l.NextTurn(func() { _ = l.Close() }) }) })
		},
	})
	sendNow(t, from, u.LocalAddr(), 40)
	run(t, l)
	check("after Run", u)
	if got != closeAt || closed != 1 {
		t.Errorf("%d delivered, closed %d times; want %d, once", got, closed, closeAt)
	}
}

// TestUDPPayloadOutlivesClose holds "what a callback is lent is valid until it returns": the payload of a
// datagram that was kept, while its socket is closed and its memory would be reused.
func TestUDPPayloadOutlivesClose(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k, Bound: Unbounded()})
		sink, from := listen(t, l, Bound{}, nil), listen(t, l, Bound{}, nil)
		got := 0
		u := listen(t, l, Bound{}, func(u *UDP, d *Datagram) {
			if got++; got == 1 {
				u.Pause()
				l.NextTurn(u.Resume)
				return
			}
			_ = u.Close()
			for i := range 40 {
				if err := sink.Send(bytes.Repeat([]byte{0xee}, 20_000), sink.LocalAddr()); err != nil {
					t.Fatal(i, err)
				}
			}
			if !bytes.Equal(d.Payload, pattern(1, 1000)) {
				t.Error("the payload changed under the callback")
			}
			_ = l.Close()
		})
		for i := range 10 {
			if err := from.Send(pattern(i, 1000), u.LocalAddr()); err != nil {
				t.Fatal(err)
			}
		}
		run(t, l)
		if got != 2 {
			t.Errorf("%d datagrams, want 2", got)
		}
	})
}

// TestUDPPeerGone holds "hears when nobody listens there": the error is told, the socket stays open, and
// works when the peer returns.
func TestUDPPeerGone(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		peer := listen(t, l, Bound{}, nil)
		addr := peer.LocalAddr()
		reports := 0
		u := mustDial(t, l, netip.AddrPort{}, addr, UDPConfig{}, UDPHandler{
			OnError: func(u *UDP, err error) {
				wantOpError(t, err, "receive", syscall.ECONNREFUSED, u.LocalAddr().String()+"->"+addr.String())
				if reports++; reports < 3 {
					mustSend(t, u, "anybody?", netip.AddrPort{})
					return
				}
				mustListen(t, l, addr, UDPConfig{}, UDPHandler{OnDatagram: func(back *UDP, d *Datagram) {
					mustSend(t, back, "back", d.Source)
				}})
				mustSend(t, u, "there?", netip.AddrPort{})
			},
			OnDatagram: func(_ *UDP, d *Datagram) {
				if string(d.Payload) != "back" {
					t.Errorf("got %q", d.Payload)
				}
				_ = l.Close()
			},
			OnClose: func(_ *UDP, err error) {
				if !errors.Is(err, ErrClosed) {
					t.Errorf("closed by %v", err)
				}
			}})
		_ = peer.Close()
		mustSend(t, u, "anybody?", netip.AddrPort{})
		run(t, l)
		if s := u.Stats(); s.ReceiveErrors != 3 || s.SendLost != 0 {
			t.Errorf("%d receive errors, %d lost; want 3, 0", s.ReceiveErrors, s.SendLost)
		}
	})
}

// TestUDPErrorBeforeData: the kernel tells a pending error first; the datagrams behind it come all the same.
func TestUDPErrorBeforeData(t *testing.T) {
	for _, stop := range []bool{false, true} {
		t.Run(fmt.Sprintf("Stop %v", stop), func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				l := newLoop(t, Config{Kernel: k})
				peer := listen(t, l, Bound{}, nil)
				addr := peer.LocalAddr()
				got, reports := 0, 0
				u := mustDial(t, l, netip.AddrPort{}, addr, UDPConfig{}, UDPHandler{
					OnError: func(*UDP, error) { reports++ },
					OnDatagram: func(*UDP, *Datagram) {
						if got++; got == 3 && !stop {
							l.NextTurn(func() { _ = l.Close() })
						}
					}})
				sendNow(t, peer, u.LocalAddr(), 3)
				_ = peer.Close()
				mustSend(t, u, "anybody?", netip.AddrPort{})
				u.flush()
				if stop {
					l.Stop(-1)
				}
				run(t, l)
				if got != 3 || reports != 1 {
					t.Errorf("%d datagrams, %d reports; want 3, 1", got, reports)
				}
			})
		})
	}
}

// TestUDPStopWithPendingError: a Stop ends also where the kernel has nothing but an error.
func TestUDPStopWithPendingError(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		peer := listen(t, l, Bound{}, nil)
		reports, closed := 0, 0
		u := mustDial(t, l, netip.AddrPort{}, peer.LocalAddr(), UDPConfig{}, UDPHandler{
			OnError: func(*UDP, error) { reports++ },
			OnClose: func(_ *UDP, err error) {
				if closed++; err != nil || reports != 1 {
					t.Errorf("OnClose(%v) after %d reports", err, reports)
				}
			}})
		_ = peer.Close()
		mustSend(t, u, "anybody?", netip.AddrPort{})
		u.flush()
		l.Stop(-1)
		run(t, l)
		if closed != 1 {
			t.Errorf("closed %d times", closed)
		}
	})
}

// TestUDPStopDelivers holds "what the kernel has queued for them at that moment is read and delivered, what
// they have queued is sent, then they are closed", also for a paused socket.
func TestUDPStopDelivers(t *testing.T) {
	for _, bound := range []Bound{Share(), Count(32), Unbounded()} {
		t.Run(bound.String(), func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				l, other := newLoop(t, Config{Kernel: k}), newLoop(t, Config{Kernel: k})
				answers := 0
				from := listen(t, other, Bound{}, func(*UDP, *Datagram) {
					if answers++; answers == 100 {
						_ = other.Close()
					}
				})
				got := 0
				u := listen(t, l, bound, func(u *UDP, d *Datagram) {
					got++
					mustSend(t, u, "answer", d.Source)
					if got == 1 {
						u.Pause()
						l.NextTurn(func() { l.Stop(-1) })
					}
				})
				sendNow(t, from, u.LocalAddr(), 100)
				run(t, l)
				if s := u.Stats(); got != 100 || s.Discarded != 0 || s.Unsent != 0 || s.Sent != 100 {
					t.Errorf("%d delivered, %d discarded, %d sent, %d not; want all 100", got, s.Discarded, s.Sent, s.Unsent)
				}
				run(t, other)
			})
		})
	}
}

// unspinning is a network in memory whose pollers fail after 1,000 waits: time stands still for a loop that
// spins in a bubble, so nothing else would end it.
func unspinning(net *memsys.Net) *Kernel {
	b := net.Backend()
	newPoller := b.NewPoller
	b.NewPoller = func() (poll.Poller, error) {
		p, err := newPoller()
		return &countedPoller{Poller: p, left: 1000}, err
	}
	return NewKernel(b)
}

type countedPoller struct {
	poll.Poller
	left int
}

func (p *countedPoller) Wait(events []poll.Event, timeout time.Duration) (int, error) {
	if p.left--; p.left < 0 {
		return 0, errors.New("the loop spins")
	}
	return p.Poller.Wait(events, timeout)
}

// TestUDPPausedError: a paused socket reports a pending error, and does not spin on it.
func TestUDPPausedError(t *testing.T) {
	t.Run("no spin", func(t *testing.T) {
		inBubble(t, func(t *testing.T, net *memsys.Net) {
			l := newLoop(t, Config{Kernel: unspinning(net)})
			reports := pausedError(t, l, func() {})
			l.AfterFunc(time.Second, func() {
				turn := l.Turn()
				l.AfterFunc(time.Second, func() {
					if turns := l.Turn() - turn; turns > 2 {
						t.Errorf("%d turns in which nothing happened", turns)
					}
					_ = l.Close()
				})
			})
			run(t, l)
			if *reports != 1 {
				t.Errorf("%d reports, want 1", *reports)
			}
		})
	})
	t.Run("nothing is left in the poller", func(t *testing.T) {
		onEachKernel(t, func(t *testing.T, k *Kernel) {
			l := newLoop(t, Config{Kernel: k})
			reports := pausedError(t, l, func() { l.NextTurn(func() { _ = l.Close() }) })
			l.turnEnd.run()
			for *reports == 0 { // the first wait has the error
				if err := l.turn(); err != nil {
					t.Fatal(err)
				}
			}
			if n, err := l.poller.Wait(make([]poll.Event, 8), 0); n != 0 || err != nil {
				t.Errorf("the poller still has %d events, %v", n, err)
			}
			run(t, l)
			if *reports != 1 {
				t.Errorf("%d reports, want 1", *reports)
			}
		})
	})
}

// pausedError makes a paused socket whose peer is gone.
func pausedError(t *testing.T, l *Loop, reported func()) (reports *int) {
	reports = new(int)
	peer := listen(t, l, Bound{}, nil)
	u := mustDial(t, l, netip.AddrPort{}, peer.LocalAddr(), UDPConfig{}, UDPHandler{
		OnDatagram: func(*UDP, *Datagram) { t.Error("OnDatagram while paused") },
		OnError: func(u *UDP, err error) {
			*reports++
			wantOpError(t, err, "receive", syscall.ECONNREFUSED, peer.LocalAddr().String())
			if n := u.Stats().ReceiveErrors; n != uint64(*reports) {
				t.Errorf("%d errors counted, %d reported", n, *reports)
			}
			reported()
		}})
	sendNow(t, peer, u.LocalAddr(), 3)
	_ = peer.Close()
	u.Pause()
	mustSend(t, u, "anybody?", netip.AddrPort{})
	return reports
}

// TestUDPKeptLimit: with 32 jumbo datagrams in a batch and a handler whose one call takes all the credit,
// a visit is over after that call, whatever it leaves behind, and nothing is lost.
func TestUDPKeptLimit(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		const size, count = 60_000, 64
		l := newLoop(t, Config{Kernel: NewKernel(net.Backend()), SlowCallback: -1})
		got, most := 0, 0
		u := mustListen(t, l, loopback4, UDPConfig{RecvBufferBytes: 4 << 20}, UDPHandler{
			OnDatagram: func(_ *UDP, d *Datagram) {
				if !bytes.Equal(d.Payload, pattern(got, size)) {
					t.Errorf("datagram %d is not as it was sent", got)
				}
				got++
				time.Sleep(5 * time.Millisecond)
			}})
		from := listen(t, l, Bound{}, nil)
		for i := range count {
			if err := from.Send(pattern(i, size), u.LocalAddr()); err != nil {
				t.Fatal(err)
			}
		}
		visits := 0
		var tick *Timer
		tick = l.Every(time.Millisecond, func() {
			visits++
			most = max(most, u.kept.Len())
			if late := l.now - (tick.when - tick.period); late > 5*time.Millisecond {
				t.Errorf("a tick came %v late: more than one callback was waited for", late)
			}
			if got == count {
				_ = l.Close()
			}
		})
		run(t, l)
		if missed := tick.Missed(); missed > 5*count {
			t.Errorf("%d ticks were missed by %d callbacks of 5 ms", missed, count)
		}
		if most != recvSlots-1 {
			t.Errorf("at most %d datagrams were kept, want a batch less one", most)
		}
		if s := u.Stats(); got != count || s.Discarded != 0 || s.KernelDropped != 0 {
			t.Errorf("%d delivered, %d discarded, %d dropped; want all %d", got, s.Discarded, s.KernelDropped, count)
		}
		if visits < 5 {
			t.Errorf("only %d turns: the bound did not stop the socket", visits)
		}
	})
}

// TestUDPKeptMemoryGoesBack: what a pause kept is given back when it was delivered, or its socket closed.
func TestUDPKeptMemoryGoesBack(t *testing.T) {
	for _, closing := range []bool{false, true} {
		t.Run(fmt.Sprintf("close %v", closing), func(t *testing.T) {
			net := memsys.New()
			l := newLoop(t, Config{Kernel: NewKernel(net.Backend()), Bound: Unbounded(), StopWhenIdle: true})
			from := listen(t, l, Bound{}, nil)
			got := 0
			u := listen(t, l, Bound{}, func(u *UDP, _ *Datagram) {
				switch got++; {
				case got == 1:
					u.Pause()
					l.NextTurn(u.Resume)
				case closing || got == 20:
					_ = u.Close()
				}
			})
			for range 20 {
				mustSend(t, from, string(pattern(0, 5_000)), u.LocalAddr())
			}
			l.NextTurn(func() { _ = from.Close() })
			run(t, l)
			if u.kept.Len() != 0 || u.kept.Bytes() != 0 || u.sends.Len() != 0 {
				t.Errorf("%d datagrams with %d bytes are kept of a closed socket", u.kept.Len(), u.kept.Bytes())
			}
			if c := net.Calls(); c.Socket != c.Close || c.CloseAdded != 0 {
				t.Errorf("%d sockets, %d closed, %d of them still in the poller", c.Socket, c.Close, c.CloseAdded)
			}
		})
	}
}

// TestUDPBoundIsNoEnd: a visit that ends on its bound has seen neither an empty socket nor an error, and
// whatever the bound, each datagram comes once and in order.
func TestUDPBoundIsNoEnd(t *testing.T) {
	for _, bound := range []Bound{Share(), Count(1), Count(31), Count(32), Count(33), Count(1000), Unbounded()} {
		t.Run(bound.String(), func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				l := newLoop(t, Config{Kernel: k})
				var got []byte
				u := listen(t, l, bound, func(_ *UDP, d *Datagram) {
					if got = append(got, d.Payload[0]); len(got) == 200 {
						_ = l.Close()
					}
				})
				sendNow(t, listen(t, l, Bound{}, nil), u.LocalAddr(), 200)
				run(t, l)
				if !slices.IsSorted(got) || got[199] != 199 {
					t.Errorf("got %v", got)
				}
			})
		})
	}
}

// TestUDPPanicInBatch: the rest of a batch whose callback panicked is counted, and OnClose comes.
func TestUDPPanicInBatch(t *testing.T) {
	for name, leave := range map[string]func(){"panic": func() { panic("on purpose") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				l := newLoop(t, Config{Kernel: k, Bound: Unbounded()})
				closed := 0
				u := mustListen(t, l, loopback4, UDPConfig{}, UDPHandler{
					OnDatagram: func(_ *UDP, d *Datagram) {
						if d.Payload[0] == 7 {
							leave()
						}
					},
					OnClose: func(*UDP, error) { closed++ },
				})
				sendNow(t, listen(t, l, Bound{}, nil), u.LocalAddr(), 20)
				done := make(chan any)
				go func() {
					defer func() { done <- recover() }()
					_ = l.Run(t.Context())
				}()
				if r := <-done; name == "panic" && r != "on purpose" {
					t.Errorf("Run panics with %v", r)
				}
				if s := u.Stats(); s.Received != 20 || s.Discarded != 12 || closed != 1 {
					t.Errorf("received %d, discarded %d, closed %d; want 20, 12, 1", s.Received, s.Discarded, closed)
				}
				if s := l.Stats().UDP; s.Discarded != 12 {
					t.Errorf("the loop counts %d discarded, want 12", s.Discarded)
				}
			})
		})
	}
}

// refusing is a kernel that cannot receive for a while.
type refusing struct {
	sys.Kernel
	err   error // nil: it can again
	calls int
}

func (k *refusing) Recv(fd int, b *sys.RecvBatch, n int) (int, error) {
	if k.calls++; k.err != nil {
		return 0, k.err
	}
	return k.Kernel.Recv(fd, b, n)
}

// TestUDPReceiveKeepsFailing: a receive that fails each time, with a datagram queued, keeps no processor busy;
// when it works again, what was queued is delivered within a second.
func TestUDPReceiveKeepsFailing(t *testing.T) {
	for _, err := range []error{syscall.ENOMEM, syscall.EPERM, syscall.ENOSYS, syscall.EIO} {
		t.Run(err.Error(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, net *memsys.Net) {
				backend := net.Backend()
				k := &refusing{Kernel: backend.Kernel, err: err}
				backend.Kernel = k
				l := newLoop(t, Config{Kernel: NewKernel(backend)})
				told := 0
				var back time.Time
				u, listenErr := l.ListenUDP(loopback4, UDPConfig{}, UDPHandler{
					OnDatagram: func(*UDP, *Datagram) {
						if late := time.Since(back); late > time.Second {
							t.Errorf("it came %v after receiving worked again", late)
						}
						_ = l.Close()
					},
					OnError: func(*UDP, error) { told++ },
				})
				if listenErr != nil {
					t.Fatal(listenErr)
				}
				sendNow(t, u, u.LocalAddr(), 1)
				l.AfterFunc(10*time.Second, func() {
					if k.calls > 40 || told != k.calls {
						t.Errorf("%d receives and %d calls of OnError in 10 s", k.calls, told)
					}
					k.err, back = nil, time.Now()
				})
				run(t, l)
			})
		})
	}
}

// A Stop does not wait for a socket that cannot be read.
func TestUDPStopWhereReceiveFails(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		backend := net.Backend()
		backend.Kernel = &refusing{Kernel: backend.Kernel, err: syscall.ENOMEM}
		l := newLoop(t, Config{Kernel: NewKernel(backend)})
		u := listen(t, l, Bound{}, func(*UDP, *Datagram) { t.Error("a datagram") })
		sendNow(t, u, u.LocalAddr(), 1)
		l.AfterFunc(time.Millisecond, func() { l.Stop(-1) })
		run(t, l)
	})
}
