//go:build linux

package weir

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirnet/weir/internal/sys/systest"
)

// settle runs a loop until what was sent has arrived, and a while longer: in that it must not turn.
func settle(t *testing.T, l *Loop) {
	t.Helper()
	later(l, func() {
		before := l.Turn()
		l.AfterFunc(50*time.Millisecond, func() {
			if turns := l.Turn() - before; turns > 5 {
				t.Errorf("%d turns while nothing happened", turns)
			}
			_ = l.Close()
		})
	})
	run(t, l)
}

// TestUDPFirewall: a firewall that drops what is sent answers EPERM. Those datagrams are lost, and no others; the
// socket stays, the batched call stays in use, and all goes on when the rule is gone.
func TestUDPFirewall(t *testing.T) {
	if !systest.InNamespace(t) {
		return
	}
	l := newLoop(t, Config{NoGSO: true})
	got := map[string]int{}
	peer := func() *UDP {
		return listen(t, l, Bound{}, func(_ *UDP, d *Datagram) { got[string(d.Payload)]++ })
	}
	blocked, open := peer(), peer()
	systest.Configure(t, "nft add table inet t", "nft add chain inet t out { type filter hook output priority 0 ; }",
		fmt.Sprintf("nft add rule inet t out udp dport %d drop", blocked.LocalAddr().Port()))
	var errs told
	u := mustListen(t, l, loopback4, UDPConfig{}, UDPHandler{OnError: errs.onError})
	mustSend(t, u, "first", blocked.LocalAddr()) // the first send of all
	u.flush()
	for i := range 10 {
		to := open.LocalAddr()
		if i%3 == 0 {
			to = blocked.LocalAddr()
		}
		mustSend(t, u, "batch", to)
	}
	u.flush()
	systest.Configure(t, "nft flush ruleset")
	for range 10 {
		mustSend(t, u, "after", blocked.LocalAddr())
	}
	settle(t, l)
	s := u.Stats()
	if got["first"] != 0 || got["batch"] != 6 || got["after"] != 10 {
		t.Errorf("got %v", got)
	}
	if s.SendErrors != (SendErrors{Lost: 5}) || errs.count(syscall.EPERM) != 5 || len(errs) != 5 {
		t.Errorf("%+v, told of %v", s.SendErrors, errs)
	}
	if _, send := l.kernel.Unbatched(); send != nil && !l.cfg.NoBatches {
		t.Errorf("sends are not batched any more: %v", send)
	}
}

// TestUDPPathMTU: on a path that takes 1280 bytes, what is larger and must stay whole is reported once with the MTU,
// so that the sender can do with less; reports keep to their limit, and nothing is logged.
func TestUDPPathMTU(t *testing.T) {
	if !systest.InNamespace(t) {
		return
	}
	systest.Configure(t, "ip link set lo mtu 1500", "ip addr add 10.9.0.1/32 dev lo",
		"ip route replace local 10.9.0.1 dev lo mtu 1280 table local")
	for _, reports := range []bool{false, true} {
		for _, connected := range []bool{false, true} {
			t.Run(fmt.Sprintf("reports %v, connected %v", reports, connected), func(t *testing.T) {
				var log strings.Builder
				l := newLoop(t, Config{Logger: slog.New(slog.NewTextHandler(&log, nil)), NoGSO: true, SlowCallback: -1})
				got := 0
				peer := mustListen(t, l, addrPort("10.9.0.1:0"), UDPConfig{}, UDPHandler{OnDatagram: func(*UDP, *Datagram) { got++ }})
				var errs told
				cfg := UDPConfig{Reports: reports, Fragment: FragmentNever}
				h := UDPHandler{OnError: errs.onError}
				to := peer.LocalAddr()
				u := mustListen(t, l, addrPort("0.0.0.0:0"), cfg, h)
				if connected {
					u = mustDial(t, l, netip.AddrPort{}, to, cfg, h)
					to = netip.AddrPort{}
					if mtu, err := u.PathMTU(); mtu != 1280 || err != nil {
						t.Errorf("PathMTU: %d, %v", mtu, err)
					}
				}
				mustSend(t, u, strings.Repeat("x", 1253), to) // with headers: 1281
				mustSend(t, u, strings.Repeat("x", 1252), to)
				settle(t, l)
				var e *SizeError
				if len(errs) != 1 || !errors.As(errs[0], &e) || e.Bytes != 1253 || connected && e.MTU != 1280 {
					t.Errorf("told of %v; want one SizeError", errs)
				}
				if s := u.Stats(); got != 1 || s.SendErrors.Size != 1 || s.SendLost != 1 {
					t.Errorf("got %d, %+v", got, s.SendErrors)
				}
				if log.Len() > 0 {
					t.Errorf("logged: %s", &log)
				}
			})
		}
	}
}

