package weir

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/weirnet/weir/internal/memsys"
	"github.com/weirnet/weir/internal/sys"
)

// TestUDPSendErrors holds the list of errors at Send, "a datagram that cannot be sent as asked".
func TestUDPSendErrors(t *testing.T) {
	none := netip.AddrPort{}
	plain := func(l *Loop, peer *UDP) (*UDP, error) { return l.ListenUDP(loopback4, UDPConfig{}, UDPHandler{}) }
	six := func(l *Loop, peer *UDP) (*UDP, error) {
		return l.ListenUDP(netip.MustParseAddrPort("[::]:0"), UDPConfig{}, UDPHandler{})
	}
	connected := func(l *Loop, peer *UDP) (*UDP, error) {
		return l.DialUDP(loopback4, peer.LocalAddr(), UDPConfig{}, UDPHandler{})
	}
	for _, row := range []struct {
		name string
		open func(l *Loop, peer *UDP) (*UDP, error)
		to   string // "": none; "peer": the peer's address; "no port": the peer's without its port
		size int
		want error
	}{
		{"no peer and no address", plain, "", 1, syscall.EDESTADDRREQ},
		{"a peer and an address", connected, "peer", 1, syscall.EISCONN},
		{"a peer and a wrong address", connected, "no port", 1, syscall.EISCONN},
		{"port 0", plain, "no port", 1, syscall.EINVAL},
		{"IPv6 on an IPv4 socket", plain, "[::1]:9", 1, syscall.EAFNOSUPPORT}, // weir:port it is not sent
		{"broadcast without leave", plain, "255.255.255.255:9", 1, syscall.EACCES},
		{"too large", plain, "peer", maxPayload4 + 1, syscall.EMSGSIZE},
		{"far too large", plain, "peer", 1 << 20, syscall.EMSGSIZE},
		{"too large for the peer", connected, "", maxPayload4 + 1, syscall.EMSGSIZE},
		{"too large for IPv4 through IPv6", six, "peer", maxPayload4 + 1, syscall.EMSGSIZE},
		{"too large for IPv6", six, "[::1]:9", maxPayload6 + 1, syscall.EMSGSIZE}, // weir:port it is not sent
	} {
		t.Run(row.name, func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				l := newLoop(t, Config{Kernel: k})
				needIPv6(t, l)
				peer := listen(t, l, Bound{}, func(*UDP, *Datagram) { _ = l.Close() })
				u, err := row.open(l, peer)
				if err != nil {
					t.Fatal(err)
				}
				to := none
				switch row.to {
				case "":
				case "peer":
					to = peer.LocalAddr()
				case "no port":
					to = netip.AddrPortFrom(peer.LocalAddr().Addr(), 0)
				default:
					to = netip.MustParseAddrPort(row.to)
				}
				text := u.LocalAddr().String() + ": "
				if to.IsValid() {
					text = u.LocalAddr().String() + "->" + to.String() + ": "
				}
				wantOpError(t, u.Send(make([]byte, row.size), to), "send", row.want, text)
				if s := u.Stats(); u.sends.Len() != 0 || s.Refused != 0 || s.SendLost != 0 {
					t.Errorf("%d queued, %d refused, %d lost; want nothing", u.sends.Len(), s.Refused, s.SendLost)
				}
				// The socket is as good as before.
				if u.RemoteAddr().IsValid() {
					mustSend(t, u, "", none)
				} else {
					mustSend(t, u, "", peer.LocalAddr())
				}
				run(t, l)
			})
		})
	}
}

// TestUDPBroadcast holds "Broadcast allows sending to broadcast addresses". Without it the kernel refuses
// the network's own, of which Send does not know.
func TestUDPBroadcast(t *testing.T) {
	for _, allowed := range []bool{false, true} {
		t.Run(fmt.Sprintf("allowed %v", allowed), func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				l := newLoop(t, Config{Kernel: k})
				to := mustListen(t, l, netip.MustParseAddrPort("0.0.0.0:0"), UDPConfig{}, UDPHandler{
					OnDatagram: func(*UDP, *Datagram) {
						if !allowed {
							t.Error("a broadcast without leave arrived")
						}
						_ = l.Close()
					}})
				dest := portOf("127.255.255.255", to)
				u := mustListen(t, l, netip.MustParseAddrPort("0.0.0.0:0"), UDPConfig{Broadcast: allowed}, UDPHandler{
					OnError: func(_ *UDP, err error) {
						if allowed {
							t.Error(err)
						}
						wantOpError(t, err, "send", syscall.EACCES, dest.String())
						_ = l.Close()
					}})
				mustSend(t, u, "all", dest)
				run(t, l)
			})
		})
	}
}

