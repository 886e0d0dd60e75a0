package weir

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/weirnet/weir/internal/memsys"
)

// nowhere is an address that a socket at 127.0.0.1 cannot send to: the kernel answers EINVAL, as such a
// source is a martian anywhere else.
var nowhere = netip.MustParseAddrPort("203.0.113.1:9")

func mustListen(t *testing.T, l *Loop, local netip.AddrPort, cfg UDPConfig, h UDPHandler) *UDP {
	t.Helper()
	u, err := l.ListenUDP(local, cfg, h)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func mustDial(t *testing.T, l *Loop, local, peer netip.AddrPort, cfg UDPConfig, h UDPHandler) *UDP {
	t.Helper()
	u, err := l.DialUDP(local, peer, cfg, h)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func mustSend(t *testing.T, u *UDP, payload string, to netip.AddrPort) {
	t.Helper()
	if err := u.Send([]byte(payload), to); err != nil {
		t.Fatal(err)
	}
}

// needIPv6 skips a test where the kernel has no IPv6.
func needIPv6(t *testing.T, l *Loop) {
	t.Helper()
	u, err := l.ListenUDP(loopback6, UDPConfig{}, UDPHandler{})
	if errors.Is(err, syscall.EAFNOSUPPORT) || errors.Is(err, syscall.EADDRNOTAVAIL) {
		t.Skip("no IPv6 here: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = u.Close()
}

// portOf is ip with the port of a socket.
func portOf(ip string, u *UDP) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr(ip), u.LocalAddr().Port())
}

// wantOpError checks an error of the API: its type, reason and addresses.
func wantOpError(t *testing.T, err error, op string, reason error, texts ...string) {
	t.Helper()
	var e *OpError
	if !errors.As(err, &e) {
		t.Errorf("the error %v is no *OpError", err)
		return
	}
	if e.Op != op || e.Net != "udp" {
		t.Errorf("%v: Op is %q, Net %q; want %q, udp", err, e.Op, e.Net, op)
	}
	if reason != nil && !errors.Is(err, reason) {
		t.Errorf("%v: want %v", err, reason)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q does not tell %q", err, text)
		}
	}
}

// TestUDPTalk has a client ask and a server answer, over every kind of local address.
func TestUDPTalk(t *testing.T) {
	for _, row := range []struct{ name, listen, local, reach string }{
		{"IPv4", "127.0.0.1", "127.0.0.1", "127.0.0.1"},
		{"IPv6", "::1", "::1", "::1"},
		{"IPv4 wildcard", "0.0.0.0", "0.0.0.0", "127.0.0.1"},
		{"IPv6 wildcard, IPv6 peer", "::", "::", "::1"},
		{"IPv6 wildcard, IPv4 peer", "::", "::", "127.0.0.1"},
		{"no address, IPv6 peer", "", "::", "::1"},
		{"no address, IPv4 peer", "", "::", "127.0.0.1"},
		{"IPv4 by its mapped name", "::ffff:127.0.0.1", "127.0.0.1", "127.0.0.1"},
	} {
		for _, connected := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, connected %v", row.name, connected), func(t *testing.T) {
				onEachKernel(t, func(t *testing.T, k *Kernel) { talk(t, k, row.listen, row.local, row.reach, connected) })
			})
		}
	}
}

func talk(t *testing.T, k *Kernel, listenAt, local, reach string, connected bool) {
	l := newLoop(t, Config{Kernel: k})
	if strings.Contains(listenAt+reach+local, ":") {
		needIPv6(t, l)
	}
	var at netip.AddrPort
	if listenAt != "" {
		at = netip.AddrPortFrom(netip.MustParseAddr(listenAt), 0)
	}
	var client *UDP
	server := mustListen(t, l, at, UDPConfig{}, UDPHandler{OnDatagram: func(u *UDP, d *Datagram) {
		if d.Source != client.LocalAddr() {
			t.Errorf("the server sees %v, the client is %v", d.Source, client.LocalAddr())
		}
		if string(d.Payload) != "ping" {
			t.Errorf("the server got %q", d.Payload)
		}
		mustSend(t, u, "pong", d.Source)
	}})
	if got := server.LocalAddr(); got.Addr().String() != local || got.Port() == 0 {
		t.Errorf("the server's address is %v, want %s and a port", got, local)
	}
	dest := portOf(reach, server)
	answered := UDPHandler{OnDatagram: func(_ *UDP, d *Datagram) {
		if d.Source != dest || string(d.Payload) != "pong" {
			t.Errorf("the client got %q from %v, want pong from %v", d.Payload, d.Source, dest)
		}
		_ = l.Close()
	}}
	if connected {
		client = mustDial(t, l, netip.AddrPort{}, dest, UDPConfig{}, answered)
		if client.RemoteAddr() != dest || client.LocalAddr().Addr() != dest.Addr() {
			t.Errorf("the client is %v -> %v, want %v on both sides", client.LocalAddr(), client.RemoteAddr(), dest.Addr())
		}
		mustSend(t, client, "ping", netip.AddrPort{})
	} else {
		client = mustListen(t, l, netip.AddrPortFrom(dest.Addr(), 0), UDPConfig{}, answered)
		if client.RemoteAddr().IsValid() {
			t.Errorf("the client has the peer %v", client.RemoteAddr())
		}
		mustSend(t, client, "ping", dest)
	}
	run(t, l)
}

