package weir

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/weirnet/weir/internal/sys"
)

// wantOption fails if an error is not an OpError that names an option.
func wantOption(t *testing.T, err error, name string, reason error) {
	t.Helper()
	var op *OpError
	if !errors.As(err, &op) || !strings.Contains(err.Error(), name+": ") && !strings.Contains(err.Error(), name+" ") || !errors.Is(err, reason) {
		t.Errorf("the error is %v; want one that names %s: %v", err, name, reason)
	}
}

func option(t *testing.T, u *UDP, o sys.Option) int {
	t.Helper()
	v, err := u.loop.kernel.GetOption(u.fd, o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestUDPOptions sets each option when the socket is opened and when it is open, and asks the kernel.
func TestUDPOptions(t *testing.T) {
	for _, local := range []string{"127.0.0.1:0", "[::1]:0", "[::]:0"} {
		t.Run(local, func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				l := newLoop(t, Config{Kernel: k})
				v6 := local[0] == '['
				if v6 {
					needIPv6(t, l)
				}
				cfg := UDPConfig{
					Broadcast: true, TTL: 9, TrafficClass: 0x20, MulticastTTL: 3, NoMulticastLoop: true,
					Fragment: FragmentNever, RecvBufferBytes: 50_000, SendBufferBytes: 60_000, ReuseAddr: true, ReusePort: true,
					Reports: true, ReceiveLocal: true, ReceiveECN: true, ReceiveTime: true,
				}
				u := mustListen(t, l, addrPort(local), cfg, UDPHandler{})
				check := func(want map[sys.Option]int) {
					t.Helper()
					for o, v := range want {
						if got := option(t, u, o); got != v {
							t.Errorf("option %d is %d, want %d", o, got, v)
						}
					}
				}
				check(map[sys.Option]int{
					sys.Broadcast: 1, sys.TTL: 9, sys.TOS: 0x20, sys.MulticastTTL: 3, sys.MulticastLoop: 0,
					sys.PathMTUDiscovery: int(sys.FragmentNever), sys.RecvBuffer: 100_000, sys.SendBuffer: 120_000,
					sys.ReuseAddr: 1, sys.ReusePort: 1, sys.Reports: 1, sys.RecvTOS: 1, sys.RecvTime: 1,
				})
				if v6 {
					check(map[sys.Option]int{
						sys.HopLimit: 9, sys.TrafficClass: 0x20, sys.MulticastHopLimit: 3, sys.MulticastLoop6: 0,
						sys.PathMTUDiscovery6: int(sys.FragmentNever), sys.Reports6: 1, sys.RecvTrafficClass: 1, sys.RecvLocal6: 1,
					})
				} else {
					check(map[sys.Option]int{sys.RecvLocal: 1})
				}
				for name, err := range map[string]error{
					"Broadcast": u.SetBroadcast(false), "TTL": u.SetTTL(200), "TrafficClass": u.SetTrafficClass(0x40),
					"Fragment": u.SetFragment(ProbePath), "MulticastTTL": u.SetMulticastTTL(0),
					"MulticastLoop": u.SetMulticastLoop(true), "buffers": u.SetBuffers(70_000, 80_000),
				} {
					if err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
				check(map[sys.Option]int{
					sys.Broadcast: 0, sys.TTL: 200, sys.TOS: 0x40, sys.MulticastTTL: 0, sys.MulticastLoop: 1,
					sys.PathMTUDiscovery: int(sys.FragmentProbe), sys.RecvBuffer: 140_000, sys.SendBuffer: 160_000,
				})
				if s := u.Stats(); s.RecvBufferBytes != 140_000 || s.SendBufferBytes != 160_000 {
					t.Errorf("Stats tells buffers of %d and %d", s.RecvBufferBytes, s.SendBufferBytes)
				}
			})
		})
	}
}