// TestUDPSendCopies holds "b is copied into a queue".
func TestUDPSendCopies(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		u := listen(t, l, Bound{}, func(_ *UDP, d *Datagram) {
			if string(d.Payload) != "before" {
				t.Errorf("got %q", d.Payload)
			}
			_ = l.Close()
		})
		b := []byte("before")
		if err := u.Send(b, u.LocalAddr()); err != nil {
			t.Fatal(err)
		}
		copy(b, "after!")
		run(t, l)
	})
}

// TestUDPSendLost holds "what the kernel refuses at flush goes to OnError", and costs only itself.
func TestUDPSendLost(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		const count = 100
		bad := func(i int) bool { return i%10 == 3 || i >= 60 && i < 65 } // also the last of 64 and the first after
		l := newLoop(t, Config{Kernel: k})
		var got, want []byte
		reports := 0
		to := listen(t, l, Bound{}, func(_ *UDP, d *Datagram) { got = append(got, d.Payload...) })
		u := mustListen(t, l, loopback4, UDPConfig{}, UDPHandler{OnError: func(u *UDP, err error) {
			reports++
			wantOpError(t, err, "send", syscall.EINVAL, u.LocalAddr().String()+"->"+nowhere.String())
		}})
		lost := 0
		for i := range count {
			dest := to.LocalAddr()
			if bad(i) {
				dest = nowhere
				lost++
			} else {
				want = append(want, byte(i))
			}
			if err := u.Send([]byte{byte(i)}, dest); err != nil {
				t.Fatal(err)
			}
		}
		var look func()
		look = func() {
			if len(got) == len(want) && reports == lost {
				_ = l.Close()
				return
			}
			l.NextTurn(look)
		}
		look()
		run(t, l)
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if s := u.Stats(); s.Sent != uint64(len(want)) || s.SendLost != uint64(lost) || s.Unsent != 0 {
			t.Errorf("sent %d, lost %d, unsent %d; want %d, %d, 0", s.Sent, s.SendLost, s.Unsent, len(want), lost)
		}
	})
}

// TestUDPErrorsAreLimited: as many errors as there may be wait for OnError; the others are counted.
func TestUDPErrorsAreLimited(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k, StopWhenIdle: true})
		reports := 0
		u := mustListen(t, l, loopback4, UDPConfig{}, UDPHandler{OnError: func(u *UDP, err error) {
			if reports++; reports == maxErrors {
				_ = u.Close()
			}
		}})
		for range 3 * maxErrors {
			mustSend(t, u, "x", nowhere)
		}
		run(t, l)
		if s := u.Stats(); reports != maxErrors || s.SendLost != 3*maxErrors {
			t.Errorf("%d reports, %d lost; want %d, %d", reports, s.SendLost, maxErrors, 3*maxErrors)
		}
	})
}

// TestUDPErrorsBeforeClose holds "OnClose follows, after OnError for what could not be sent".
func TestUDPErrorsBeforeClose(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k, StopWhenIdle: true})
		var order []string
		u := mustListen(t, l, loopback4, UDPConfig{}, UDPHandler{
			OnError: func(*UDP, error) { order = append(order, "error") },
			OnClose: func(*UDP, error) { order = append(order, "close") },
		})
		mustSend(t, u, "x", nowhere)
		mustSend(t, u, "x", nowhere)
		if err := u.Close(); err != nil {
			t.Fatal(err)
		}
		run(t, l)
		if !slices.Equal(order, []string{"error", "error", "close"}) {
			t.Errorf("callbacks came as %v", order)
		}
	})
}