// TestUDPMappedDestination sends to IPv4 by its mapped name, from a socket of each family.
func TestUDPMappedDestination(t *testing.T) {
	for _, local := range []string{"127.0.0.1:0", "[::]:0"} {
		t.Run(local, func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				l := newLoop(t, Config{Kernel: k})
				if local != "127.0.0.1:0" {
					needIPv6(t, l)
				}
				got := 0
				to := listen(t, l, Bound{}, func(*UDP, *Datagram) {
					if got++; got == 2 {
						_ = l.Close()
					}
				})
				mapped := portOf("::ffff:127.0.0.1", to)
				mustSend(t, mustListen(t, l, netip.MustParseAddrPort(local), UDPConfig{}, UDPHandler{}), "x", mapped)
				u := mustDial(t, l, netip.MustParseAddrPort(local), mapped, UDPConfig{}, UDPHandler{})
				mustSend(t, u, "y", netip.AddrPort{})
				run(t, l)
			})
		})
	}
}

// TestUDPIPv6Only holds "IPv6Only keeps IPv4 out of an IPv6 wildcard socket. Default: both families".
func TestUDPIPv6Only(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		needIPv6(t, l)
		got := map[string]string{}
		hear := func(name string) UDPHandler {
			return UDPHandler{OnDatagram: func(_ *UDP, d *Datagram) {
				got[name] += string(d.Payload)
				if len(got["six"])+len(got["four"]) == 2 {
					_ = l.Close()
				}
			}}
		}
		wild := netip.AddrPort{}
		six := mustListen(t, l, wild, UDPConfig{IPv6Only: true}, hear("six"))
		four := mustListen(t, l, portOf("127.0.0.1", six), UDPConfig{}, hear("four"))
		mustSend(t, mustListen(t, l, loopback4, UDPConfig{}, UDPHandler{}), "4", four.LocalAddr())
		mustSend(t, mustListen(t, l, loopback6, UDPConfig{}, UDPHandler{}), "6", portOf("::1", six))

		both := mustListen(t, l, wild, UDPConfig{}, UDPHandler{})
		_, err := l.ListenUDP(portOf("127.0.0.1", both), UDPConfig{}, UDPHandler{})
		wantOpError(t, err, "listen", syscall.EADDRINUSE, "bind", portOf("127.0.0.1", both).String())
		run(t, l)
		if got["six"] != "6" || got["four"] != "4" {
			t.Errorf("got %v", got)
		}
	})
}