// TestUDPOptionErrors: a wrong value is an error that names the option, when opening and afterwards.
func TestUDPOptionErrors(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		for name, cfg := range map[string]UDPConfig{
			"TTL": {TTL: 256}, "MulticastTTL": {MulticastTTL: -1}, "TrafficClass": {TrafficClass: 256},
			"Fragment": {Fragment: FragmentOmit + 1}, "MulticastInterface": {MulticastInterface: &net.Interface{Index: 99_999}},
			"RecvBufferBytes": {RecvBufferBytes: -1}, "Device": {Device: "no-such-device"},
		} {
			u, err := l.ListenUDP(loopback4, cfg, UDPHandler{})
			var op *OpError
			if u != nil || !errors.As(err, &op) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v, %v", name, u, err)
			}
		}
		u := listen(t, l, Bound{}, nil)
		group, source := netip.MustParseAddr("239.1.2.3"), netip.MustParseAddr("127.0.0.1")
		nowhere := &net.Interface{Index: 99_999}
		wantOption(t, u.SetTTL(0), "TTL", syscall.EINVAL)
		wantOption(t, u.SetTTL(256), "TTL", syscall.EINVAL)
		wantOption(t, u.SetTrafficClass(-1), "TrafficClass", syscall.EINVAL)
		wantOption(t, u.SetMulticastTTL(256), "MulticastTTL", syscall.EINVAL)
		wantOption(t, u.SetFragment(SystemFragmentation), "Fragment", syscall.EINVAL)
		wantOption(t, u.SetBuffers(-1, 0), "RecvBufferBytes", syscall.EINVAL)
		wantOption(t, u.SetBuffers(0, -1), "SendBufferBytes", syscall.EINVAL)
		wantOption(t, u.SetMulticastInterface(nowhere), "MulticastInterface", syscall.EADDRNOTAVAIL)
		wantOption(t, u.Join(source, nil), "Join", syscall.EINVAL)
		wantOption(t, u.Join(netip.Addr{}, nil), "Join", syscall.EINVAL)
		wantOption(t, u.Join(netip.MustParseAddr("ff02::1"), nil), "Join", syscall.EAFNOSUPPORT)
		wantOption(t, u.Join(group, nowhere), "Join", syscall.ENODEV)
		wantOption(t, u.Leave(group, loInterface(t)), "Leave", syscall.EADDRNOTAVAIL)
		wantOption(t, u.JoinSource(group, netip.IPv6Loopback(), nil), "JoinSource", syscall.EAFNOSUPPORT)
		if _, err := u.PathMTU(); !errors.Is(err, syscall.ENOTCONN) || !strings.Contains(err.Error(), "PathMTU") {
			t.Errorf("PathMTU: %v", err)
		}
		_ = u.Close()
		for i, err := range []error{
			u.SetTTL(1), u.SetBroadcast(true), u.SetTrafficClass(1), u.SetFragment(ProbePath), u.SetBuffers(1, 1),
			u.SetMulticastTTL(1), u.SetMulticastLoop(true), u.SetMulticastInterface(nil), u.Join(group, nil),
			u.Leave(group, nil), u.JoinSource(group, source, nil), u.LeaveSource(group, source, nil),
		} {
			if err != ErrClosed {
				t.Errorf("option %d of a closed socket: %v", i, err)
			}
		}
		if _, err := u.PathMTU(); err != ErrClosed {
			t.Errorf("PathMTU of a closed socket: %v", err)
		}
	})
}

// loInterface is the loopback interface, which the network in memory has as number 1.
func loInterface(t *testing.T) *net.Interface {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range all {
		if i.Flags&net.FlagLoopback != 0 {
			return &i
		}
	}
	t.Skip("no loopback interface")
	return nil
}

// TestUDPDevice keeps a socket to an interface.
func TestUDPDevice(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		u, err := l.ListenUDP(loopback4, UDPConfig{Device: loInterface(t).Name}, UDPHandler{
			OnDatagram: func(*UDP, *Datagram) { _ = l.Close() },
		})
		if errors.Is(err, syscall.EPERM) {
			t.Skip("not allowed to bind to a device")
		}
		if err != nil {
			t.Fatal(err)
		}
		mustSend(t, listen(t, l, Bound{}, nil), "x", u.LocalAddr())
		run(t, l)
	})
}

