package weir

import (
	"errors"
	"net/netip"
	"syscall"
	"testing"
	"time"
)

// TestUDPECN sends each mark and sees it arrive, beside the DSCP of the socket, alone and in trains.
func TestUDPECN(t *testing.T) {
	for _, row := range []struct{ name, from, to, at string }{
		{"IPv4", "127.0.0.1:0", "127.0.0.1:0", ""},
		{"IPv6", "[::1]:0", "[::1]:0", ""},
		{"IPv4 to both", "127.0.0.1:0", "[::]:0", "127.0.0.1"},
		{"both to IPv4", "[::]:0", "127.0.0.1:0", ""},
		{"both to both", "[::]:0", "[::]:0", "::1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				l := newLoop(t, Config{Kernel: k})
				if row.from[0] == '[' || row.to[0] == '[' {
					needIPv6(t, l)
				}
				marks := []ECN{NotECT, ECT0, ECT0, ECT0, CE, ECT1, NotECT}
				var got []ECN
				to := mustListen(t, l, addrPort(row.to), UDPConfig{ReceiveECN: true}, UDPHandler{OnDatagram: func(_ *UDP, d *Datagram) {
					if got = append(got, d.ECN); len(got) == 2*len(marks) {
						_ = l.Close()
					}
				}})
				dest := to.LocalAddr()
				if row.at != "" {
					dest = portOf(row.at, to)
				}
				from := mustListen(t, l, addrPort(row.from), UDPConfig{TrafficClass: 0xb8}, UDPHandler{})
				dialled := mustDial(t, l, addrPort(row.from), dest, UDPConfig{}, UDPHandler{})
				for _, m := range marks {
					for u, to := range map[*UDP]netip.AddrPort{from: dest} {
						if err := u.SendWith([]byte("same size"), to, SendOptions{ECN: m}); err != nil {
							t.Fatal(err)
						}
					}
				}
				later(l, func() {
					for _, m := range marks {
						if err := dialled.SendWith([]byte("x"), netip.AddrPort{}, SendOptions{ECN: m}); err != nil {
							t.Fatal(err)
						}
					}
				})
				run(t, l)
				for i, m := range append(marks, marks...) {
					if got[i] != m {
						t.Errorf("marks %v arrived as %v", marks, got)
						break
					}
				}
			})
		})
	}
}

// TestUDPReply: a wildcard socket that is asked at one of many addresses answers from that.
func TestUDPReply(t *testing.T) {
	for _, row := range []struct {
		name, server, asked string
		local               bool
		from                string
	}{
		{"IPv4", "0.0.0.0:0", "127.0.0.2", true, "127.0.0.2"},
		{"IPv4, not told", "0.0.0.0:0", "127.0.0.2", false, "127.0.0.1"},
		{"IPv4 of both", "[::]:0", "127.0.0.3", true, "127.0.0.3"},
		{"IPv6 of both", "[::]:0", "::1", true, "::1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				l := newLoop(t, Config{Kernel: k})
				if row.server[0] == '[' {
					needIPv6(t, l)
				}
				server := mustListen(t, l, addrPort(row.server), UDPConfig{ReceiveLocal: row.local}, UDPHandler{
					OnDatagram: func(u *UDP, d *Datagram) {
						want := netip.Addr{}
						if row.local {
							want = netip.MustParseAddr(row.asked)
						}
						if d.Local != want || (d.Interface != 0) != row.local {
							t.Errorf("sent to %v by interface %d, want %v", d.Local, d.Interface, want)
						}
						if err := u.Reply(d, []byte("pong")); err != nil {
							t.Error(err)
						}
					}})
				client := mustListen(t, l, netip.AddrPort{}, UDPConfig{}, UDPHandler{OnDatagram: func(_ *UDP, d *Datagram) {
					if d.Source != portOf(row.from, server) {
						t.Errorf("the answer is from %v, want %s", d.Source, row.from)
					}
					_ = l.Close()
				}})
				mustSend(t, client, "ping", portOf(row.asked, server))
				run(t, l)
			})
		})
	}
}

