package weirtest

import (
	"net"
	"net/netip"
	"testing"

	"github.com/weirnet/weir"
)

// echo is a scenario: a server and a client with a peer on one loop, and datagrams that come back.
type echo struct {
	local     string
	datagrams int
	config    weir.UDPConfig
	lasting   bool                                       // what is sent may stay where it is
	also      func(l *weir.Loop, server *weir.UDP) error // more to set up
}

func (e echo) setup(l *weir.Loop) (func(error) error, error) {
	b, broken := Balance{}, false
	onClose := func(_ *weir.UDP, err error) { broken = broken || err != nil }
	server, err := l.ListenUDP(netip.MustParseAddrPort(e.local), e.config, weir.UDPHandler{
		OnDatagram: func(u *weir.UDP, d *weir.Datagram) {
			b.Delivered++
			if u.Reply(d, d.Payload) == nil {
				b.Accepted++
			}
		},
		OnClose: onClose,
	})
	if err != nil {
		return nil, err
	}
	if e.also != nil {
		if err := e.also(l, server); err != nil {
			return nil, err
		}
	}
	client, err := l.DialUDP(netip.AddrPort{}, server.LocalAddr(), e.config, weir.UDPHandler{
		OnDatagram: func(*weir.UDP, *weir.Datagram) { b.Delivered++ },
		OnClose:    onClose,
	})
	if err != nil {
		return nil, err
	}
	sent := 0
	l.Work(func() bool { // some at once, some each for itself
		for range 1 + 4*(sent%2) {
			if sent++; client.Send(make([]byte, 100*sent), netip.AddrPort{}) == nil {
				b.Accepted++
			}
		}
		return sent < e.datagrams
	})
	return func(ended error) error {
		b.Stats = l.Stats().UDP
		if ended != nil || broken || e.lasting {
			return b.Check()
		}
		return b.CheckClosed()
	}, nil
}

// options sets what a UDP socket has to set, but what lets sockets share a port: of those that run at once, some
// would be given the same one.
func options(t *testing.T) echo {
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		lo = nil
	}
	return echo{
		local: "127.0.0.1:0", datagrams: 20,
		config: weir.UDPConfig{
			RecvBufferBytes: 1 << 16, SendBufferBytes: 1 << 16, Broadcast: true,
			TTL: 9, MulticastTTL: 3, TrafficClass: 8, NoMulticastLoop: true, MulticastInterface: lo,
			Fragment: weir.ProbePath, Reports: true, ReceiveLocal: true, ReceiveECN: true, ReceiveTime: true,
		},
		also: func(l *weir.Loop, server *weir.UDP) error {
			group := netip.MustParseAddr("239.1.2.3")
			if err := server.Join(group, lo); err != nil {
				return err
			}
			if err := server.SetBroadcast(false); err != nil {
				return err
			}
			return server.Leave(group, lo)
		},
	}
}

// TestSweepEcho holds "each call, each errno that it can give: returns, nothing leaks, no spin, nothing accepted is
// lost without being counted".
func TestSweepEcho(t *testing.T) {
	plain := echo{local: "127.0.0.1:0", datagrams: 20}
	reports := echo{local: "127.0.0.1:0", datagrams: 20, config: weir.UDPConfig{Reports: true}}
	const memory, machine, once, lasting = false, true, false, true
	for _, c := range []struct {
		name             string
		echo             echo
		bound            weir.Bound
		machine, lasting bool
	}{
		{"memory/plain", plain, weir.Share(), memory, once},
		{"memory/plain lasting", plain, weir.Share(), memory, lasting},
		{"memory/count, IPv6", echo{local: "[::1]:0", datagrams: 20}, weir.Count(8), memory, once},
		{"memory/reports", reports, weir.Share(), memory, once},
		{"memory/options", options(t), weir.Share(), memory, once},
		{"machine/reports lasting", reports, weir.Share(), machine, lasting},
		{"machine/options", options(t), weir.Share(), machine, once},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.echo.lasting = c.lasting
			s := Scenario{Setup: c.echo.setup, Config: weir.Config{Bound: c.bound}, Machine: c.machine, Lasting: c.lasting}
			if c.name == "memory/plain" {
				Sweep(t, s)
			} else {
				sweepSome(t, s, nil)
			}
		})
	}
}