// TestUDPMulticast joins, hears, leaves and does not hear, by group and by source.
func TestUDPMulticast(t *testing.T) {
	for _, row := range []struct{ name, local, group, source, other string }{
		{"IPv4", "0.0.0.0:0", "239.1.2.3", "", ""},
		{"IPv4 by source", "0.0.0.0:0", "232.1.2.3", "127.0.0.1", "127.0.0.2"},
		{"IPv4 of both", "[::]:0", "239.1.2.4", "", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				l := newLoop(t, Config{Kernel: k})
				if row.local[0] == '[' {
					needIPv6(t, l)
				}
				lo, group := loInterface(t), netip.MustParseAddr(row.group)
				var got []string
				member := mustListen(t, l, addrPort(row.local), UDPConfig{ReceiveLocal: true}, UDPHandler{
					OnDatagram: func(_ *UDP, d *Datagram) {
						got = append(got, string(d.Payload))
						if d.Local.WithZone("") != group || d.Interface != lo.Index {
							t.Errorf("it was sent to %v by %d", d.Local, d.Interface)
						}
					}})
				sender := func(ip string) *UDP {
					local := netip.AddrPort{}
					if ip != "" {
						local = addrPort(ip + ":0")
					} else if group.Is4() {
						local = addrPort("127.0.0.1:0")
					}
					return mustListen(t, l, local, UDPConfig{MulticastInterface: lo}, UDPHandler{
						OnError: func(_ *UDP, err error) { t.Error(err) },
					})
				}
				from := sender(row.source)
				var others []*UDP
				if row.other != "" {
					others = append(others, sender(row.other))
				}
				say := func(text string) {
					t.Helper()
					for _, u := range append(others, from) {
						mustSend(t, u, text, netip.AddrPortFrom(group, member.LocalAddr().Port()))
						text += " again"
					}
				}
				join, leave := member.Join, member.Leave
				if row.source != "" {
					source := netip.MustParseAddr(row.source)
					join = func(g netip.Addr, i *net.Interface) error { return member.JoinSource(g, source, i) }
					leave = func(g netip.Addr, i *net.Interface) error { return member.LeaveSource(g, source, i) }
				}
				step := func(err error) {
					t.Helper()
					if err != nil {
						t.Error(err)
					}
				}
				say("before")
				later(l, func() {
					step(join(group, lo))
					say("member")
					later(l, func() {
						step(leave(group, lo))
						say("left")
						later(l, func() { _ = l.Close() })
					})
				})
				run(t, l)
				want := "member"
				if row.other != "" {
					want = "member again" // what the other source said does not count
				}
				if fmt.Sprint(got) != fmt.Sprint([]string{want}) {
					t.Errorf("heard %q, want %q", got, want)
				}
			})
		})
	}
}

// TestUDPBuffersBeyondLimit: the privileged get more than the system's limit, others get the limit without an error.
func TestUDPBuffersBeyondLimit(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		const asked = 32 << 20
		u := mustListen(t, l, loopback4, UDPConfig{RecvBufferBytes: asked}, UDPHandler{})
		plain := mustListen(t, l, loopback4, UDPConfig{}, UDPHandler{})
		if err := u.loop.kernel.SetOption(plain.fd, sys.RecvBuffer, asked); err != nil {
			t.Fatal(err)
		}
		limit := plain.Stats().RecvBufferBytes
		may := u.loop.kernel.SetOption(plain.fd, sys.RecvBufferForce, asked) == nil
		if got := u.Stats().RecvBufferBytes; may && got != 2*asked || !may && got != limit {
			t.Errorf("granted %d; the limit is %d, beyond it: %v", got, limit, may)
		}
	})
}
