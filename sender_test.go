package weir

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weirnet/weir/internal/memsys"
)

// TestSender sends from many goroutines at once: all arrives, of each goroutine in order, and in far fewer calls.
func TestSender(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		const goroutines, each = 8, 200
		l := newLoop(t, Config{Kernel: k})
		next := map[byte]byte{}
		got := 0
		to := mustListen(t, l, loopback4, UDPConfig{RecvBufferBytes: 4 << 20}, UDPHandler{OnDatagram: func(_ *UDP, d *Datagram) {
			if who, n := d.Payload[0], d.Payload[1]; n != next[who] {
				t.Errorf("of goroutine %d came %d, want %d", who, n, next[who])
			}
			next[d.Payload[0]]++
			if got++; got == goroutines*each {
				_ = l.Close()
			}
		}})
		u := mustListen(t, l, loopback4, UDPConfig{MaxQueuedSends: 64}, UDPHandler{})
		dest := to.LocalAddr()
		var wg sync.WaitGroup
		for who := range goroutines {
			wg.Go(func() {
				for i := range each {
					if err := u.Sender().SendContext(t.Context(), []byte{byte(who), byte(i)}, dest); err != nil {
						t.Error(err)
					}
				}
			})
		}
		run(t, l)
		wg.Wait()
		if s := u.Stats(); s.Sent != goroutines*each || s.Unsent != 0 {
			t.Errorf("sent %d, unsent %d", s.Sent, s.Unsent)
		}
	})
}

// TestSenderGathers: what goroutines send before the loop comes to it goes out in one call.
func TestSenderGathers(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k, NoGSO: true})
		u := listen(t, l, Bound{}, nil)
		for range 50 {
			if err := u.Sender().Send([]byte("x"), u.LocalAddr()); err != nil {
				t.Fatal(err)
			}
		}
		if n := l.Stats().Waiting; n != 1 {
			t.Errorf("%d functions wait, want 1", n)
		}
		later(l, func() { _ = l.Close() })
		run(t, l)
		const most = 50/expiredEvery + 1 // where the machine is slow, and each look at the clock is the last
		if s := u.Stats(); s.Sent != 50 || s.SendCalls > most {
			t.Errorf("sent %d in %d calls, want 50 in 1, or %d at most", s.Sent, s.SendCalls, most)
		}
	})
}

func TestSenderErrors(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		peer := listen(t, l, Bound{}, nil)
		var errs []error
		u := mustDial(t, l, loopback4, peer.LocalAddr(), UDPConfig{MaxQueuedSends: 2, MaxQueuedSendBytes: 100}, UDPHandler{
			OnError: func(_ *UDP, err error) { errs = append(errs, err) },
		})
		s := u.Sender()
		zero := netip.AddrPort{}
		wantOpError(t, s.Send(make([]byte, 70_000), peer.LocalAddr()), "send", syscall.EMSGSIZE)
		wantOpError(t, s.Send(nil, loopback4), "send", syscall.EINVAL)
		wantOpError(t, s.Send(nil, netip.AddrPortFrom(netip.MustParseAddr("fe80::1%eth0"), 9)), "send", syscall.EINVAL)
		if err := s.Send([]byte("wrong"), peer.LocalAddr()); err != nil {
			t.Error(err) // what is wrong the loop finds out
		}
		if err := s.Send([]byte(strings.Repeat("x", 99)), zero); err != ErrWouldBlock {
			t.Errorf("more bytes than are allowed: %v", err)
		}
		if err := s.Send([]byte("right"), zero); err != nil {
			t.Error(err)
		}
		if err := s.Send(nil, zero); err != ErrWouldBlock {
			t.Errorf("more datagrams than are allowed: %v", err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("cause")
		cancel(cause)
		if err := s.SendContext(ctx, nil, zero); err != cause {
			t.Errorf("SendContext: %v, want %v", err, cause)
		}
		later(l, func() { _ = l.Close() })
		run(t, l)
		if len(errs) != 1 || !errors.Is(errs[0], syscall.EISCONN) {
			t.Errorf("told of %v, want EISCONN", errs)
		}
		if st := u.Stats(); st.Sent != 1 || st.SendLost != 1 || st.SendErrors.Caller != 1 || st.Refused != 2 {
			t.Errorf("sent %d, lost %d, %+v, refused %d", st.Sent, st.SendLost, st.SendErrors, st.Refused)
		}
		for _, err := range []error{s.Send(nil, zero), s.SendContext(t.Context(), nil, zero)} {
			if err != ErrClosed {
				t.Errorf("once closed: %v", err)
			}
		}
	})
}