// TestUDPOpenErrors holds "*OpError; its reason names the call or the option that failed".
func TestUDPOpenErrors(t *testing.T) {
	dest := netip.MustParseAddrPort("127.0.0.1:9")                            // weir:port nothing is sent
	dest6 := netip.MustParseAddrPort("[::1]:9")                               // weir:port nothing is sent
	listen := func(cfg UDPConfig) func(l *Loop, h UDPHandler) (*UDP, error) { // at the IPv4 loopback
		return func(l *Loop, h UDPHandler) (*UDP, error) { return l.ListenUDP(loopback4, cfg, h) }
	}
	for _, row := range []struct {
		name   string
		open   func(l *Loop, h UDPHandler) (*UDP, error)
		op     string
		reason error
		texts  []string
	}{
		{"bound of zero", listen(UDPConfig{Bound: Count(0)}), "listen", nil, []string{"Count(0)", "127.0.0.1:0"}},
		{"bound below zero", listen(UDPConfig{Bound: Count(-3)}), "listen", nil, []string{"Count(-3)"}},
		{"datagram size", listen(UDPConfig{MaxDatagramBytes: -1}), "listen", nil, []string{"MaxDatagramBytes", "-1"}},
		{"queue", listen(UDPConfig{MaxQueuedSends: -2}), "listen", nil, []string{"MaxQueuedSends", "-2"}},
		{"queue bytes", listen(UDPConfig{MaxQueuedSendBytes: -3}), "listen", nil, []string{"MaxQueuedSendBytes", "-3"}},
		{"receive buffer", listen(UDPConfig{RecvBufferBytes: -4}), "listen", nil, []string{"RecvBufferBytes", "-4"}},
		{"send buffer", listen(UDPConfig{SendBufferBytes: -5}), "listen", nil, []string{"SendBufferBytes", "-5"}},
		{"an address of others", func(l *Loop, h UDPHandler) (*UDP, error) {
			return l.ListenUDP(nowhere, UDPConfig{}, h)
		}, "listen", syscall.EADDRNOTAVAIL, []string{"bind", nowhere.String()}},
		{"no peer", func(l *Loop, h UDPHandler) (*UDP, error) {
			return l.DialUDP(loopback4, netip.AddrPort{}, UDPConfig{}, h)
		}, "dial", syscall.EDESTADDRREQ, nil},
		{"a peer without port", func(l *Loop, h UDPHandler) (*UDP, error) {
			return l.DialUDP(loopback4, loopback4, UDPConfig{}, h)
		}, "dial", syscall.EINVAL, []string{"127.0.0.1:0->127.0.0.1:0"}},
		{"a peer of another family", func(l *Loop, h UDPHandler) (*UDP, error) {
			return l.DialUDP(loopback4, dest6, UDPConfig{}, h)
		}, "dial", syscall.EAFNOSUPPORT, []string{"connect", "127.0.0.1:0->[::1]:9"}}, // weir:port a text
		{"a peer out of reach", func(l *Loop, h UDPHandler) (*UDP, error) {
			return l.DialUDP(loopback4, nowhere, UDPConfig{}, h)
		}, "dial", syscall.EINVAL, []string{"connect", "127.0.0.1:0->" + nowhere.String()}},
		{"a broadcast address without leave", func(l *Loop, h UDPHandler) (*UDP, error) {
			return l.DialUDP(netip.AddrPort{}, netip.MustParseAddrPort("127.255.255.255:9"), UDPConfig{}, h)
		}, "dial", syscall.EACCES, []string{"connect", "127.255.255.255:9"}},
		{"options on a dialled socket", func(l *Loop, h UDPHandler) (*UDP, error) {
			return l.DialUDP(loopback4, dest, UDPConfig{MaxQueuedSends: -1}, h)
		}, "dial", nil, []string{"MaxQueuedSends"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				l := newLoop(t, Config{Kernel: k})
				u, err := row.open(l, UDPHandler{OnClose: func(*UDP, error) { t.Error("OnClose of a socket that never was") }})
				if u != nil {
					t.Errorf("a socket comes with the error %v", err)
				}
				wantOpError(t, err, row.op, row.reason, row.texts...)
				l.AfterFunc(0, func() { _ = l.Close() })
				run(t, l)
			})
		})
	}
}

// TestUDPOpenErrorsLeaveNothing counts descriptors where that is exact.
func TestUDPOpenErrorsLeaveNothing(t *testing.T) {
	net := memsys.New()
	l := newLoop(t, Config{Kernel: NewKernel(net.Backend())})
	if _, err := l.ListenUDP(nowhere, UDPConfig{}, UDPHandler{}); err == nil {
		t.Error("an address of others is bound")
	}
	if _, err := l.DialUDP(netip.AddrPort{}, nowhere, UDPConfig{}, UDPHandler{}); err == nil {
		t.Error("a peer out of reach is connected")
	}
	if c := net.Calls(); c.Socket != 2 || c.Close != 2 {
		t.Errorf("%d sockets were made, %d closed; want 2", c.Socket, c.Close)
	}
}

func TestUDPOpenOnClosedLoop(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		_ = l.Close()
		_, err := l.ListenUDP(loopback4, UDPConfig{}, UDPHandler{})
		wantOpError(t, err, "listen", ErrClosed, "closed")
		_, err = l.DialUDP(loopback4, nowhere, UDPConfig{}, UDPHandler{})
		wantOpError(t, err, "dial", net.ErrClosed)
	})
}

