package sock

import (
	"errors"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/weirnet/weir/internal/memsys"
	"github.com/weirnet/weir/internal/sys"
)

// optionsOf reads options back.
func optionsOf(t *testing.T, k sys.Kernel, fd int, want map[sys.Option]int) {
	t.Helper()
	for o, value := range want {
		if got, err := k.GetOption(fd, o); err != nil || got != value {
			t.Errorf("option %d is %d, %v; want %d", o, got, err, value)
		}
	}
}

// TestStreamOptions reads back what was set, and what is set of nothing.
func TestStreamOptions(t *testing.T) {
	onKernels(t, func(t *testing.T, k counted) {
		for _, row := range []struct {
			name string
			s    StreamSettings
			want map[sys.Option]int
		}{
			{"none", StreamSettings{}, map[sys.Option]int{
				sys.NoDelay: 1, sys.KeepAlive: 1, sys.KeepIdle: 15, sys.KeepInterval: 15, sys.KeepCount: 9, sys.UserTimeout: 0,
			}},
			{"all", streamSettings(), map[sys.Option]int{
				sys.NoDelay: 1, sys.KeepAlive: 1, sys.KeepIdle: 30, sys.KeepInterval: 7, sys.KeepCount: 4,
				sys.UserTimeout: 12000, sys.RecvBuffer: 18000, sys.SendBuffer: 16000, sys.NotSentLowAt: 4321,
				sys.TTL: 9, sys.TOS: 0x20,
			}},
			{"none of them", StreamSettings{Delay: true, KeepAlive: -1}, map[sys.Option]int{sys.NoDelay: 0, sys.KeepAlive: 0}},
			{"times are rounded up", StreamSettings{KeepAlive: 1, KeepInterval: time.Second + 1, UserTimeout: 1}, map[sys.Option]int{
				sys.KeepIdle: 1, sys.KeepInterval: 2, sys.UserTimeout: 1,
			}},
		} {
			t.Run(row.name, func(t *testing.T) {
				o := TCPOptions{Local: addr("127.0.0.1:0"), StreamSettings: row.s}
				l, f, err := ListenTCP(k, o, 0, 5)
				if err != nil || f != sys.IPv4 {
					t.Fatal(f, err)
				}
				optionsOf(t, k, l, row.want)
				optionsOf(t, k, l, map[sys.Option]int{sys.ReuseAddr: 1, sys.ReusePort: 0, sys.DeferAccept: 0})
				at, err := k.LocalAddr(l)
				if err != nil {
					t.Fatal(err)
				}
				c, _, _, err := ConnectTCP(k, TCPOptions{StreamSettings: row.s}, at)
				if err != nil {
					t.Fatal(err)
				}
				optionsOf(t, k, c, row.want)
				optionsOf(t, k, c, map[sys.Option]int{sys.ReuseAddr: 0})

				// On again, and off again, is what Apply does to one that is open.
				if err := (&StreamSettings{}).Apply(k, c, sys.IPv4); err != nil {
					t.Error(err)
				}
				optionsOf(t, k, c, map[sys.Option]int{sys.NoDelay: 1, sys.KeepAlive: 1})
				if err := (&StreamSettings{Delay: true, KeepAlive: -1}).Apply(k, c, sys.IPv4); err != nil {
					t.Error(err)
				}
				optionsOf(t, k, c, map[sys.Option]int{sys.NoDelay: 0, sys.KeepAlive: 0})
			})
		}
	})
}

