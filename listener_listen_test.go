package weir

import (
	"errors"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirnet/weir/internal/memsys"
	"github.com/weirnet/weir/internal/sock"
	"github.com/weirnet/weir/internal/sys"
)

// knock connects a socket that no loop has.
func knock(t *testing.T, k sys.Kernel, to netip.AddrPort) (fd int) {
	t.Helper()
	fd, _, _, err := sock.ConnectTCP(k, sock.TCPOptions{}, to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close(fd) })
	return fd
}

// TestListenAddresses has clients of both families: who comes by IPv4 is IPv4, through whatever socket.
func TestListenAddresses(t *testing.T) {
	for _, row := range []struct {
		name   string
		local  string // "": none at all
		only   bool
		client string
		open   bool
	}{
		{"IPv4", "127.0.0.1:0", false, "127.0.0.1", true},
		{"IPv6", "[::1]:0", false, "::1", true},
		{"no address, IPv4", "", false, "127.0.0.1", true},
		{"no address, IPv6", "", false, "::1", true},
		{"wildcard, IPv4", "[::]:0", false, "127.0.0.1", true},
		{"IPv6 only, IPv6", "[::]:0", true, "::1", true},
		{"IPv6 only, IPv4", "[::]:0", true, "127.0.0.1", false},
		{"wildcard of IPv4, IPv6", "0.0.0.0:0", false, "::1", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				l := newLoop(t, Config{Kernel: k})
				var local netip.AddrPort
				if row.local != "" {
					local = addrPort(row.local)
				}
				want := netip.MustParseAddr(row.client)
				opened := false
				ln, err := l.ListenTCP(local, ListenerConfig{IPv6Only: row.only}, ListenerHandler{Conn: ConnHandler{
					OnOpen: func(c *Conn) {
						if opened = true; c.RemoteAddr().Addr() != want || c.LocalAddr().Addr() != want {
							t.Errorf("%v at %v, want %v", c.RemoteAddr(), c.LocalAddr(), want)
						}
						_ = c.Close()
					},
				}})
				if err != nil {
					t.Fatal(err)
				}
				if ln.Addr().Port() == 0 || ln.Name() != "" || ln.Loop() != l {
					t.Errorf("it listens at %v, %q", ln.Addr(), ln.Name())
				}
				to := netip.AddrPortFrom(want, ln.Addr().Port())
				_, err = l.DialTCP(netip.AddrPort{}, to, ConnConfig{}, ConnHandler{OnClose: func(_ *Conn, err error) {
					if row.open != (err == nil) || !row.open && !errors.Is(err, syscall.ECONNREFUSED) {
						t.Errorf("the client hears %v", err)
					}
					_ = l.Close()
				}})
				if err != nil {
					t.Fatal(err)
				}
				run(t, l)
				if opened != row.open {
					t.Errorf("accepted is %v", opened)
				}
			})
		})
	}
}

