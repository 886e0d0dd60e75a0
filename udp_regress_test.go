package weir

import (
	"context"
	"log/slog"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/weirnet/weir/internal/memsys"
)

// TestUDPSendFindsDead: a socket that a flush in the middle of sends finds dead is closed, and each datagram that was
// taken is accounted for.
func TestUDPSendFindsDead(t *testing.T) {
	for name, send := range map[string]func(u *UDP, b []byte) error{
		"Send":   func(u *UDP, b []byte) error { return u.Send(b, u.LocalAddr()) },
		"Sender": func(u *UDP, b []byte) error { return u.Sender().Send(b, u.LocalAddr()) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLoop(t, Config{Kernel: NewKernel(memsys.New().Backend()), Faults: plan(t, "send#1=EBADF")})
			u := mustListen(t, l, loopback4, UDPConfig{}, UDPHandler{OnClose: func(*UDP, error) { _ = l.Close() }})
			accepted := uint64(0)
			for range 6 {
				if send(u, make([]byte, 60_000)) == nil {
					accepted++
				}
			}
			run(t, l)
			if s := u.Stats(); s.Sent+s.SendLost+s.Unsent != accepted || s.Queued != 0 {
				t.Errorf("%d taken; sent %d, lost %d, unsent %d, queued %d", accepted, s.Sent, s.SendLost, s.Unsent, s.Queued)
			}
		})
	}
}

// reenter is a handler of logs that does something of its own.
type reenter struct {
	slog.Handler
	do func()
}

func (reenter) Enabled(context.Context, slog.Level) bool    { return true }
func (h reenter) Handle(context.Context, slog.Record) error { h.do(); return nil }

// TestUDPLogThatSends: a handler of logs may send on a socket of the loop: it is not called in the middle of a flush.
func TestUDPLogThatSends(t *testing.T) {
	for name, o := range map[string]SendOptions{"ecn": {ECN: ECT0}, "gso": {}} {
		t.Run(name, func(t *testing.T) {
			var other, sink *UDP
			logged := 0
			log := slog.New(reenter{slog.DiscardHandler, func() {
				logged++
				for i := range 70 {
					_ = other.Send(make([]byte, 10+i%3), sink.LocalAddr())
				}
			}})
			cfg := Config{Kernel: NewKernel(memsys.New().Backend()), Logger: log, SlowCallback: -1, Faults: plan(t, "send#1=EINVAL")}
			l := newLoop(t, cfg)
			sink = mustListen(t, l, loopback4, UDPConfig{RecvBufferBytes: 1 << 20}, UDPHandler{})
			other = mustListen(t, l, loopback4, UDPConfig{}, UDPHandler{})
			got := 0
			to := mustListen(t, l, loopback4, UDPConfig{RecvBufferBytes: 1 << 20}, UDPHandler{OnDatagram: func(*UDP, *Datagram) { got++ }})
			u := mustListen(t, l, loopback4, UDPConfig{}, UDPHandler{})
			if name == "gso" {
				needGSO(t, u)
			}
			for i := range 21 {
				if err := u.SendWith(make([]byte, 30-i/3), to.LocalAddr(), o); err != nil {
					t.Fatal(err)
				}
			}
			later(l, func() { _ = l.Close() })
			run(t, l)
			if got != 21 || logged != 1 {
				t.Errorf("%d of 21 arrived, logged %d times, want once", got, logged)
			}
		})
	}
}

// TestSenderShares: goroutines that send without end leave timers their time.
func TestSenderShares(t *testing.T) {
	l := newLoop(t, Config{NoGSO: true})
	sink := listen(t, l, Bound{}, nil)
	sink.Pause()
	u := listen(t, l, Bound{}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	for range 3 {
		go func() {
			for u.Sender().SendContext(ctx, make([]byte, 10), sink.LocalAddr()) == nil {
			}
			done <- struct{}{}
		}()
	}
	fired := 0
	l.Every(time.Millisecond, func() {
		if fired++; fired == 100 {
			cancel()
			_ = l.Close()
		}
	})
	run(t, l)
	for range 3 {
		<-done
	}
	// Before it was bounded, one move went on for as long as they sent, and two turns took all the time.
	if l.Turn() < 50 {
		t.Errorf("%d turns", l.Turn())
	}
}

// TestUDPReportsFail: an error queue that cannot be read does not make the loop spin.
func TestUDPReportsFail(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k, Faults: plan(t, "recverr=ENOMEM")})
		dead := deadPort(t, l, "127.0.0.1")
		u := mustDial(t, l, netip.AddrPort{}, dead, UDPConfig{Reports: true}, UDPHandler{})
		mustSend(t, u, "anybody?", netip.AddrPort{})
		l.AfterFunc(200*time.Millisecond, func() { _ = l.Close() })
		run(t, l)
		if l.Turn() > 200 {
			t.Errorf("%d turns in 200 ms", l.Turn())
		}
	})
}