// TestInherited: "A listener's are those of the connections that it accepts".
func TestInherited(t *testing.T) {
	onKernels(t, func(t *testing.T, k counted) {
		for _, local := range []string{"127.0.0.1:0", "[::1]:0", "[::]:0"} {
			l, f, err := ListenTCP(k, TCPOptions{Local: addr(local), StreamSettings: streamSettings()}, 0, 5)
			if errors.Is(err, syscall.EAFNOSUPPORT) || errors.Is(err, syscall.EADDRNOTAVAIL) {
				t.Logf("no IPv6 here: %v", err)
				continue
			} else if err != nil {
				t.Fatal(err)
			}
			at, err := k.LocalAddr(l)
			if err != nil {
				t.Fatal(err)
			}
			if at.Addr().IsUnspecified() {
				at = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), at.Port())
			}
			if _, _, _, err := ConnectTCP(k, TCPOptions{}, at); err != nil {
				t.Fatal(err)
			}
			c := accepted(t, k, l)
			want := map[sys.Option]int{
				sys.NoDelay: 1, sys.KeepAlive: 1, sys.KeepIdle: 30, sys.KeepInterval: 7, sys.KeepCount: 4,
				sys.UserTimeout: 12000, sys.RecvBuffer: 18000, sys.SendBuffer: 16000, sys.NotSentLowAt: 4321,
				sys.TTL: 9, sys.TOS: 0x20,
			}
			if f == sys.IPv6 {
				want[sys.HopLimit], want[sys.TrafficClass] = 9, 0x20
			}
			optionsOf(t, k, c, want)
		}
	})
}

// accepted waits for a connection.
func accepted(t *testing.T, k sys.Kernel, l int) int {
	t.Helper()
	for range 1000 {
		c, _, err := k.Accept(l)
		if err == nil {
			return c
		} else if err != syscall.EAGAIN {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("no connection came")
	return -1
}

func TestListenOptions(t *testing.T) {
	onKernels(t, func(t *testing.T, k counted) {
		o := TCPOptions{Local: addr("127.0.0.1:0"), NoReuseAddr: true, ReusePort: true}
		l, _, err := ListenTCP(k, o, time.Second, 5)
		if err != nil {
			t.Fatal(err)
		}
		optionsOf(t, k, l, map[sys.Option]int{sys.ReuseAddr: 0, sys.ReusePort: 1, sys.DeferAccept: 1})
		if d, err := k.Describe(l); err != nil || !d.Listening || d.Kind != sys.TCP {
			t.Errorf("%+v, %v", d, err)
		}
		at, err := k.LocalAddr(l)
		if err != nil {
			t.Fatal(err)
		}
		// A second one of the same port: with the same option it may be, without not.
		o.Local = at
		if _, _, err := ListenTCP(k, o, 0, 5); err != nil {
			t.Error(err)
		}
		var e *Error
		if _, _, err := ListenTCP(k, TCPOptions{Local: at}, 0, 5); !errors.As(err, &e) || e.Step != "bind" || !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("a port that is in use: %v", err)
		}
	})
}

// TestConnectFrom connects from an address of the caller's choice, and to two peers from the same port.
func TestConnectFrom(t *testing.T) {
	onKernels(t, func(t *testing.T, k counted) {
		first, second := listening(t, k), listening(t, k)
		c, _, _, err := ConnectTCP(k, TCPOptions{Local: addr("127.0.0.1:0")}, first)
		if err != nil {
			t.Fatal(err)
		}
		optionsOf(t, k, c, map[sys.Option]int{sys.ReuseAddr: 0})

		from := reserved(t, k)
		for _, peer := range []netip.AddrPort{first, second} {
			c, _, _, err = ConnectTCP(k, TCPOptions{Local: from}, peer)
			if err != nil {
				t.Fatal(err)
			}
			optionsOf(t, k, c, map[sys.Option]int{sys.ReuseAddr: 1})
			if got, err := k.LocalAddr(c); got != from || err != nil {
				t.Errorf("connected from %v, %v; want %v", got, err, from)
			}
		}
		if _, _, _, err := ConnectTCP(k, TCPOptions{Local: from, NoReuseAddr: true}, listening(t, k)); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("without ReuseAddr: %v", err)
		}
	})
}