// TestUDPReplyConnected: a connected socket answers its peer.
func TestUDPReplyConnected(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		a := listen(t, l, Bound{}, func(*UDP, *Datagram) { _ = l.Close() })
		b := mustDial(t, l, loopback4, a.LocalAddr(), UDPConfig{ReceiveLocal: true}, UDPHandler{OnDatagram: func(u *UDP, d *Datagram) {
			if err := u.Reply(d, d.Payload); err != nil {
				t.Error(err)
			}
		}})
		mustSend(t, a, "x", b.LocalAddr())
		run(t, l)
	})
}

// TestUDPSendFrom names sources and interfaces, good and bad.
func TestUDPSendFrom(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		var sources []netip.Addr
		to := listen(t, l, Bound{}, func(_ *UDP, d *Datagram) { sources = append(sources, d.Source.Addr()) })
		var told []error
		u := mustListen(t, l, addrPort("0.0.0.0:0"), UDPConfig{}, UDPHandler{
			OnError: func(_ *UDP, err error) { told = append(told, err) },
		})
		ip := netip.MustParseAddr
		for _, row := range []struct {
			o    SendOptions
			now  error // Send's
			then error // OnError's
		}{
			{o: SendOptions{Local: ip("127.0.0.9")}},
			{o: SendOptions{Local: ip("::ffff:127.0.0.8")}},
			{o: SendOptions{Local: ip("192.0.2.77")}, then: syscall.ENETUNREACH},
			{o: SendOptions{Interface: 99_999}, then: syscall.ENODEV},
			{o: SendOptions{Local: ip("::1")}, now: syscall.EAFNOSUPPORT},
			{o: SendOptions{Local: ip("239.1.2.3")}, now: syscall.EINVAL},
			{o: SendOptions{Local: ip("0.0.0.0")}, now: syscall.EINVAL},
			{o: SendOptions{Local: ip("255.255.255.255")}, now: syscall.EINVAL},
			{o: SendOptions{Interface: -1}, now: syscall.EINVAL},
			{o: SendOptions{ECN: 4}, now: syscall.EINVAL},
		} {
			before := len(told)
			err := u.SendWith([]byte("x"), to.LocalAddr(), row.o)
			if row.now != nil {
				wantOpError(t, err, "send", row.now)
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			u.flush()
			for u.errors.len() > 0 {
				told = append(told, u.errors.pop())
			}
			if row.then == nil && len(told) != before || row.then != nil && (len(told) != before+1 || !errors.Is(told[before], row.then)) {
				t.Errorf("%+v: told of %v, want %v", row.o, told[before:], row.then)
			}
		}
		later(l, func() { _ = l.Close() })
		run(t, l)
		if len(sources) != 2 || sources[0] != ip("127.0.0.9") || sources[1] != ip("127.0.0.8") {
			t.Errorf("datagrams came from %v", sources)
		}
	})
}

// TestUDPReceiveTime holds "when the kernel received it", and that nothing is filled in unasked.
func TestUDPReceiveTime(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		var asked, unasked time.Time
		a := mustListen(t, l, loopback4, UDPConfig{ReceiveTime: true}, UDPHandler{OnDatagram: func(_ *UDP, d *Datagram) {
			asked = d.Time
			_ = l.Close()
		}})
		b := listen(t, l, Bound{}, func(_ *UDP, d *Datagram) {
			unasked = d.Time
			if d.Local.IsValid() || d.Interface != 0 || d.ECN != 0 {
				t.Errorf("unasked: %+v", d)
			}
		})
		from := listen(t, l, Bound{}, nil)
		time.Sleep(50 * time.Millisecond) // Linux takes its time to begin, for the first socket that asks
		before := time.Now()
		_ = from.SendWith([]byte("x"), b.LocalAddr(), SendOptions{ECN: CE})
		mustSend(t, from, "x", a.LocalAddr())
		from.flush()
		after := time.Now()
		time.Sleep(2 * time.Millisecond) // what follows is later than the kernel's time
		run(t, l)
		if asked.Before(before.Add(-time.Millisecond)) || asked.After(after.Add(time.Millisecond)) || !unasked.IsZero() {
			t.Errorf("received at %v, sent %v to %v; unasked %v", asked, before, after, unasked)
		}
	})
}