// TestListenErrors: each tells the field, or the step, and the address.
func TestListenErrors(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		ln := serve(t, l, ListenerConfig{}, ConnHandler{})
		for _, row := range []struct {
			want  string
			is    error
			local netip.AddrPort
			cfg   ListenerConfig
		}{
			{"Backlog", nil, loopback4, ListenerConfig{Backlog: -1}},
			{"MaxConns", nil, loopback4, ListenerConfig{MaxConns: -1}},
			{"DeferAccept", nil, loopback4, ListenerConfig{DeferAccept: -time.Second}},
			{"ConnConfig.MaxFiles", nil, loopback4, ListenerConfig{Conn: ConnConfig{MaxFiles: 254}}},
			{"ConnConfig.TTL", nil, loopback4, ListenerConfig{Conn: ConnConfig{TTL: 256}}},
			{"Count(-1)", nil, loopback4, ListenerConfig{Conn: ConnConfig{Bound: Count(-1)}}},
			{"Device", syscall.ENODEV, loopback4, ListenerConfig{Device: "nosuch0"}},
			{"bind", syscall.EADDRINUSE, ln.Addr(), ListenerConfig{}},
			{"bind", syscall.EADDRNOTAVAIL, addrPort("192.0.2.1:0"), ListenerConfig{}},
		} {
			_, err := l.ListenTCP(row.local, row.cfg, ListenerHandler{})
			var op *OpError
			switch {
			case !errors.As(err, &op) || op.Op != "listen" || op.Net != "tcp" || op.Source != row.local:
				t.Errorf("%s: %#v", row.want, err)
			case !strings.Contains(err.Error(), row.want) || row.is != nil && !errors.Is(err, row.is):
				t.Errorf("%v, want %s and %v", err, row.want, row.is)
			}
		}
		if n := l.table.len(); n != 1 {
			t.Errorf("%d sources are left", n)
		}
		_ = l.Close()
		if _, err := l.ListenTCP(loopback4, ListenerConfig{}, ListenerHandler{}); !errors.Is(err, ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

// TestListenReusePort has two listeners at a port, which have a part each of many clients.
func TestListenReusePort(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		const clients = 64
		l := newLoop(t, Config{Kernel: k})
		var counts [2]int
		count := func(i int) ListenerHandler {
			return ListenerHandler{Conn: ConnHandler{OnOpen: func(*Conn) {
				if counts[i]++; counts[0]+counts[1] == clients {
					_ = l.Close()
				}
			}}}
		}
		first, err := l.ListenTCP(loopback4, ListenerConfig{ReusePort: true}, count(0))
		if err != nil {
			t.Fatal(err)
		}
		_, err = l.ListenTCP(first.Addr(), ListenerConfig{ReusePort: true}, count(1))
		if err != nil {
			t.Fatal(err)
		}
		for range clients {
			knock(t, k.backend.Kernel, first.Addr())
		}
		run(t, l)
		if counts[0] == 0 || counts[1] == 0 {
			t.Errorf("they have %v of %d", counts, clients)
		}
	})
}

// TestListenDeferAccept: "a connection is left in the kernel until it has sent something".
func TestListenDeferAccept(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		accepted := 0
		ln := serve(t, l, ListenerConfig{DeferAccept: 30 * time.Second}, ConnHandler{
			OnOpen: func(*Conn) { accepted++ },
			OnData: func(*Conn, []byte) { _ = l.Close() },
		})
		client := dialTo(t, l, ln, ConnConfig{}, ConnHandler{OnOpen: func(c *Conn) {
			l.AfterFunc(20*time.Millisecond, func() {
				if accepted != 0 {
					t.Error("it is accepted without a byte")
				}
				_, _ = c.Write([]byte{1})
			})
		}})
		run(t, l)
		if accepted != 1 {
			t.Errorf("%d accepted, and the client is %v", accepted, client.Stats())
		}
	})
}

// TestListenBacklog: in memory "backlog is the number of connections that wait for Accept (Linux: one more)".
func TestListenBacklog(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		ln := serve(t, l, ListenerConfig{Backlog: 2}, ConnHandler{})
		ln.Pause()
		opened := 0
		for range 5 {
			dialTo(t, l, ln, ConnConfig{}, ConnHandler{OnOpen: func(*Conn) { opened++ }})
		}
		l.AfterFunc(time.Second, func() {
			if opened != 3 || ln.Conns() != 0 {
				t.Errorf("%d of 5 are in a backlog of 2, %d accepted", opened, ln.Conns())
			}
			ln.Resume()
		})
		l.AfterFunc(2*time.Second, func() {
			if opened != 5 || ln.Conns() != 5 {
				t.Errorf("%d of 5 are open, %d accepted", opened, ln.Conns())
			}
			if turns := l.Turn(); turns > 50 {
				t.Errorf("%d turns", turns)
			}
			_ = l.Close()
		})
		run(t, l)
	})
}