// TestUDPReuseAddr holds "with ReuseAddr the last one bound gets everything".
func TestUDPReuseAddr(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		cfg := UDPConfig{ReuseAddr: true}
		first := mustListen(t, l, loopback4, cfg, UDPHandler{OnDatagram: func(*UDP, *Datagram) {
			t.Error("the first socket got a datagram")
		}})
		_, err := l.ListenUDP(first.LocalAddr(), UDPConfig{}, UDPHandler{})
		wantOpError(t, err, "listen", syscall.EADDRINUSE, "bind")

		got := 0
		last := mustListen(t, l, first.LocalAddr(), cfg, UDPHandler{OnDatagram: func(*UDP, *Datagram) {
			if got++; got == 8 {
				_ = l.Close()
			}
		}})
		for range 8 {
			mustSend(t, listen(t, l, Bound{}, nil), "x", last.LocalAddr())
		}
		run(t, l)
	})
}

// TestUDPReusePort holds "with ReusePort each a part of the senders".
func TestUDPReusePort(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		const senders = 64
		var got [2]int
		hear := func(i int) UDPHandler {
			return UDPHandler{OnDatagram: func(*UDP, *Datagram) {
				if got[i]++; got[0]+got[1] == 2*senders {
					_ = l.Close()
				}
			}}
		}
		cfg := UDPConfig{ReusePort: true}
		u := mustListen(t, l, loopback4, cfg, hear(0))
		mustListen(t, l, u.LocalAddr(), cfg, hear(1))
		_, err := l.ListenUDP(u.LocalAddr(), UDPConfig{}, UDPHandler{})
		wantOpError(t, err, "listen", syscall.EADDRINUSE, "bind")
		for range senders {
			from := listen(t, l, Bound{}, nil)
			mustSend(t, from, "x", u.LocalAddr())
			mustSend(t, from, "x", u.LocalAddr())
		}
		run(t, l)
		if got[0] == 0 || got[1] == 0 || got[0]%2 != 0 {
			t.Errorf("%v datagrams: both sockets must have some, and a sender's both", got)
		}
	})
}

// TestUDPConnect goes through a peer, another peer, and none.
func TestUDPConnect(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		var heard []string
		steps := []func(u *UDP){}
		u := listen(t, l, Bound{}, func(u *UDP, d *Datagram) {
			heard = append(heard, string(d.Payload))
			if strings.HasSuffix(string(d.Payload), "!") {
				steps[0](u)
				steps = steps[1:]
			}
		})
		a, b := listen(t, l, Bound{}, nil), listen(t, l, Bound{}, nil)
		local := u.LocalAddr()
		// The one that is heard sends last: what else comes was there before it.
		say := func(first, last *UDP, what string) {
			mustSend(t, first, what, local)
			first.flush()
			mustSend(t, last, what+"!", local)
		}
		must := func(err error) {
			if err != nil {
				t.Error(err)
			}
		}
		expect := func(what string, peer netip.AddrPort, want ...string) {
			if !slices.Equal(heard, want) {
				t.Errorf("%s: heard %q, want %q", what, heard, want)
			}
			if u.RemoteAddr() != peer || u.LocalAddr() != local {
				t.Errorf("%s: %v -> %v, want %v -> %v", what, u.LocalAddr(), u.RemoteAddr(), local, peer)
			}
			heard = nil
		}
		steps = append(steps, func(u *UDP) {
			expect("connected", a.LocalAddr(), "one!")
			must(u.Connect(b.LocalAddr()))
			say(a, b, "two")
		}, func(u *UDP) {
			expect("connected anew", b.LocalAddr(), "two!")
			must(u.Disconnect())
			say(a, b, "three")
		}, func(u *UDP) {
			expect("disconnected", netip.AddrPort{}, "three", "three!")
			_ = l.Close()
		})
		must(u.Connect(a.LocalAddr()))
		say(b, a, "one")
		run(t, l)
	})
}