// TestUDPFlushAfterBatch holds "which goes to the kernel after the batch of datagrams that is being
// delivered on this socket, when it holds 64".
func TestUDPFlushAfterBatch(t *testing.T) {
	for _, replies := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d a datagram", replies), func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				const count = 96 // three batches
				l := newLoop(t, Config{NoGSO: true, Kernel: k})
				got := 0
				u := listen(t, l, Unbounded(), func(u *UDP, d *Datagram) {
					batch := got / recvSlots * recvSlots
					inBatch := (got - batch) * replies
					want := batch*replies + inBatch/sendBatch*sendBatch
					if s := u.Stats(); s.Sent != uint64(want) {
						t.Errorf("at datagram %d, %d were sent; want %d", got, s.Sent, want)
					}
					got++
					for range replies {
						mustSend(t, u, "", d.Source)
					}
				})
				answers := 0
				cfg := UDPConfig{RecvBufferBytes: 1 << 20} // it is not read while u is
				from := mustListen(t, l, loopback4, cfg, UDPHandler{OnDatagram: func(*UDP, *Datagram) {
					if answers++; answers == count*replies {
						_ = l.Close()
					}
				}})
				sendNow(t, from, u.LocalAddr(), count)
				run(t, l)
			})
		})
	}
}

// TestUDPFlushAt64 looks at what one callback sends.
func TestUDPFlushAt64(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		u := listen(t, l, Bound{}, nil)
		l.AfterFunc(0, func() {
			for i := range 3*sendBatch + 10 {
				if s := u.Stats(); s.Sent != uint64(i/sendBatch*sendBatch) {
					t.Errorf("at Send %d, %d were sent", i, s.Sent)
				}
				mustSend(t, u, "", u.LocalAddr())
			}
			l.NextTurn(func() {
				if s := u.Stats(); s.Sent != 3*sendBatch+10 || s.SendCalls != 4 {
					t.Errorf("%d sent in %d calls, want %d in 4", s.Sent, s.SendCalls, 3*sendBatch+10)
				}
				_ = l.Close()
			})
		})
		run(t, l)
	})
}

// TestUDPFlushAtEndOfTurn holds "and at the end of the turn", for the sends of another socket, of a timer,
// and of a callback that was put off.
func TestUDPFlushAtEndOfTurn(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		other := listen(t, l, Bound{}, nil)
		expect := func(when string, n uint64) {
			if s := other.Stats(); s.Sent != n {
				t.Errorf("%s: %d sent, want %d", when, s.Sent, n)
			}
		}
		say := func(where string, before uint64) {
			mustSend(t, other, "x", other.LocalAddr())
			expect("in "+where, before)
			l.NextTurn(func() {
				expect("a turn after "+where, before+1)
				if before == 2 {
					_ = l.Close()
				}
			})
		}
		u := mustListen(t, l, loopback4, UDPConfig{}, UDPHandler{
			OnDatagram: func(u *UDP, _ *Datagram) {
				say("OnDatagram", 1)
				_ = u.Close()
				l.NextTurn(func() { l.NextTurn(func() { say("a next-turn function", 2) }) })
			}})
		l.AfterFunc(0, func() {
			say("a timer", 0)
			l.NextTurn(func() { l.NextTurn(func() { sendNow(t, listen(t, l, Bound{}, nil), u.LocalAddr(), 1) }) })
		})
		run(t, l)
	})
}

// listenInOrder opens a socket that expects datagrams 0, 1, 2 and so on, and closes the loop with the last of
// count.
func listenInOrder(t *testing.T, l *Loop, count int) *UDP {
	t.Helper()
	next := 0
	return listen(t, l, Bound{}, func(_ *UDP, d *Datagram) {
		if int(d.Payload[0]) != next {
			t.Errorf("got %d, want %d", d.Payload[0], next)
		}
		if next++; next == count {
			_ = l.Close()
		}
	})
}

// TestUDPSendOrder sends through every kind of flush, and receives in the order of Send.
func TestUDPSendOrder(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		const count = 250
		l := newLoop(t, Config{Kernel: k})
		to := listenInOrder(t, l, count)
		sent := 0
		send := func(u *UDP, n int) {
			for range n {
				mustSend(t, u, string([]byte{byte(sent)}), to.LocalAddr())
				sent++
			}
		}
		trigger := listen(t, l, Bound{}, nil)
		u := listen(t, l, Bound{}, func(u *UDP, d *Datagram) {
			send(u, 20)
			if sent == 240 {
				l.NextTurn(func() { send(u, 10) })
			}
		})
		send(u, 100)
		sendNow(t, trigger, u.LocalAddr(), 7)
		run(t, l)
	})
}

