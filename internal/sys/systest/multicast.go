package systest

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"syscall"
	"testing"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
)

// A group is anybody's of the machine, and a wildcard socket hears what another process joined: each case takes
// one by chance, of the organisation's own 239.0.0.0/8, and of the link's or the site's.
func newGroup4() netip.Addr {
	r := rand.Uint32()
	return netip.AddrFrom4([4]byte{239, byte(r >> 16), byte(r >> 8), byte(r)})
}

func newLinkGroup() netip.Addr { return newGroup6("ff12::") }
func newSiteGroup() netip.Addr { return newGroup6("ff15::") }

func newGroup6(prefix string) netip.Addr {
	a := netip.MustParseAddr(prefix).As16()
	binary.BigEndian.PutUint64(a[8:], rand.Uint64())
	return netip.AddrFrom16(a)
}

var multicastCases = []assertion{
	{"multicast: a group can be joined once and left once", func(r *rig) {
		lo := r.loopbackNumber()
		for _, c := range r.groups() {
			m := sys.Membership{Group: c.group, Interface: lo}
			fd := r.socket(c.family)
			r.want(r.leave(fd, m), syscall.EADDRNOTAVAIL)
			r.must(r.join(fd, m))
			r.want(r.join(fd, m), syscall.EADDRINUSE)
			r.must(r.leave(fd, m))
			r.want(r.leave(fd, m), syscall.EADDRNOTAVAIL)
			r.must(r.join(fd, m))
		}
	}},
	{"multicast: any socket of the machine may join the same", func(r *rig) {
		group := newGroup4()
		m := sys.Membership{Group: group, Interface: r.loopbackNumber()}
		a, b := r.socket(sys.IPv4), r.socket(sys.IPv4)
		r.must(r.join(a, m))
		r.must(r.join(b, m))
		r.must(r.leave(a, m))
		r.must(r.leave(b, m))
	}},
	{"multicast: a duplicate is the same member", func(r *rig) {
		group := newGroup4()
		m := sys.Membership{Group: group, Interface: r.loopbackNumber()}
		fd := r.socket(sys.IPv4)
		r.must(r.join(fd, m))
		r.want(r.join(r.duplicate(fd), m), syscall.EADDRINUSE)
		r.must(r.leave(r.duplicate(fd), m))
	}},
	{"multicast: what cannot be joined", func(r *rig) {
		lo := r.loopbackNumber()
		v4, v6 := r.socket(sys.IPv4), r.socket(sys.IPv6)
		for _, c := range []struct {
			fd     int
			group  string
			iface  int
			source string
			want   error
		}{
			{v4, "127.0.0.1", lo, "", syscall.EINVAL},
			{v6, "::1", lo, "", syscall.EINVAL},
			{v4, "127.0.0.1", lo, "127.0.0.1", syscall.EINVAL},
			{v4, "239.1.2.3", noInterface, "", syscall.ENODEV},
			{v6, "ff02::1:2:3", noInterface, "", syscall.ENODEV},
			{v4, "239.1.2.3", noInterface, "127.0.0.1", syscall.ENODEV},
			{v6, "ff02::1:2:3", noInterface, "::1", syscall.ENODEV},
			{v4, "ff02::1:2:3", lo, "", syscall.ENOPROTOOPT},
			{v6, "::ffff:239.1.2.3", lo, "", syscall.EINVAL},
		} {
			m := sys.Membership{Group: netip.MustParseAddr(c.group), Interface: c.iface}
			if c.source != "" {
				m.Source = netip.MustParseAddr(c.source)
			}
			if err := r.join(c.fd, m); err != c.want {
				r.Errorf("%+v: error is %v", c, err)
			}
		}
		r.want(r.join(1<<20, sys.Membership{Group: newGroup4()}), syscall.EBADF)
	}},
	{"multicast: sources are joined and left one by one, and the last ends the membership", func(r *rig) {
		lo := r.loopbackNumber()
		for _, c := range r.groups() {
			fd := r.socket(c.family)
			m := sys.Membership{Group: c.group, Interface: lo}
			first, second := m, m
			first.Source, second.Source = c.sources[0], c.sources[1]
			r.want(r.leave(fd, first), syscall.EINVAL) // not even the group was joined
			r.must(r.join(fd, first))
			r.want(r.join(fd, first), syscall.EADDRNOTAVAIL)
			r.want(r.join(fd, m), syscall.EADDRINUSE)
			r.want(r.leave(fd, second), syscall.EADDRNOTAVAIL)
			r.must(r.join(fd, second))
			r.must(r.leave(fd, first))
			r.must(r.leave(fd, second))
			r.want(r.leave(fd, m), syscall.EADDRNOTAVAIL)

			r.must(r.join(fd, first))
			r.must(r.join(fd, second))
			r.must(r.leave(fd, m)) // of all sources at once

			r.must(r.join(fd, m))
			r.must(r.join(fd, first)) // narrows it to one source
			r.must(r.leave(fd, first))
			r.want(r.leave(fd, m), syscall.EADDRNOTAVAIL)
		}
	}},
	{"multicast: a member hears its group, and not after it left", func(r *rig) {
		group := newGroup4()
		lo := r.loopbackNumber()
		m := sys.Membership{Group: group, Interface: lo}
		from, to := r.sendsBy(lo), r.bound("0.0.0.0:0")
		fence := r.bound("127.0.0.1:0")
		r.turnOn(to, sys.RecvLocal)
		dest := netip.AddrPortFrom(group, r.local(to).Port())
		r.send(from, "before", dest)
		r.must(r.join(to, m))
		r.send(from, "meant", dest)
		got := r.recv(to)
		r.equal(string(got.Buf), "meant")
		r.equal(got.Addr, r.local(from))
		r.equal(got.Control, sys.Control{Local: group, NotOwn: true, Interface: uint32(lo)})
		r.send(from, "another group", netip.AddrPortFrom(group.Next(), dest.Port()))
		r.must(r.leave(to, m))
		r.send(from, "after", dest)
		r.deliver(from, fence, "fence")
		r.silent(to)
	}},
	{"multicast: with the interface in Control instead of an option", func(r *rig) {
		group := newGroup4()
		lo := r.loopbackNumber()
		from, to := r.bound("127.0.0.1:0"), r.bound("0.0.0.0:0")
		r.must(r.join(to, sys.Membership{Group: group, Interface: lo}))
		r.sendWith(from, "x", netip.AddrPortFrom(group, r.local(to).Port()), sys.Control{Interface: uint32(lo)})
		r.equal(r.recvText(to), "x")
	}},
	{"multicast: a dual-stack socket joins IPv4 groups too", func(r *rig) {
		group := newGroup4()
		lo := r.loopbackNumber()
		from, to := r.sendsBy(lo), r.bound("[::]:0")
		r.turnOn(to, sys.RecvLocal6)
		r.must(r.join(to, sys.Membership{Group: group, Interface: lo}))
		r.send(from, "x", netip.AddrPortFrom(group, r.local(to).Port()))
		m := r.recv(to)
		r.equal(m.Addr, at("::ffff:127.0.0.1", r.local(from)))
		r.equal(m.Control.Local, netip.AddrFrom16(group.As16()))
	}},
	{"multicast: goes to each socket at the port that is bound to the wildcard or the group", func(r *rig) {
		group := newGroup4()
		lo := r.loopbackNumber()
		m := sys.Membership{Group: group, Interface: lo}
		from := r.sendsBy(lo)
		var members []int
		var port netip.AddrPort
		for _, ip := range []string{"0.0.0.0", "0.0.0.0", group.String()} {
			fd := r.socket(sys.IPv4)
			r.turnOn(fd, sys.ReuseAddr)
			r.must(r.Kernel.Bind(fd, at(ip, port)))
			r.must(r.join(fd, m))
			port = r.local(fd)
			members = append(members, fd)
		}
		apart := r.socket(sys.IPv4)
		r.turnOn(apart, sys.ReuseAddr)
		r.must(r.Kernel.Bind(apart, at("127.0.0.1", port)))
		r.must(r.join(apart, m))
		r.send(from, "all", at(group.String(), port))
		for _, fd := range members {
			r.equal(r.recvText(fd), "all")
			r.silent(fd)
		}
		r.silent(apart)
		r.send(members[2], "from the group's address", r.local(from))
		r.equal(r.recv(from).Addr, at("127.0.0.1", port))
	}},
	{"multicast: sources that were not joined are not heard", func(r *rig) {
		group := newGroup4()
		lo := r.loopbackNumber()
		from, to := r.sendsBy(lo), r.bound("0.0.0.0:0")
		dest := netip.AddrPortFrom(group, r.local(to).Port())
		r.must(r.join(to, sys.Membership{Group: group, Interface: lo, Source: netip.MustParseAddr("127.0.0.2")}))
		r.send(from, "stray", dest)
		r.sendWith(from, "meant", dest, sys.Control{Local: netip.MustParseAddr("127.0.0.2")})
		m := r.recv(to)
		r.equal(string(m.Buf), "meant")
		r.equal(m.Addr.Addr().String(), "127.0.0.2")
		r.silent(to)
	}},
	// What IP_MULTICAST_ALL is about: there is no option to turn it off here.
	{"multicast: a wildcard that never joined hears what any socket of the machine joined", func(r *rig) {
		group := newGroup4()
		lo := r.loopbackNumber()
		from, member, other := r.sendsBy(lo), r.socket(sys.IPv4), r.bound("0.0.0.0:0")
		dest := netip.AddrPortFrom(group, r.local(other).Port())
		fence := r.bound("127.0.0.1:0")
		r.send(from, "nobody joined", dest)
		r.deliver(from, fence, "")
		r.silent(other)
		r.must(r.join(member, sys.Membership{Group: group, Interface: lo}))
		r.send(from, "somebody joined", dest)
		r.equal(r.recvText(other), "somebody joined")
		r.must(r.Kernel.Close(member))
		r.send(from, "it was closed", dest)
		r.deliver(from, fence, "")
		r.silent(other)
	}},
	{"multicast: nobody reports that nobody listens", func(r *rig) {
		group := newGroup4()
		lo := r.loopbackNumber()
		from, fence := r.sendsBy(lo), r.bound("127.0.0.1:0")
		r.turnOn(from, sys.Reports)
		r.send(from, "x", at(group.String(), r.deadPort()))
		r.deliver(from, fence, "y")
		r.noReports(from, syscall.EAGAIN)
	}},
	{"multicast: a group may be the peer, but answers come from elsewhere", func(r *rig) {
		group := newGroup4()
		lo := r.loopbackNumber()
		fd, to := r.sendsBy(lo), r.bound("0.0.0.0:0")
		r.must(r.join(to, sys.Membership{Group: group, Interface: lo}))
		r.must(r.Kernel.Connect(fd, netip.AddrPortFrom(group, r.local(to).Port())))
		r.send(fd, "x", none)
		m := r.recv(to)
		r.equal(m.Addr, r.local(fd))
		r.send(to, "y", m.Addr)
		r.deliver(to, r.bound("127.0.0.1:0"), "fence")
		r.silent(fd)
	}},
	{"multicast: MulticastInterface takes what there is", func(r *rig) {
		lo := r.loopbackNumber()
		v4, v6 := r.socket(sys.IPv4), r.socket(sys.IPv6)
		for _, fd := range []int{v4, v6} {
			r.setOption(fd, sys.MulticastInterface, lo)
			r.setOption(fd, sys.MulticastInterface, 0)
			r.want(r.Kernel.SetOption(fd, sys.MulticastInterface, noInterface), syscall.EADDRNOTAVAIL)
		}
		r.setOption(v6, sys.MulticastInterface6, lo)
		r.setOption(v6, sys.MulticastInterface6, 0)
		r.want(r.Kernel.SetOption(v6, sys.MulticastInterface6, noInterface), syscall.ENODEV)
		r.want(r.Kernel.SetOption(v4, sys.MulticastInterface6, lo), syscall.ENOPROTOOPT)
	}},
}