// TestUDPDisconnect holds "a local address that the system chose at Connect goes back to the wildcard; the
// port stays".
func TestUDPDisconnect(t *testing.T) {
	for _, row := range []struct{ name, local, before, after string }{
		{"IPv4 address", "127.0.0.1:0", "127.0.0.1", "127.0.0.1"},
		{"IPv4 wildcard", "0.0.0.0:0", "127.0.0.1", "0.0.0.0"},
		{"IPv6 wildcard", "[::]:0", "127.0.0.1", "::"},
	} {
		t.Run(row.name, func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				l := newLoop(t, Config{Kernel: k})
				if row.after == "::" {
					needIPv6(t, l)
				}
				peer := listen(t, l, Bound{}, nil)
				got := 0
				u := mustListen(t, l, netip.MustParseAddrPort(row.local), UDPConfig{}, UDPHandler{
					OnDatagram: func(*UDP, *Datagram) {
						if got++; got == 2 {
							_ = l.Close()
						}
					}})
				port := u.LocalAddr().Port()
				for range 2 { // the second time nothing is new
					if err := u.Connect(peer.LocalAddr()); err != nil {
						t.Fatal(err)
					}
					if want := portOf(row.before, u); u.LocalAddr() != want || want.Port() != port {
						t.Errorf("connected: %v, want %v and port %d", u.LocalAddr(), want, port)
					}
					if err := u.Disconnect(); err != nil {
						t.Fatal(err)
					}
					want := netip.AddrPortFrom(netip.MustParseAddr(row.after), port)
					if u.LocalAddr() != want || u.RemoteAddr().IsValid() {
						t.Errorf("disconnected: %v -> %v, want %v", u.LocalAddr(), u.RemoteAddr(), want)
					}
					if err := u.Send([]byte("x"), netip.AddrPort{}); !errors.Is(err, syscall.EDESTADDRREQ) {
						t.Errorf("Send without an address: %v", err)
					}
					mustSend(t, listen(t, l, Bound{}, nil), "x", netip.AddrPortFrom(peer.LocalAddr().Addr(), port))
				}
				run(t, l)
			})
		})
	}
}

func TestUDPConnectErrors(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		peer := listen(t, l, Bound{}, func(*UDP, *Datagram) { _ = l.Close() })
		u := listen(t, l, Bound{}, nil)
		if err := u.Connect(peer.LocalAddr()); err != nil {
			t.Fatal(err)
		}
		wantOpError(t, u.Connect(netip.AddrPort{}), "connect", syscall.EDESTADDRREQ, u.LocalAddr().String())
		wantOpError(t, u.Connect(loopback4), "connect", syscall.EINVAL, u.LocalAddr().String()+"->127.0.0.1:0")
		wantOpError(t, u.Connect(portOf("::1", peer)), "connect", syscall.EAFNOSUPPORT, portOf("::1", peer).String())
		wantOpError(t, u.Connect(nowhere), "connect", syscall.EINVAL, nowhere.String())
		if u.RemoteAddr() != peer.LocalAddr() {
			t.Errorf("after errors the peer is %v, want %v", u.RemoteAddr(), peer.LocalAddr())
		}
		mustSend(t, u, "x", netip.AddrPort{})
		run(t, l)
	})
}

// TestUDPConnectKeepsDestination: what was sent goes where it was sent, whatever the socket is connected
// to when the kernel takes it.
func TestUDPConnectKeepsDestination(t *testing.T) {
	net := memsys.New()
	l := newLoop(t, Config{Kernel: NewKernel(net.Backend())})
	got := map[string]string{}
	hear := func(name string) *UDP {
		return listen(t, l, Bound{}, func(_ *UDP, d *Datagram) {
			if got[name] += string(d.Payload); len(got["a"])+len(got["b"])+len(got["c"]) == 4 {
				_ = l.Close()
			}
		})
	}
	a, b, c := hear("a"), hear("b"), hear("c")
	u := mustListen(t, l, loopback4, UDPConfig{}, UDPHandler{OnError: func(_ *UDP, err error) { t.Error(err) }})
	block := func(on bool) {
		if err := net.BlockSends(u.fd, on); err != nil {
			t.Fatal(err)
		}
	}
	block(true)
	mustSend(t, u, "1", c.LocalAddr())
	for _, peer := range []*UDP{a, b} {
		if err := u.Connect(peer.LocalAddr()); err != nil {
			t.Fatal(err)
		}
		mustSend(t, u, "2", netip.AddrPort{})
	}
	if err := u.Disconnect(); err != nil {
		t.Fatal(err)
	}
	mustSend(t, u, "3", c.LocalAddr())
	l.AfterFunc(0, func() { block(false) })
	run(t, l)
	if got["a"] != "2" || got["b"] != "2" || got["c"] != "13" {
		t.Errorf("a heard %q, b %q, c %q; want 2, 2, 13", got["a"], got["b"], got["c"])
	}
}