// TestUDPCloseFlushes holds "what was sent before goes out first".
func TestUDPCloseFlushes(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		got := 0
		to := listen(t, l, Bound{}, func(*UDP, *Datagram) {
			if got++; got == 13 {
				_ = l.Close()
			}
		})
		u := listen(t, l, Bound{}, func(u *UDP, _ *Datagram) {
			for range 13 {
				mustSend(t, u, "x", to.LocalAddr())
			}
			if err := u.Close(); err != nil {
				t.Error(err)
			}
			if s := u.Stats(); s.Sent != 13 || s.Unsent != 0 {
				t.Errorf("Close sent %d and left %d; want 13, 0", s.Sent, s.Unsent)
			}
		})
		sendNow(t, listen(t, l, Bound{}, nil), u.LocalAddr(), 1)
		run(t, l)
	})
}

// blockable is a network in memory, and a socket on it that the kernel takes nothing from.
func blockable(t *testing.T, net *memsys.Net, cfg UDPConfig, h UDPHandler) (l *Loop, u *UDP, block func(on bool)) {
	l = newLoop(t, Config{Kernel: unspinning(net)})
	u = mustListen(t, l, loopback4, cfg, h)
	block = func(on bool) {
		if err := net.BlockSends(u.fd, on); err != nil {
			t.Error(err)
		}
	}
	block(true)
	return l, u, block
}

// TestUDPDrain holds "a full queue is ErrWouldBlock, then OnDrain".
func TestUDPDrain(t *testing.T) {
	for _, row := range []struct {
		name  string
		cfg   UDPConfig
		sizes []int // of what is taken
		over  int   // of what is not
	}{
		{"datagrams", UDPConfig{MaxQueuedSends: 3}, []int{10, 0, 10}, 0},
		{"one datagram", UDPConfig{MaxQueuedSends: 1}, []int{10}, 10},
		{"many datagrams", UDPConfig{MaxQueuedSends: 100}, make([]int, 100), 0},
		{"default datagrams", UDPConfig{}, make([]int, 1024), 0},
		{"bytes", UDPConfig{MaxQueuedSendBytes: 100}, []int{60, 40, 0}, 1},
		{"bytes, all but one", UDPConfig{MaxQueuedSendBytes: 100}, []int{60, 39}, 2},
		{"default bytes", UDPConfig{}, slices.Repeat([]int{1 << 16 >> 1}, 128), 1},
		{"one larger than the limit", UDPConfig{MaxQueuedSendBytes: 100}, []int{101}, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, net *memsys.Net) {
				drains := 0
				l, u, block := blockable(t, net, row.cfg, UDPHandler{
					OnDrain: func(u *UDP) {
						drains++
						if u.sends.Len() != 0 {
							t.Errorf("OnDrain with %d queued", u.sends.Len())
						}
					},
					OnError: func(_ *UDP, err error) { t.Error(err) },
				})
				var got []int
				to := mustListen(t, l, loopback4, UDPConfig{RecvBufferBytes: 4 << 20}, UDPHandler{
					OnDatagram: func(_ *UDP, d *Datagram) { got = append(got, len(d.Payload)) }})
				for i, size := range row.sizes {
					if err := u.Send(make([]byte, size), to.LocalAddr()); err != nil {
						t.Fatalf("Send %d: %v", i, err)
					}
				}
				for range 2 {
					if err := u.Send(make([]byte, row.over), to.LocalAddr()); err != ErrWouldBlock {
						t.Errorf("Send to a full queue: %v", err)
					}
				}
				l.AfterFunc(time.Second, func() {
					turn := l.Turn()
					if s := u.Stats(); s.Sent != 0 || s.Refused != 2 || drains != 0 {
						t.Errorf("blocked: %d sent, %d refused, %d drains; want 0, 2, 0", s.Sent, s.Refused, drains)
					}
					l.AfterFunc(time.Second, func() {
						if l.Turn()-turn > 2 {
							t.Errorf("%d turns while nothing could be sent", l.Turn()-turn)
						}
						block(false)
					})
				})
				l.AfterFunc(3*time.Second, func() {
					turn := l.Turn()
					l.AfterFunc(time.Second, func() {
						if l.Turn()-turn > 2 {
							t.Errorf("%d turns while there was nothing to send", l.Turn()-turn)
						}
						_ = l.Close()
					})
				})
				run(t, l)
				if drains != 1 || !slices.Equal(got, row.sizes) {
					t.Errorf("%d drains, got sizes %v; want 1, %v", drains, got, row.sizes)
				}
			})
		})
	}
}