// TestUDPReportsDoNotRest: a socket that sends to dead ports and hears of it does not rest for want of datagrams.
func TestUDPReportsDoNotRest(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		dead := deadPort(t, l, "127.0.0.1")
		u := mustListen(t, l, loopback4, UDPConfig{Reports: true}, UDPHandler{})
		sent := 0
		var again func()
		again = func() {
			if u.resting {
				t.Errorf("it rests after %d datagrams", sent)
			}
			if sent++; sent > 4*emptyBeforeRest || u.resting {
				_ = l.Close()
				return
			}
			mustSend(t, u, "x", dead)
			l.AfterFunc(0, again)
		}
		again()
		run(t, l)
	})
}

// TestUDPRestEnds: what was injected while a socket rested is delivered when it does not any more, and a socket that
// is closed while it rests keeps no loop waiting.
func TestUDPRestEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := newLoop(t, Config{Kernel: NewKernel(net.Backend()), StopWhenIdle: true})
		start := time.Now()
		got := time.Duration(0)
		u := mustListen(t, l, loopback4, UDPConfig{}, UDPHandler{OnDatagram: func(u *UDP, d *Datagram) {
			got = time.Since(start)
			u.rest(longestRest)
			_ = u.Close()
		}})
		l.AfterFunc(time.Millisecond, func() {
			u.rest(shortestRest)
			if err := u.Inject(&Datagram{Payload: []byte("x"), Source: u.LocalAddr()}); err != nil {
				t.Error(err)
			}
		})
		run(t, l)
		if want := shortestRest + time.Millisecond; got != want || time.Since(start) != want {
			t.Errorf("delivered after %v, ended after %v; want %v", got, time.Since(start), want)
		}
	})
}

// TestUDPCostEstimate: two busy sockets ask for what their shares pay for, so that little is kept.
func TestUDPCostEstimate(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		const cost, count = 10 * time.Microsecond, 1500
		l := loopIn(t, net, Config{})
		feeder := listen(t, l, Bound{}, nil)
		var sockets [2]*UDP
		var got [2]int
		kept := 0
		for i := range sockets {
			sockets[i] = mustListen(t, l, loopback4, UDPConfig{RecvBufferBytes: 4 << 20}, UDPHandler{OnDatagram: func(u *UDP, _ *Datagram) {
				time.Sleep(cost)
				if got[i]++; got[i] > 500 {
					kept = max(kept, u.kept.Len())
				}
				if got[i] == count {
					_ = l.Close()
				}
			}})
			for range count / 50 {
				sendNow(t, feeder, sockets[i].LocalAddr(), 50)
			}
		}
		run(t, l)
		for _, u := range sockets {
			if e := u.cost.perMessage; e < cost/2 || e > 2*cost {
				t.Errorf("the estimate is %v, a datagram costs %v", e, cost)
			}
		}
		if kept > 1 {
			t.Errorf("up to %d were kept", kept)
		}
	})
}

// TestUDPConnectSender: what a Sender took for the peer of that time goes to it.
func TestUDPConnectSender(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		heard := ""
		hear := func(name string) *UDP { return listen(t, l, Bound{}, func(*UDP, *Datagram) { heard += name }) }
		a, b := hear("a"), hear("b")
		u := mustDial(t, l, netip.AddrPort{}, a.LocalAddr(), UDPConfig{}, UDPHandler{})
		if err := u.Sender().Send([]byte("x"), netip.AddrPort{}); err != nil {
			t.Fatal(err)
		}
		if err := u.Connect(b.LocalAddr()); err != nil {
			t.Fatal(err)
		}
		later(l, func() { _ = l.Close() })
		run(t, l)
		if heard != "a" {
			t.Errorf("%q heard it, want a", heard)
		}
	})
}

// TestSenderWhileStopping: a Sender that goes on keeps no Stop from its end.
func TestSenderWhileStopping(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := newLoop(t, Config{Kernel: NewKernel(net.Backend())})
		u := listen(t, l, Bound{}, nil)
		block := func(on bool) {
			if err := net.BlockSends(u.fd, on); err != nil {
				t.Fatal(err)
			}
		}
		block(true)
		mustSend(t, u, "x", u.LocalAddr())
		l.AfterFunc(time.Millisecond, func() { l.Stop(-1) })
		l.AfterFunc(20*time.Millisecond, func() {
			if err := u.Sender().Send([]byte("y"), u.LocalAddr()); err != ErrClosed {
				t.Errorf("a Sender's Send while stopping: %v", err)
			}
			block(false)
		})
		run(t, l)
	})
}

// TestSenderOptions: a Sender can say what goes with a datagram, and OnError hears what is wrong with that.
func TestSenderOptions(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		var marks []ECN
		to := mustListen(t, l, loopback4, UDPConfig{ReceiveECN: true}, UDPHandler{
			OnDatagram: func(_ *UDP, d *Datagram) { marks = append(marks, d.ECN) },
		})
		var errs told
		u := mustListen(t, l, addrPort("0.0.0.0:0"), UDPConfig{}, UDPHandler{OnError: errs.onError})
		for _, o := range []SendOptions{{ECN: CE}, {Local: netip.IPv6Loopback()}, {Local: netip.MustParseAddr("127.0.0.4")}} {
			if err := u.Sender().SendWith([]byte("x"), to.LocalAddr(), o); err != nil {
				t.Fatal(err)
			}
		}
		later(l, func() { _ = l.Close() })
		run(t, l)
		if len(marks) != 2 || marks[0] != CE || marks[1] != NotECT || len(errs) != 1 || errs.count(syscall.EAFNOSUPPORT) != 1 {
			t.Errorf("marks %v, errors %v", marks, errs)
		}
	})
}