// TestUDPTrainOverMTU: segments larger than the device's MTU are refused as a train, and pass singly in fragments.
func TestUDPTrainOverMTU(t *testing.T) {
	if !systest.InNamespace(t) {
		return
	}
	systest.Configure(t, "ip link set lo mtu 1300")
	r := trainRun{kernel: realKernel(t), sizes: repeat(1400, 100)}
	r.run(t, 0)
	if r.sent.SentJoined != 0 || r.sent.SendErrors.Offload == 0 || r.sent.SendLost != 0 || len(r.errors) > 0 {
		t.Errorf("%d went joined, %+v, %v", r.sent.SentJoined, r.sent.SendErrors, r.errors)
	}
	r = trainRun{kernel: realKernel(t), sizes: repeat(1200, 100)}
	r.run(t, 0)
	if r.sent.SentJoined != 100 {
		t.Errorf("%d of 100 that fit went joined", r.sent.SentJoined)
	}
}

// TestUDPNoBuffers: a device whose queue is full answers ENOBUFS to who asks for reports. It is a loss, no reason to
// wait until the socket is writable, which it is.
func TestUDPNoBuffers(t *testing.T) {
	if !systest.InNamespace(t) {
		return
	}
	systest.Configure(t, "tc qdisc add dev lo root bfifo limit 1")
	l := newLoop(t, Config{NoGSO: true})
	var errs told
	u := mustListen(t, l, loopback4, UDPConfig{Reports: true}, UDPHandler{OnError: errs.onError})
	for range 50 {
		mustSend(t, u, "does not fit the queue", u.LocalAddr())
	}
	settle(t, l)
	s := u.Stats()
	if s.SendErrors != (SendErrors{Lost: 50}) || s.Sent != 0 || s.Queued != 0 {
		t.Errorf("sent %d, %+v", s.Sent, s.SendErrors)
	}
	if n := errs.count(syscall.ENOBUFS); n != len(errs) || n == 0 || n > errorBurst+1 {
		t.Errorf("told of %v", errs)
	}
}

// TestUDPLinkDown takes the link away from sockets that wait and send.
func TestUDPLinkDown(t *testing.T) {
	if !systest.InNamespace(t) {
		return
	}
	systest.Configure(t, "ip link add d0 type veth peer name d1", "ip addr add 10.8.0.1/24 dev d0", "ip link set d0 up", "ip link set d1 up")
	for _, reports := range []bool{false, true} {
		t.Run(fmt.Sprintf("reports %v", reports), func(t *testing.T) {
			l := newLoop(t, Config{})
			var closed []error
			h := UDPHandler{OnClose: func(_ *UDP, err error) {
				if err != ErrClosed {
					closed = append(closed, err)
				}
			}}
			cfg := UDPConfig{Reports: reports}
			dialled := mustDial(t, l, netip.AddrPort{}, addrPort("10.8.0.2:9"), cfg, h) // weir:port nobody is there
			listening := mustListen(t, l, addrPort("10.8.0.1:0"), cfg, h)
			paused := mustDial(t, l, netip.AddrPort{}, addrPort("10.8.0.2:9"), cfg, h) // weir:port nobody is there
			paused.Pause()
			send := func() {
				mustSend(t, dialled, "x", netip.AddrPort{})
				mustSend(t, paused, "x", netip.AddrPort{})
				mustSend(t, listening, "x", addrPort("10.8.0.3:9")) // weir:port nobody is there
			}
			send()
			later(l, func() {
				systest.Configure(t, "ip link set d0 down")
				send()
			})
			l.AfterFunc(200*time.Millisecond, func() { systest.Configure(t, "ip link set d0 up") })
			l.AfterFunc(250*time.Millisecond, func() {
				before := l.Turn()
				later(l, func() {
					if turns := l.Turn() - before; turns > 5 {
						t.Errorf("%d turns while nothing happened", turns)
					}
					_ = l.Close()
				})
			})
			run(t, l)
			if len(closed) > 0 {
				t.Errorf("closed: %v", closed)
			}
			if s := l.Stats().UDP; s.Sent+s.SendLost != 6 {
				t.Errorf("sent %d, lost %d of 6", s.Sent, s.SendLost)
			}
		})
	}
}