// TestSenderLimits: a kernel that takes nothing fills two queues, and no more; when it does again, all goes out in
// order, and who waited gets on.
func TestSenderLimits(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := newLoop(t, Config{Kernel: NewKernel(net.Backend())})
		var got []string
		to := listen(t, l, Bound{}, func(_ *UDP, d *Datagram) { got = append(got, string(d.Payload)) })
		u := mustListen(t, l, loopback4, UDPConfig{MaxQueuedSends: 4}, UDPHandler{})
		block := func(on bool) {
			if err := net.BlockSends(u.fd, on); err != nil {
				t.Fatal(err)
			}
		}
		block(true)
		taken := 0
		try := func() {
			for u.Sender().Send(fmt.Append(nil, taken), to.LocalAddr()) == nil {
				taken++
			}
		}
		waited := make(chan error, 1)
		for i := range 5 {
			l.AfterFunc(time.Duration(i+1)*time.Millisecond, try)
		}
		l.AfterFunc(10*time.Millisecond, func() {
			if taken < 8 || taken > 12 {
				t.Errorf("%d were taken, want 8 to 12", taken)
			}
			go func() { waited <- u.Sender().SendContext(t.Context(), []byte("waited"), to.LocalAddr()) }()
		})
		l.AfterFunc(20*time.Millisecond, func() { block(false) })
		l.AfterFunc(30*time.Millisecond, func() { _ = l.Close() })
		run(t, l)
		if err := <-waited; err != nil || len(got) != taken+1 || got[taken] != "waited" {
			t.Fatalf("got %q of %d; who waited got %v", got, taken, err)
		}
		for i := range taken {
			if got[i] != fmt.Sprint(i) {
				t.Errorf("datagram %d is %q", i, got[i])
			}
		}
	})
}

// TestSenderCloses counts what is queued when the socket is closed, and lets nobody wait for ever.
func TestSenderCloses(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := newLoop(t, Config{Kernel: NewKernel(net.Backend())})
		u := mustListen(t, l, loopback4, UDPConfig{MaxQueuedSends: 2}, UDPHandler{})
		if err := net.BlockSends(u.fd, true); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := u.Sender().Send([]byte("x"), u.LocalAddr()); err != nil {
				t.Fatal(err)
			}
		}
		done := make(chan error)
		go func() { done <- u.Sender().SendContext(t.Context(), nil, u.LocalAddr()) }()
		l.AfterFunc(0, func() { _ = u.Close() }) // before what is posted
		l.AfterFunc(time.Millisecond, func() { _ = l.Close() })
		run(t, l)
		if err := <-done; err != ErrClosed {
			t.Errorf("who waited got %v", err)
		}
		if s := u.Stats(); s.Unsent != 2 {
			t.Errorf("%d unsent, want 2", s.Unsent)
		}
	})
}

// TestSenderStop: a Stop sends what a Sender has taken.
func TestSenderStop(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		got := 0
		to := listen(t, l, Bound{}, func(*UDP, *Datagram) { got++ })
		u := listen(t, l, Bound{}, nil)
		l.AfterFunc(0, func() {
			for range 10 {
				if err := u.Sender().Send([]byte("x"), to.LocalAddr()); err != nil {
					t.Error(err)
				}
			}
			l.Stop(-1)
		})
		run(t, l)
		if s := u.Stats(); s.Sent != 10 || s.Unsent != 0 {
			t.Errorf("sent %d, unsent %d", s.Sent, s.Unsent)
		}
	})
}

// TestSenderAllocations: no allocation a datagram in the steady state.
func TestSenderAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	l := newLoop(t, Config{Kernel: NewKernel(memsys.New().Backend())})
	l.clock = func() time.Duration { return 0 } // so that no share is ever used up
	u := listen(t, l, Bound{}, nil)
	payload, to := make([]byte, 1200), u.LocalAddr()
	n := testing.AllocsPerRun(100, func() {
		for range 50 {
			if err := u.Sender().Send(payload, to); err != nil {
				t.Fatal(err)
			}
		}
		l.NextTurn(func() {})
		for range 2 {
			if err := l.turn(); err != nil {
				t.Fatal(err)
			}
			l.NextTurn(func() {})
		}
	})
	if n > 3 { // the functions above
		t.Errorf("%v allocations for 50 datagrams", n)
	}
}