// TestUDPNoDrainUnasked: OnDrain comes after ErrWouldBlock only.
func TestUDPNoDrainUnasked(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l, u, block := blockable(t, net, UDPConfig{MaxQueuedSends: 4}, UDPHandler{
			OnDrain: func(*UDP) { t.Error("OnDrain, and no Send was refused") },
		})
		for range 4 {
			mustSend(t, u, "x", u.LocalAddr())
		}
		l.AfterFunc(time.Second, func() { block(false) })
		l.AfterFunc(2*time.Second, func() { _ = l.Close() })
		run(t, l)
	})
}

// TestUDPDrainEachTurn: without a blocked kernel, too, a full queue drains at the end of the turn; a
// program that sends until it is refused, and goes on in OnDrain, loses nothing.
func TestUDPDrainEachTurn(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		const count = 200
		l := newLoop(t, Config{Kernel: k})
		to := listenInOrder(t, l, count)
		sent, refused := 0, 0
		fill := func(u *UDP) {
			for sent < count {
				err := u.Send([]byte{byte(sent)}, to.LocalAddr())
				if errors.Is(err, ErrWouldBlock) {
					refused++
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				sent++
			}
		}
		drains := 0
		u := mustListen(t, l, loopback4, UDPConfig{MaxQueuedSends: 7}, UDPHandler{OnDrain: func(u *UDP) {
			drains++
			fill(u)
		}})
		fill(u)
		run(t, l)
		if s := u.Stats(); drains != refused || s.Refused != uint64(refused) || refused != count/7 {
			t.Errorf("%d drains, %d refusals, %d counted; want %d", drains, refused, s.Refused, count/7)
		}
	})
}

// trickle is a kernel that takes one datagram a flush.
type trickle struct{ sys.Kernel }

func (k trickle) Send(fd int, b *sys.SendBatch, from, to int) (int, error) {
	if from > 0 {
		return 0, syscall.EAGAIN
	}
	return k.Kernel.Send(fd, b, 0, 1)
}

// TestUDPDrainAtHalf holds "OnDrain is called when, after a Send answered ErrWouldBlock, the queue is half
// empty".
func TestUDPDrainAtHalf(t *testing.T) {
	for _, row := range []struct {
		name string
		cfg  UDPConfig
		left int
	}{
		{"datagrams", UDPConfig{MaxQueuedSends: 9}, 4},
		{"bytes", UDPConfig{MaxQueuedSendBytes: 90}, 4},
	} {
		t.Run(row.name, func(t *testing.T) {
			backend := memsys.New().Backend()
			backend.Kernel = trickle{backend.Kernel}
			l := newLoop(t, Config{Kernel: NewKernel(backend), NoGSO: true})
			drains, got := 0, 0
			to := listen(t, l, Bound{}, func(*UDP, *Datagram) {
				if got++; got == 9 {
					l.NextTurn(func() { _ = l.Close() })
				}
			})
			u := mustListen(t, l, loopback4, row.cfg, UDPHandler{OnDrain: func(u *UDP) {
				if drains++; u.sends.Len() != row.left {
					t.Errorf("OnDrain with %d queued, want %d", u.sends.Len(), row.left)
				}
			}})
			for range 9 {
				mustSend(t, u, "0123456789", to.LocalAddr())
			}
			if err := u.Send([]byte("0123456789"), to.LocalAddr()); err != ErrWouldBlock {
				t.Errorf("Send to a full queue: %v", err)
			}
			run(t, l)
			if drains != 1 {
				t.Errorf("%d drains, want 1", drains)
			}
		})
	}
}

// TestUDPCloseBlocked holds "goes out first, as far as the kernel takes it at once": also where it would
// not the last time it was asked.
func TestUDPCloseBlocked(t *testing.T) {
	for _, unblock := range []bool{false, true} {
		t.Run(fmt.Sprintf("unblock %v", unblock), func(t *testing.T) {
			inBubble(t, func(t *testing.T, net *memsys.Net) {
				closed, got := 0, 0
				l, u, block := blockable(t, net, UDPConfig{MaxQueuedSends: 5}, UDPHandler{
					OnDrain: func(*UDP) { t.Error("OnDrain after Close") },
					OnClose: func(*UDP, error) { closed++ },
				})
				to := listen(t, l, Bound{}, func(*UDP, *Datagram) { got++ })
				for range 5 {
					mustSend(t, u, "x", to.LocalAddr())
				}
				if err := u.Send(nil, to.LocalAddr()); err != ErrWouldBlock {
					t.Errorf("Send to a full queue: %v", err)
				}
				l.AfterFunc(time.Second, func() {
					block(!unblock)
					if err := u.Close(); err != nil {
						t.Error(err)
					}
				})
				l.AfterFunc(2*time.Second, func() { _ = l.Close() })
				run(t, l)
				want := 0
				if unblock {
					want = 5
				}
				for name, s := range map[string]UDPStats{"the socket's": u.Stats(), "the loop's": l.Stats().UDP} {
					if got != want || s.Sent != uint64(want) || s.Unsent != uint64(5-want) || closed != 1 {
						t.Errorf("%s: got %d, sent %d, unsent %d, closed %d times; want %d of 5", name, got, s.Sent, s.Unsent, closed, want)
					}
				}
			})
		})
	}
}