// reserved is a port that those alone get who let others have it, too.
func reserved(t *testing.T, k sys.Kernel) netip.AddrPort {
	t.Helper()
	fd, err := k.Socket(sys.IPv4, sys.TCP)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(k.SetOption(fd, sys.ReuseAddr, 1), k.Bind(fd, addr("127.0.0.1:0"))); err != nil {
		t.Fatal(err)
	}
	at, err := k.LocalAddr(fd)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// answering is a kernel whose Connect answers what it is told.
type answering struct {
	sys.Kernel
	err   error
	binds *int
}

func (k answering) Connect(int, netip.AddrPort) error { return k.err }

func (k answering) Bind(fd int, a netip.AddrPort) error {
	*k.binds++
	return k.Kernel.Bind(fd, a)
}

func TestConnected(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name      string
		o         TCPOptions
		peer      string
		answer    error
		connected bool
		binds     int
		err       error
	}{
		{"at once", TCPOptions{}, "192.0.2.1:9", nil, true, 0, nil},
		{"later", TCPOptions{}, "192.0.2.1:9", syscall.EINPROGRESS, false, 0, nil},
		{"refused", TCPOptions{}, "192.0.2.1:9", syscall.ECONNREFUSED, false, 0, syscall.ECONNREFUSED},
		{"from an address", TCPOptions{Local: addr("127.0.0.1:0")}, "192.0.2.1:9", nil, true, 1, nil},
		{"from a port", TCPOptions{Local: netip.AddrPortFrom(netip.Addr{}, 53)}, "192.0.2.1:9", nil, true, 1, nil},
		{"of another family", TCPOptions{Local: addr("127.0.0.1:0")}, "[2001:db8::1]:9", nil, false, 1, syscall.EAFNOSUPPORT},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c, binds := counted{memsys.New().Backend().Kernel, map[int]bool{}}, 0
			fd, f, connected, err := ConnectTCP(answering{c, row.answer, &binds}, row.o, addr(row.peer))
			if connected != row.connected || binds != row.binds || !errors.Is(err, row.err) {
				t.Errorf("connected %v, %d binds, %v; want %v, %d, %v", connected, binds, err, row.connected, row.binds, row.err)
			}
			if ok := row.err == nil; ok != (fd >= 0) || ok != (f == sys.IPv4) || ok != (len(c.open) == 1) {
				t.Errorf("fd %d, family %d, %d descriptors", fd, f, len(c.open))
			}
		})
	}
}

// TestListenWithoutIPv6: the wildcard is IPv4's where there is no IPv6; who asked for IPv6 gets an error.
func TestListenWithoutIPv6(t *testing.T) {
	t.Parallel()
	k := noIPv6{memsys.New().Backend().Kernel, syscall.EAFNOSUPPORT}
	fd, f, err := ListenTCP(k, TCPOptions{}, 0, 5)
	if err != nil || f != sys.IPv4 {
		t.Fatalf("family %d, %v", f, err)
	}
	if got, err := k.LocalAddr(fd); err != nil || got.Addr() != netip.IPv4Unspecified() {
		t.Errorf("listens at %v, %v", got, err)
	}
	for _, o := range []TCPOptions{{IPv6Only: true}, {Local: addr("[::]:0")}} {
		if _, _, err := ListenTCP(k, o, 0, 5); !errors.Is(err, syscall.EAFNOSUPPORT) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	for only, want := range map[bool]int{false: 0, true: 1} {
		k := memsys.New().Backend().Kernel
		fd, f, err := ListenTCP(k, TCPOptions{IPv6Only: only}, 0, 5)
		if err != nil || f != sys.IPv6 {
			t.Fatalf("family %d, %v", f, err)
		}
		optionsOf(t, k, fd, map[sys.Option]int{sys.IPv6Only: want})
	}
}

func TestInUnits(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		d, unit time.Duration
		want    int
	}{
		{0, time.Second, 0}, {1, time.Second, 1}, {time.Second, time.Second, 1}, {time.Second + 1, time.Second, 2},
		{1500 * time.Microsecond, time.Millisecond, 2}, {1<<63 - 1, time.Millisecond, 1<<31 - 1},
	} {
		if got := inUnits(row.d, row.unit); got != row.want {
			t.Errorf("%v in units of %v is %d, want %d", row.d, row.unit, got, row.want)
		}
	}
}