// TestUDPAfterClose calls everything on a closed socket.
func TestUDPAfterClose(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		peer := listen(t, l, Bound{}, nil)
		closed := 0
		u := mustDial(t, l, loopback4, peer.LocalAddr(), UDPConfig{}, UDPHandler{
			OnError: func(_ *UDP, err error) { t.Error(err) },
			OnDrain: func(*UDP) { t.Error("OnDrain after Close") },
			OnClose: func(_ *UDP, err error) {
				closed++
				if err != nil {
					t.Errorf("OnClose(%v), want nil", err)
				}
				_ = l.Close()
			}})
		local := u.LocalAddr()
		check := func() {
			for name, err := range map[string]error{
				"Send": u.Send(nil, netip.AddrPort{}), "Connect": u.Connect(peer.LocalAddr()),
				"Disconnect": u.Disconnect(), "Close": u.Close(),
			} {
				if !errors.Is(err, ErrClosed) || !errors.Is(err, net.ErrClosed) {
					t.Errorf("%s on a closed socket: %v", name, err)
				}
			}
			u.Pause()
			u.Resume()
			if u.LocalAddr() != local || u.RemoteAddr() != peer.LocalAddr() {
				t.Errorf("closed: %v -> %v, want %v -> %v", u.LocalAddr(), u.RemoteAddr(), local, peer.LocalAddr())
			}
		}
		if err := u.Close(); err != nil {
			t.Error(err)
		}
		check()
		run(t, l)
		check()
		if closed != 1 {
			t.Errorf("OnClose came %d times", closed)
		}
	})
}

// TestUDPOnCloseReason holds "nil after Close or Stop, ErrClosed when the loop ended".
func TestUDPOnCloseReason(t *testing.T) {
	for _, row := range []struct {
		name string
		end  func(l *Loop, u *UDP)
		want error
	}{
		{"Close", func(l *Loop, u *UDP) { _ = u.Close() }, nil},
		{"Loop.Stop", func(l *Loop, u *UDP) { l.Stop(-1) }, nil},
		{"Loop.Close", func(l *Loop, u *UDP) { _ = l.Close() }, ErrClosed},
	} {
		t.Run(row.name, func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				l := newLoop(t, Config{Kernel: k, StopWhenIdle: true})
				var reasons []error
				u := mustListen(t, l, loopback4, UDPConfig{}, UDPHandler{
					OnClose: func(_ *UDP, err error) { reasons = append(reasons, err) },
				})
				l.AfterFunc(0, func() { row.end(l, u) })
				run(t, l)
				if !slices.Equal(reasons, []error{row.want}) {
					t.Errorf("OnClose came with %v, want %v once", reasons, row.want)
				}
			})
		})
	}
}

// TestUDPDeadDescriptor holds "else the error that ended the socket": somebody else closed its descriptor.
func TestUDPDeadDescriptor(t *testing.T) {
	for _, row := range []struct {
		op  string
		use func(t *testing.T, u, other *UDP)
	}{
		{"send", func(t *testing.T, u, other *UDP) { mustSend(t, u, "x", other.LocalAddr()) }},
		{"receive", func(t *testing.T, u, other *UDP) { u.loop.ring.Ready(u.source) }},
		{"poll", func(t *testing.T, u, other *UDP) { u.Pause() }},
	} {
		t.Run(row.op, func(t *testing.T) {
			l := newLoop(t, Config{Kernel: NewKernel(memsys.New().Backend()), StopWhenIdle: true})
			var reasons []error
			other := listen(t, l, Bound{}, nil)
			u := mustListen(t, l, loopback4, UDPConfig{}, UDPHandler{
				OnError: func(_ *UDP, err error) { t.Errorf("OnError(%v)", err) },
				OnClose: func(_ *UDP, err error) { reasons = append(reasons, err) },
			})
			if err := l.kernel.Close(u.fd); err != nil {
				t.Fatal(err)
			}
			row.use(t, u, other)
			l.AfterFunc(0, func() { _ = other.Close() })
			run(t, l)
			if len(reasons) != 1 {
				t.Fatalf("OnClose came with %v", reasons)
			}
			wantOpError(t, reasons[0], row.op, syscall.EBADF, u.LocalAddr().String())
		})
	}
}

// nesting fails a test whose callbacks run inside each other, or inside a call of the API.
type nesting struct {
	t     *testing.T
	depth int
	calls map[string]int
}

func (n *nesting) enter(name string) (leave func()) {
	if n.depth > 0 {
		n.t.Errorf("%s is called inside a callback or a call", name)
	}
	n.calls[name]++
	n.depth++
	return func() { n.depth-- }
}