// TestUDPStopSends holds "what they have queued is sent, then they are closed": a Stop waits for a kernel
// that takes nothing now, and reads nothing more meanwhile.
func TestUDPStopSends(t *testing.T) {
	for _, grace := range []time.Duration{-1, time.Hour, time.Second} {
		t.Run(grace.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, net *memsys.Net) {
				received, closed := 0, 0
				l, u, block := blockable(t, net, UDPConfig{}, UDPHandler{
					OnDatagram: func(*UDP, *Datagram) { received++ },
					OnClose:    func(*UDP, error) { closed++ },
				})
				other := newLoop(t, Config{Kernel: NewKernel(net.Backend())})
				got := 0
				peer := listen(t, other, Bound{}, func(*UDP, *Datagram) { got++ })
				for range 5 {
					mustSend(t, u, "x", peer.LocalAddr())
				}
				sendNow(t, peer, u.LocalAddr(), 3)
				l.Stop(grace)
				late := time.AfterFunc(time.Minute, func() { block(false) })
				done := make(chan error)
				other.AfterFunc(time.Millisecond, func() { sendNow(t, peer, u.LocalAddr(), 3) })
				go func() { done <- other.Run(t.Context()) }()
				began := time.Now()
				if err := l.Run(t.Context()); err != nil {
					t.Error(err)
				}
				late.Stop()
				took := time.Since(began)
				other.Stop(-1)
				if err := <-done; err != nil {
					t.Error(err)
				}
				s := u.Stats()
				if grace == time.Second {
					if took != time.Second || s.Unsent != 5 || got != 0 || closed != 1 {
						t.Errorf("after %v: %d unsent, %d got, closed %d; want 1s, 5, 0, 1", took, s.Unsent, got, closed)
					}
				} else if took != time.Minute || s.Unsent != 0 || got != 5 || closed != 1 {
					t.Errorf("after %v: %d unsent, %d got, closed %d; want 1m, 0, 5, 1", took, s.Unsent, got, closed)
				}
				if received != 3 || l.Turn() > 20 {
					t.Errorf("%d received in %d turns; want 3 in a few", received, l.Turn())
				}
			})
		})
	}
}

// What the kernel reports of an earlier datagram costs the next one nothing: the first that is sent after the
// peer is back arrives.
func TestUDPStaleError(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		peer := listen(t, l, Bound{}, nil)
		var reports []error
		u, err := l.DialUDP(netip.AddrPort{}, peer.LocalAddr(), UDPConfig{}, UDPHandler{
			OnError: func(_ *UDP, err error) { reports = append(reports, err) },
		})
		if err != nil {
			t.Fatal(err)
		}
		u.Pause() // so that it is a send that meets the error, and no receive
		_ = peer.Close()
		mustSend(t, u, "to nobody", netip.AddrPort{})
		u.flush()
		got := 0
		if _, err = l.ListenUDP(peer.LocalAddr(), UDPConfig{}, UDPHandler{OnDatagram: func(*UDP, *Datagram) {
			if got++; got == 2 {
				l.NextTurn(func() { _ = l.Close() })
			}
		}}); err != nil {
			t.Fatal(err)
		}
		mustSend(t, u, "first", netip.AddrPort{})
		mustSend(t, u, "second", netip.AddrPort{})
		u.flush()
		run(t, l)
		s := u.Stats()
		if len(reports) != 1 || !errors.Is(reports[0], syscall.ECONNREFUSED) || s.SendLost != 0 || s.Sent != 3 || s.ReceiveErrors != 1 {
			t.Errorf("reports %v; %d sent, %d lost, %d receive errors", reports, s.Sent, s.SendLost, s.ReceiveErrors)
		}
	})
}