// TestUDPMulticastLoop is multicast on an interface that is not the loopback one, over both families: NoMulticastLoop
// and the interface to leave by.
func TestUDPMulticastLoop(t *testing.T) {
	if !systest.InNamespace(t) {
		return
	}
	systest.Configure(t, "ip link add d0 type veth peer name d1", "ip link set d1 up", "ip addr add 10.8.0.1/24 dev d0",
		"ip addr add fd00::1/64 dev d0 nodad", "ip link set d0 up")
	d0, err := net.InterfaceByName("d0")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ local, group string }{
		{"0.0.0.0:0", "239.1.2.3"}, {"[::]:0", "239.1.2.3"}, {"[::]:0", "ff15::1234"}, {"[::]:0", "ff12::1234"},
	} {
		t.Run(row.local+" "+row.group, func(t *testing.T) {
			l := newLoop(t, Config{})
			group := netip.MustParseAddr(row.group)
			got := map[string]int{}
			member := mustListen(t, l, addrPort(row.local), UDPConfig{}, UDPHandler{
				OnDatagram: func(_ *UDP, d *Datagram) { got[string(d.Payload)]++ },
			})
			to := netip.AddrPortFrom(group, member.LocalAddr().Port())
			var errs told
			loop := mustListen(t, l, addrPort(row.local), UDPConfig{MulticastInterface: d0}, UDPHandler{OnError: errs.onError})
			none := mustListen(t, l, addrPort(row.local), UDPConfig{MulticastInterface: d0, NoMulticastLoop: true}, UDPHandler{OnError: errs.onError})
			mustSend(t, loop, "not a member", to)
			loop.flush()
			if err := member.Join(group, d0); err != nil {
				t.Fatal(err)
			}
			if err := member.Join(group, d0); !errors.Is(err, syscall.EADDRINUSE) {
				t.Errorf("Join again: %v", err)
			}
			mustSend(t, loop, "loop", to)
			mustSend(t, none, "none", to)
			loop.flush()
			none.flush()
			later(l, func() {
				if err := member.Leave(group, d0); err != nil {
					t.Error(err)
				}
				mustSend(t, loop, "left", to)
				later(l, func() { _ = l.Close() })
			})
			run(t, l)
			if len(got) != 1 || got["loop"] != 1 || len(errs) > 0 {
				t.Errorf("heard %v; told of %v", got, errs)
			}
		})
	}
}

// TestUDPFirewallLimit: a firewall that lets some datagrams pass answers EPERM to a batch and not to the single call
// that follows. That is no reason to send no more batches.
func TestUDPFirewallLimit(t *testing.T) {
	if !systest.InNamespace(t) {
		return
	}
	l := newLoop(t, Config{NoGSO: true})
	got := 0
	peer := listen(t, l, Bound{}, func(*UDP, *Datagram) { got++ })
	systest.Configure(t, "nft add table inet t", "nft add chain inet t out { type filter hook output priority 0 ; }",
		fmt.Sprintf("nft add rule inet t out udp dport %d numgen inc mod 2 == 0 drop", peer.LocalAddr().Port()))
	u := listen(t, l, Bound{}, nil)
	const count = 100
	for range count {
		mustSend(t, u, "x", peer.LocalAddr())
		u.flush()
	}
	settle(t, l)
	if s := u.Stats(); got == 0 || s.Sent != uint64(got) || s.Sent+s.SendErrors.Lost != count {
		t.Errorf("got %d, sent %d, %+v", got, s.Sent, s.SendErrors)
	}
	if _, send := l.kernel.Unbatched(); send != nil && !l.cfg.NoBatches {
		t.Errorf("sends are not batched any more: %v", send)
	}
}