func (n *nesting) guard(h UDPHandler) UDPHandler {
	return UDPHandler{
		OnDatagram: func(u *UDP, d *Datagram) { defer n.enter("OnDatagram")(); h.OnDatagram(u, d) },
		OnDrain:    func(u *UDP) { defer n.enter("OnDrain")(); h.OnDrain(u) },
		OnError:    func(u *UDP, err error) { defer n.enter("OnError")(); h.OnError(u, err) },
		OnClose:    func(u *UDP, err error) { defer n.enter("OnClose")(); h.OnClose(u, err) },
	}
}

// TestUDPCallbacksNeverNest holds "no call of this package calls a handler": it makes every call in every
// callback, those that cause another callback above all.
func TestUDPCallbacksNeverNest(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k, StopWhenIdle: true})
		n := &nesting{t: t, calls: map[string]int{}}
		leaveSetup := n.enter("setup")
		peer := listen(t, l, Bound{}, nil)
		var open []*UDP
		const rounds = 4 // in each callback; each makes more work
		var everything func()
		in := func(name string) {
			if n.calls[name] <= rounds {
				everything()
			}
			for _, name := range []string{"OnDatagram", "OnDrain", "OnError", "OnClose"} {
				if n.calls[name] < rounds {
					return
				}
			}
			for _, u := range append(open, peer) {
				_ = u.Close()
			}
		}
		h := n.guard(UDPHandler{
			OnDatagram: func(*UDP, *Datagram) { in("OnDatagram") },
			OnDrain:    func(*UDP) { in("OnDrain") },
			OnError:    func(*UDP, error) { in("OnError") },
			OnClose:    func(*UDP, error) { in("OnClose") },
		})
		everything = func() {
			u := mustListen(t, l, loopback4, UDPConfig{}, h)
			narrow := mustListen(t, l, loopback4, UDPConfig{MaxQueuedSends: 1}, h)
			open = append(open, u, narrow)
			_ = u.Connect(peer.LocalAddr())
			_ = u.Disconnect()
			mustSend(t, peer, "hello", u.LocalAddr())
			mustSend(t, u, "hello", u.LocalAddr())
			for range 62 {
				mustSend(t, u, "lost", nowhere) // refused by the kernel at the 64th: OnError
			}
			mustSend(t, u, "hello", u.LocalAddr())
			for range 64 {
				mustSend(t, u, "hello", u.LocalAddr())
			}
			u.Pause()
			u.Resume()
			mustSend(t, narrow, "", u.LocalAddr())
			if err := narrow.Send(nil, u.LocalAddr()); err != ErrWouldBlock { // so OnDrain follows
				t.Errorf("Send to a full queue: %v", err)
			}
			if len(open) > 4 {
				_ = open[0].Close()
				open = open[1:]
			}
			_, _ = u.Stats(), l.Stats()
		}
		everything()
		leaveSetup()
		run(t, l) // until each callback had its rounds
	})
}

// TestUDPCloseAnother: a socket that was ready, too, when a callback closed it hears nothing more, nor does
// one that got its place.
func TestUDPCloseAnother(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		var socks [2]*UDP
		var heard, closed [2]int
		for i := range socks {
			socks[i] = mustListen(t, l, loopback4, UDPConfig{}, UDPHandler{
				OnDatagram: func(*UDP, *Datagram) {
					other := socks[1-i]
					switch heard[i]++; heard[i] {
					case 1:
						_ = other.Close()
						mustListen(t, l, other.LocalAddr(), UDPConfig{}, UDPHandler{OnDatagram: func(*UDP, *Datagram) {
							t.Error("a new socket hears what was sent to an old one")
						}})
					case 3:
						l.NextTurn(func() { l.NextTurn(func() { _ = l.Close() }) })
					}
				},
				OnClose: func(*UDP, error) { closed[i]++ },
			})
		}
		from := listen(t, l, Bound{}, nil)
		for _, u := range socks {
			sendNow(t, from, u.LocalAddr(), 3)
		}
		run(t, l)
		if heard[0]+heard[1] != 3 || heard[0]*heard[1] != 0 || closed != [2]int{1, 1} {
			t.Errorf("heard %v, closed %v; want 3 on one of them, both closed once", heard, closed)
		}
	})
}

