package sock

import (
	"errors"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/weirnet/weir/internal/memsys"
	"github.com/weirnet/weir/internal/sys"
)

func addr(s string) (a netip.AddrPort) {
	if s != "" {
		a = netip.MustParseAddrPort(s)
	}
	return a
}

func TestFamilyOf(t *testing.T) {
	t.Parallel()
	noAddr := netip.AddrPortFrom(netip.Addr{}, 53)
	for _, row := range []struct {
		name   string
		o      UDPOptions
		family sys.Family
		local  string
	}{
		{"nothing", UDPOptions{}, sys.IPv6, "[::]:0"},
		{"a port", UDPOptions{Local: noAddr}, sys.IPv6, "[::]:53"},
		{"a port, IPv6 only", UDPOptions{Local: noAddr, IPv6Only: true}, sys.IPv6, "[::]:53"},
		{"an IPv4 peer", UDPOptions{Peer: addr("192.0.2.1:9")}, sys.IPv4, "0.0.0.0:0"},
		{"an IPv4 peer by its mapped name", UDPOptions{Peer: addr("[::ffff:192.0.2.1]:9")}, sys.IPv4, "0.0.0.0:0"},
		{"a port and an IPv4 peer", UDPOptions{Local: noAddr, Peer: addr("192.0.2.1:9")}, sys.IPv4, "0.0.0.0:53"},
		{"an IPv6 peer", UDPOptions{Peer: addr("[2001:db8::1]:9")}, sys.IPv6, "[::]:0"},
		{"IPv4", UDPOptions{Local: addr("192.0.2.7:1")}, sys.IPv4, "192.0.2.7:1"},
		{"IPv4 wildcard", UDPOptions{Local: addr("0.0.0.0:1")}, sys.IPv4, "0.0.0.0:1"},
		{"IPv6", UDPOptions{Local: addr("[2001:db8::7]:1")}, sys.IPv6, "[2001:db8::7]:1"},
		{"IPv6 and an IPv4 peer", UDPOptions{Local: addr("[::]:1"), Peer: addr("192.0.2.1:9")}, sys.IPv6, "[::]:1"},
		{"a zone", UDPOptions{Local: addr("[fe80::7%3]:1")}, sys.IPv6, "[fe80::7%3]:1"},
		{"a mapped name", UDPOptions{Local: addr("[::ffff:192.0.2.7]:1")}, sys.IPv6, "[::ffff:192.0.2.7]:1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if family, local := FamilyOf(row.o); family != row.family || local != addr(row.local) {
				t.Errorf("family %d, %v; want %d, %v", family, local, row.family, row.local)
			}
		})
	}
}

func TestForFamily(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		addr   string
		family sys.Family
		want   string // "": EAFNOSUPPORT
	}{
		{"192.0.2.1:9", sys.IPv4, "192.0.2.1:9"},
		{"192.0.2.1:9", sys.IPv6, "[::ffff:192.0.2.1]:9"},
		{"[::ffff:192.0.2.1]:9", sys.IPv4, "192.0.2.1:9"},
		{"[::ffff:192.0.2.1]:9", sys.IPv6, "[::ffff:192.0.2.1]:9"},
		{"[2001:db8::1]:9", sys.IPv4, ""},
		{"[2001:db8::1]:9", sys.IPv6, "[2001:db8::1]:9"},
		{"[fe80::1%2]:9", sys.IPv4, ""},
		{"[fe80::1%2]:9", sys.IPv6, "[fe80::1%2]:9"},
	} {
		got, err := ForFamily(addr(row.addr), row.family)
		switch {
		case row.want == "":
			if !errors.Is(err, syscall.EAFNOSUPPORT) || got.IsValid() || !strings.Contains(err.Error(), addr(row.addr).Addr().String()) {
				t.Errorf("%s for family %d: %v, %v", row.addr, row.family, got, err)
			}
		case err != nil || got != addr(row.want):
			t.Errorf("%s for family %d: %v, %v; want %s", row.addr, row.family, got, err, row.want)
		}
	}
}

func TestUnmap(t *testing.T) {
	t.Parallel()
	for from, to := range map[string]string{
		"192.0.2.1:9": "192.0.2.1:9", "[::ffff:192.0.2.1]:9": "192.0.2.1:9",
		"[2001:db8::1]:9": "[2001:db8::1]:9", "[fe80::1%2]:9": "[fe80::1%2]:9", "": "",
	} {
		if got := Unmap(addr(from)); got != addr(to) {
			t.Errorf("Unmap(%s) is %v, want %s", from, got, to)
		}
	}
}

// failing is a kernel that refuses one of its calls, and counts descriptors.
type failing struct {
	sys.Kernel
	at    int // the call to refuse, counted from 1; 0: none
	err   error
	calls int
	open  int
	log   []string
}

func (k *failing) refuse(call string) error {
	k.log = append(k.log, call)
	if k.calls++; k.calls == k.at {
		return k.err
	}
	return nil
}