// RunMulticast asserts what a loopback cannot show, as it brings everything back and, on Linux, carries no IPv6
// multicast: iface is the number of an interface that does, with an address of each family. What is sent does not
// leave the machine.
func RunMulticast(t *testing.T, b poll.Backend, iface int) {
	r := newRig(t, b)
	for _, c := range []struct {
		wild                  string
		group                 netip.Addr
		via, loop, hops, hear sys.Option
		elsewhere             string
	}{
		{"0.0.0.0:0", newGroup4(), sys.MulticastInterface, sys.MulticastLoop, sys.MulticastTTL, sys.RecvLocal, "203.0.113.1"},
		{"[::]:0", newLinkGroup(), sys.MulticastInterface6, sys.MulticastLoop6, sys.MulticastHopLimit, sys.RecvLocal6, "2001:db8::1"},
		{"[::]:0", newSiteGroup(), sys.MulticastInterface6, sys.MulticastLoop6, sys.MulticastHopLimit, sys.RecvLocal6, "2001:db8::1"},
	} {
		from, to, fence := r.bound(c.wild), r.bound(c.wild), r.bound("127.0.0.1:0")
		m := sys.Membership{Group: c.group, Interface: iface}
		dest := netip.AddrPortFrom(c.group, r.local(to).Port())
		stops := func(why string) {
			r.Helper()
			r.send(from, why, dest)
			r.deliver(r.bound("127.0.0.1:0"), fence, why)
			r.recv(fence)
			r.silent(to)
		}
		r.setOption(from, c.via, iface)
		r.setOption(from, c.hops, 0)
		r.turnOn(to, c.hear)

		stops("nobody joined")
		r.must(r.join(to, m))
		r.send(from, "meant", dest)
		got := r.recv(to)
		r.equal(string(got.Buf), "meant")
		r.equal(got.Control.Interface, uint32(iface))
		r.equal(got.Control.Local.WithZone(""), c.group)
		if c.group.IsLinkLocalMulticast() && c.group.Is6() {
			r.equal(got.Control.Local.Zone(), strconv.Itoa(iface))
			r.send(from, "by its zone", netip.AddrPortFrom(c.group.WithZone(strconv.Itoa(iface)), dest.Port()))
			r.equal(r.recvText(to), "by its zone")
		}
		source := got.Addr.Addr().WithZone("")

		r.setOption(from, c.loop, 0)
		stops("not looped")
		r.setOption(from, c.loop, 1)

		r.must(r.leave(to, m))
		stops("left")
		m.Source = netip.MustParseAddr(c.elsewhere)
		r.must(r.join(to, m))
		stops("of another source")
		m.Source = source
		r.must(r.join(to, m))
		r.send(from, "of that source", dest)
		r.equal(r.recvText(to), "of that source")
	}
}

// groupOf is a group of a family and two that could send to it.
type groupOf struct {
	family  sys.Family
	group   netip.Addr
	sources [2]netip.Addr
}

func (r *rig) groups() []groupOf {
	return []groupOf{
		{sys.IPv4, newGroup4(), [2]netip.Addr{netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("203.0.113.1")}},
		{sys.IPv6, newLinkGroup(), [2]netip.Addr{netip.MustParseAddr("::1"), netip.MustParseAddr("2001:db8::1")}},
	}
}

func (r *rig) join(fd int, m sys.Membership) error  { return r.Kernel.Membership(fd, m, true) }
func (r *rig) leave(fd int, m sys.Membership) error { return r.Kernel.Membership(fd, m, false) }

// sendsBy makes an IPv4 socket whose multicast leaves by an interface.
func (r *rig) sendsBy(iface int) int {
	r.Helper()
	fd := r.bound("127.0.0.1:0")
	r.setOption(fd, sys.MulticastInterface, iface)
	return fd
}