// TestUDPNilHandlers: "functions left nil do nothing".
func TestUDPNilHandlers(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		u := mustListen(t, l, loopback4, UDPConfig{MaxQueuedSends: 1}, UDPHandler{})
		mustSend(t, u, "into the void", nowhere)
		_ = u.Send(nil, u.LocalAddr())
		sendNow(t, listen(t, l, Bound{}, nil), u.LocalAddr(), 3)
		last := listen(t, l, Bound{}, func(*UDP, *Datagram) {
			if s := u.Stats(); s.Received != 3 || s.SendLost != 1 || s.Refused != 1 {
				t.Errorf("received %d, lost %d, refused %d; want 3, 1, 1", s.Received, s.SendLost, s.Refused)
			}
			_ = u.Close()
			l.NextTurn(func() { _ = l.Close() })
		})
		l.NextTurn(func() { l.NextTurn(func() { mustSend(t, u, "", last.LocalAddr()) }) })
		run(t, l)
	})
}

// TestUDPTwoLoops plays ping-pong between two goroutines.
func TestUDPTwoLoops(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		const rounds = 1000
		a, b := newLoop(t, Config{Kernel: k}), newLoop(t, Config{Kernel: k})
		var got [2]int
		player := func(l *Loop, i int) *UDP {
			return listen(t, l, Bound{}, func(u *UDP, d *Datagram) {
				got[i]++
				if err := u.Send(d.Payload, d.Source); err != nil {
					t.Error(err)
				}
				if got[i] == rounds {
					_ = l.Close()
				}
			})
		}
		ua, ub := player(a, 0), player(b, 1)
		mustSend(t, ua, "ball", ub.LocalAddr())
		done := make(chan error)
		go func() { done <- b.Run(context.Background()) }()
		run(t, a)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if got != [2]int{rounds, rounds} {
			t.Errorf("%v rounds, want %d", got, rounds)
		}
	})
}

// TestUDPZones holds "IPv6 zones are kept as numbers".
func TestUDPZones(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		net := memsys.New()
		addr := netip.MustParseAddr("fe80::1%7")
		net.AddAddr(addr)
		zones(t, NewKernel(net.Backend()), addr)
	})
	t.Run("kernel", func(t *testing.T) {
		addr, ok := linkLocal(t)
		if !ok {
			t.Skip("no interface that is up has a link-local IPv6 address")
		}
		zones(t, realKernel(t), addr)
	})
}

func linkLocal(t *testing.T) (netip.Addr, bool) {
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, ifi := range interfaces {
		addrs, err := ifi.Addrs()
		if err != nil || ifi.Flags&net.FlagUp == 0 {
			continue
		}
		for _, a := range addrs {
			prefix, err := netip.ParsePrefix(a.String())
			if err == nil && prefix.Addr().Is6() && prefix.Addr().IsLinkLocalUnicast() {
				return prefix.Addr().WithZone(strconv.Itoa(ifi.Index)), true
			}
		}
	}
	return netip.Addr{}, false
}

func zones(t *testing.T, k *Kernel, addr netip.Addr) {
	l := newLoop(t, Config{Kernel: k})
	at := netip.AddrPortFrom(addr, 0)
	server := mustListen(t, l, at, UDPConfig{}, UDPHandler{OnDatagram: func(u *UDP, d *Datagram) {
		if d.Source.Addr() != addr {
			t.Errorf("the source is %v, want %v", d.Source.Addr(), addr)
		}
		mustSend(t, u, "pong", d.Source)
	}})
	if server.LocalAddr().Addr() != addr {
		t.Errorf("the local address is %v, want %v", server.LocalAddr().Addr(), addr)
	}
	got := 0
	h := UDPHandler{OnDatagram: func(_ *UDP, d *Datagram) {
		if d.Source != server.LocalAddr() {
			t.Errorf("the source is %v, want %v", d.Source, server.LocalAddr())
		}
		if got++; got == 2 {
			_ = l.Close()
		}
	}}
	mustSend(t, mustListen(t, l, at, UDPConfig{}, h), "ping", server.LocalAddr())
	dialled := mustDial(t, l, netip.AddrPort{}, server.LocalAddr(), UDPConfig{}, h)
	if dialled.RemoteAddr() != server.LocalAddr() || dialled.LocalAddr().Addr() != addr {
		t.Errorf("dialled %v -> %v, want %v on both sides", dialled.LocalAddr(), dialled.RemoteAddr(), addr)
	}
	mustSend(t, dialled, "ping", netip.AddrPort{})
	run(t, l)
}