func (k *failing) Socket(f sys.Family, kind sys.Kind) (int, error) {
	if err := k.refuse("socket"); err != nil {
		return -1, err
	}
	fd, err := k.Kernel.Socket(f, kind)
	if err == nil {
		k.open++
	}
	return fd, err
}

func (k *failing) Bind(fd int, a netip.AddrPort) error {
	if err := k.refuse("bind"); err != nil {
		return err
	}
	return k.Kernel.Bind(fd, a)
}

func (k *failing) Connect(fd int, a netip.AddrPort) error {
	if err := k.refuse("connect"); err != nil {
		return err
	}
	return k.Kernel.Connect(fd, a)
}

func (k *failing) SetOption(fd int, o sys.Option, value int) error {
	if err := k.refuse(optionNames[o]); err != nil {
		return err
	}
	return k.Kernel.SetOption(fd, o, value)
}

func (k *failing) Close(fd int) error {
	k.open--
	return k.Kernel.Close(fd)
}

var optionNames = map[sys.Option]string{
	sys.IPv6Only: "IPv6Only", sys.ReuseAddr: "ReuseAddr", sys.ReusePort: "ReusePort", sys.Broadcast: "Broadcast",
	sys.RecvBuffer: "RecvBufferBytes", sys.SendBuffer: "SendBufferBytes",
}

// everything is options that need every call there is.
func everything() UDPOptions {
	return UDPOptions{
		Peer: addr("[::1]:9"), ReuseAddr: true, ReusePort: true, // weir:port the kernel is in memory
		UDPSettings: UDPSettings{Broadcast: true, RecvBufferBytes: 1000, SendBufferBytes: 2000},
	}
}

// TestOpenFails refuses call after call: the error names the call, and no descriptor is left.
func TestOpenFails(t *testing.T) {
	t.Parallel()
	const calls = 9
	for at := 1; at <= calls+1; at++ {
		k := &failing{Kernel: memsys.New().Backend().Kernel, at: at, err: syscall.ENOMEM}
		fd, family, err := OpenUDP(k, everything())
		if at == calls+1 {
			if err != nil || len(k.log) != calls || k.open != 1 {
				t.Errorf("without a fault: %v, %d descriptors, calls %v", err, k.open, k.log)
			}
			continue
		}
		var e *Error
		if !errors.As(err, &e) || e.Step != k.log[at-1] || !errors.Is(err, syscall.ENOMEM) {
			t.Errorf("call %d, %s: the error is %v", at, k.log[at-1], err)
			continue
		}
		if fd != -1 || family != 0 || k.open != 0 || len(k.log) != at {
			t.Errorf("%s fails: fd %d, family %d, %d descriptors open, calls %v", e.Step, fd, family, k.open, k.log)
		}
		if want := e.Step + ": " + syscall.ENOMEM.Error(); err.Error() != want {
			t.Errorf("the error is %q, want %q", err, want)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		o    UDPOptions
		step string
		want error
	}{
		{"an address of others", UDPOptions{Local: addr("192.0.2.1:0")}, "bind", syscall.EADDRNOTAVAIL},
		{"an IPv6 peer of an IPv4 socket", UDPOptions{Local: addr("127.0.0.1:0"), Peer: addr("[2001:db8::1]:9")}, "connect", syscall.EAFNOSUPPORT},
		{"a peer out of reach", UDPOptions{Peer: addr("192.0.2.1:9")}, "connect", syscall.ENETUNREACH},
		{"IPv4 by IPv6 only", UDPOptions{Local: addr("[::ffff:127.0.0.1]:0"), IPv6Only: true}, "bind", syscall.EINVAL},
		{"broadcast without leave", UDPOptions{Peer: addr("127.255.255.255:9")}, "connect", syscall.EACCES},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			net := memsys.New()
			fd, _, err := OpenUDP(net.Backend().Kernel, row.o)
			var e *Error
			if fd != -1 || !errors.As(err, &e) || e.Step != row.step || !errors.Is(err, row.want) {
				t.Errorf("fd %d, %v; want %s: %v", fd, err, row.step, row.want)
			}
			if c := net.Calls(); c.Socket != c.Close {
				t.Errorf("%d sockets made, %d closed", c.Socket, c.Close)
			}
		})
	}
}