// TestUDPReplyBroadcast: the answer to a broadcast leaves from an address of this machine.
func TestUDPReplyBroadcast(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		server := mustListen(t, l, addrPort("0.0.0.0:0"), UDPConfig{ReceiveLocal: true}, UDPHandler{
			OnDatagram: func(u *UDP, d *Datagram) {
				if err := u.Reply(d, d.Payload); err != nil {
					t.Error(err)
				}
			},
			OnError: func(_ *UDP, err error) { t.Error(err) },
		})
		answered := 0
		client := mustListen(t, l, loopback4, UDPConfig{Broadcast: true}, UDPHandler{OnDatagram: func(*UDP, *Datagram) { answered++ }})
		mustSend(t, client, "?", portOf("127.255.255.255", server))
		later(l, func() { _ = l.Close() })
		run(t, l)
		if answered != 1 {
			t.Errorf("answered %d times", answered)
		}
	})
}

// TestUDPInjectTooLarge: "EMSGSIZE above 65,535 bytes".
func TestUDPInjectTooLarge(t *testing.T) {
	l := newLoop(t, Config{Kernel: NewKernel(memsys.New().Backend())})
	u := listen(t, l, Bound{}, nil)
	wantOpError(t, u.Inject(&Datagram{Payload: make([]byte, slotBytes+1)}), "inject", syscall.EMSGSIZE)
	if err := u.Inject(&Datagram{Payload: make([]byte, slotBytes)}); err != nil {
		t.Error(err)
	}
}

// TestUDPReplyAfterConnect: a datagram of before a Connect is not answered to the new peer.
func TestUDPReplyAfterConnect(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k, Bound: Unbounded()})
		heard := map[string]string{}
		hear := func(name string) *UDP {
			return listen(t, l, Bound{}, func(_ *UDP, d *Datagram) { heard[name] += string(d.Payload) })
		}
		x, y := hear("x"), hear("y")
		server := listen(t, l, Bound{}, func(u *UDP, d *Datagram) {
			if d.Source == y.LocalAddr() {
				if err := u.Connect(y.LocalAddr()); err != nil {
					t.Error(err)
				}
			}
			err := u.Reply(d, d.Payload)
			if d.Source == x.LocalAddr() {
				wantOpError(t, err, "send", syscall.EISCONN)
			} else if err != nil {
				t.Error(err)
			}
		})
		mustSend(t, y, "for y", server.LocalAddr())
		y.flush()
		mustSend(t, x, "for x", server.LocalAddr())
		x.flush()
		later(l, func() { _ = l.Close() })
		run(t, l)
		if heard["x"] != "" || heard["y"] != "for y" {
			t.Errorf("heard %q", heard)
		}
	})
}

// TestUDPErrorWhileStopping: an error that comes while a stopping socket waits for its sends makes nothing spin.
func TestUDPErrorWhileStopping(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := newLoop(t, Config{Kernel: NewKernel(net.Backend())})
		dead := deadPort(t, l, "127.0.0.1")
		u := mustDial(t, l, loopback4, dead, UDPConfig{}, UDPHandler{})
		block := func(on bool) {
			if err := net.BlockSends(u.fd, on); err != nil {
				t.Fatal(err)
			}
		}
		mustSend(t, u, "nobody", netip.AddrPort{})
		l.AfterFunc(0, func() {
			block(true)
			mustSend(t, u, "waits", netip.AddrPort{})
			l.Stop(-1)
		})
		turns := uint64(0)
		l.AfterFunc(time.Millisecond, func() { turns = l.Turn() })
		l.AfterFunc(20*time.Millisecond, func() {
			if n := l.Turn() - turns; n > 5 {
				t.Errorf("%d turns while it waits", n)
			}
			block(false)
		})
		run(t, l)
	})
}

// TestUDPBadChecksumsDoNotRest: datagrams with a wrong checksum make a socket readable, and are dropped when they are
// to be received. Who sends them has it rest for nobody; what the kernel says nothing of does.
func TestUDPBadChecksumsDoNotRest(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		u := mustListen(t, l, loopback4, UDPConfig{RecvBufferBytes: 1}, UDPHandler{})
		from := listen(t, l, Bound{}, nil)
		for range 3 {
			sendNow(t, from, u.LocalAddr(), 10) // of which some are dropped
			for range emptyBeforeRest {
				u.readable = true
				u.foundEmpty()
			}
			if u.resting {
				t.Fatal("it rests, though the kernel drops what comes")
			}
		}
		for range emptyBeforeRest {
			u.readable = true
			u.foundEmpty()
		}
		if !u.resting {
			t.Error("it does not rest, though nothing comes")
		}
	})
}