// TestOpenOptions reads back what was set, and sees that nothing else was.
func TestOpenOptions(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		o    UDPOptions
		log  string
		want map[sys.Option]int
	}{
		{"none, IPv4", UDPOptions{Local: addr("127.0.0.1:0")}, "socket bind", map[sys.Option]int{
			sys.ReuseAddr: 0, sys.ReusePort: 0, sys.Broadcast: 0,
		}},
		{"none", UDPOptions{}, "socket IPv6Only bind", map[sys.Option]int{sys.IPv6Only: 0}},
		{"IPv6 only", UDPOptions{IPv6Only: true}, "socket IPv6Only bind", map[sys.Option]int{sys.IPv6Only: 1}},
		{"IPv6 only on IPv4", UDPOptions{Local: addr("0.0.0.0:0"), IPv6Only: true}, "socket bind", nil},
		{"all", everything(), "socket IPv6Only ReuseAddr ReusePort Broadcast RecvBufferBytes SendBufferBytes bind connect",
			map[sys.Option]int{
				sys.IPv6Only: 0, sys.ReuseAddr: 1, sys.ReusePort: 1, sys.Broadcast: 1, sys.RecvBuffer: 2304, sys.SendBuffer: 4608,
			}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			k := &failing{Kernel: memsys.New().Backend().Kernel}
			fd, _, err := OpenUDP(k, row.o)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(k.log, " "); got != row.log {
				t.Errorf("calls: %s\nwant:  %s", got, row.log)
			}
			for o, want := range row.want {
				if got, err := k.GetOption(fd, o); err != nil || got != want {
					t.Errorf("%s is %d, %v; want %d", optionNames[o], got, err, want)
				}
			}
		})
	}
}

// TestOpenAddresses opens sockets and asks the kernel what they became.
func TestOpenAddresses(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name         string
		local, peer  string
		family       sys.Family
		isLocal, its string // the addresses, as the kernel shows them
	}{
		{"no address", "", "", sys.IPv6, "::", ""},
		{"IPv4", "127.0.0.1:0", "", sys.IPv4, "127.0.0.1", ""},
		{"IPv4 peer", "", "127.0.0.1:9", sys.IPv4, "127.0.0.1", "127.0.0.1"},                             // weir:port in memory
		{"IPv6 peer", "", "[::1]:9", sys.IPv6, "::1", "::1"},                                             // weir:port in memory
		{"IPv4 peer of IPv6", "[::]:0", "127.0.0.1:9", sys.IPv6, "::ffff:127.0.0.1", "::ffff:127.0.0.1"}, // weir:port in memory
		{"mapped peer", "127.0.0.1:0", "[::ffff:127.0.0.1]:9", sys.IPv4, "127.0.0.1", "127.0.0.1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			k := memsys.New().Backend().Kernel
			fd, family, err := OpenUDP(k, UDPOptions{Local: addr(row.local), Peer: addr(row.peer)})
			if err != nil || family != row.family {
				t.Fatalf("family %d, %v; want %d", family, err, row.family)
			}
			if got, err := k.LocalAddr(fd); err != nil || got.Addr().String() != row.isLocal || got.Port() == 0 {
				t.Errorf("local address %v, %v; want %s", got, err, row.isLocal)
			}
			got, err := k.RemoteAddr(fd)
			if row.its == "" {
				if err != syscall.ENOTCONN {
					t.Errorf("the peer is %v, %v; want none", got, err)
				}
			} else if err != nil || got.Addr().String() != row.its {
				t.Errorf("the peer is %v, %v; want %s", got, err, row.its)
			}
		})
	}
}

// noIPv6 is a system without IPv6, or short of descriptors for it.
type noIPv6 struct {
	sys.Kernel
	err error
}

func (k noIPv6) Socket(f sys.Family, kind sys.Kind) (int, error) {
	if f == sys.IPv6 {
		return -1, k.err
	}
	return k.Kernel.Socket(f, kind)
}

// TestOpenWithoutIPv6 holds "the wildcard, of IPv6 and IPv4 at once where there is IPv6", and of IPv4 where
// there is none; who asked for IPv6 gets an error.
func TestOpenWithoutIPv6(t *testing.T) {
	t.Parallel()
	port := netip.AddrPortFrom(netip.Addr{}, 5353)
	for _, row := range []struct {
		name string
		o    UDPOptions
		err  error
		want string // the local address; "": the error
	}{
		{"no address", UDPOptions{Local: port}, syscall.EAFNOSUPPORT, "0.0.0.0:5353"},
		{"the IPv6 wildcard", UDPOptions{Local: addr("[::]:0")}, syscall.EAFNOSUPPORT, ""},
		{"an IPv6 peer", UDPOptions{Peer: addr("[2001:db8::1]:9")}, syscall.EAFNOSUPPORT, ""},
		{"IPv6 only", UDPOptions{Local: port, IPv6Only: true}, syscall.EAFNOSUPPORT, ""},
		{"no descriptor left", UDPOptions{Local: port}, syscall.EMFILE, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			k := noIPv6{memsys.New().Backend().Kernel, row.err}
			fd, family, err := OpenUDP(k, row.o)
			if row.want == "" {
				var e *Error
				if !errors.As(err, &e) || e.Step != "socket" || !errors.Is(err, row.err) {
					t.Errorf("fd %d, %v; want %v", fd, err, row.err)
				}
				return
			}
			if err != nil || family != sys.IPv4 {
				t.Fatalf("family %d, %v", family, err)
			}
			if got, err := k.LocalAddr(fd); err != nil || got != addr(row.want) {
				t.Errorf("local address %v, %v; want %s", got, err, row.want)
			}
		})
	}
}
