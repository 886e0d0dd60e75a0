package systest

import (
	"net/netip"
	"syscall"
	"time"

	"github.com/weirnet/weir/internal/sys"
)

// hears are all options that tell something of what is received.
var (
	hears4 = []sys.Option{sys.RecvLocal, sys.RecvTOS, sys.RecvTime}
	hears6 = []sys.Option{sys.RecvLocal6, sys.RecvTrafficClass, sys.RecvTime}
)

var controlCases = []assertion{
	{"control: nothing is told where nothing was asked for", func(r *rig) {
		for _, ip := range []string{"127.0.0.1:0", "[::1]:0"} {
			fd := r.bound(ip)
			r.sendWith(fd, "x", r.local(fd), sys.Control{TrafficClass: 3, HasTrafficClass: true})
			r.equal(r.recv(fd).Control, sys.Control{})
		}
	}},
	{"control: options can be turned off again", func(r *rig) {
		fd := r.bound("127.0.0.1:0")
		r.turnOn(fd, hears4...)
		r.send(fd, "x", r.local(fd))
		r.recv(fd)
		for _, o := range hears4 {
			r.setOption(fd, o, 0)
		}
		r.send(fd, "x", r.local(fd))
		r.equal(r.recv(fd).Control, sys.Control{})
	}},
	{"control: each option tells its own part", func(r *rig) {
		lo := uint32(r.loopbackNumber())
		for _, ip := range []string{"127.0.0.1", "::1"} {
			local, class := sys.RecvLocal, sys.RecvTOS
			if netip.MustParseAddr(ip).Is6() {
				local, class = sys.RecvLocal6, sys.RecvTrafficClass
			}
			for o, want := range map[sys.Option]sys.Control{
				local: {Local: netip.MustParseAddr(ip), Interface: lo},
				class: {TrafficClass: 0xb9, HasTrafficClass: true},
			} {
				fd := r.bound(at(ip, none).String())
				r.turnOn(fd, o)
				r.sendWith(fd, "x", r.local(fd), sys.Control{TrafficClass: 0xb9, HasTrafficClass: true})
				r.equal(r.recv(fd).Control, want)
			}
		}
	}},
	{"control: Local is the destination in the header, also on a wildcard", func(r *rig) {
		wild, from := r.bound("0.0.0.0:0"), r.bound("127.0.0.1:0")
		r.turnOn(wild, sys.RecvLocal)
		for _, ip := range []string{"127.0.0.1", "127.0.0.2", "127.255.0.9"} {
			r.send(from, "x", at(ip, r.local(wild)))
			m := r.recv(wild)
			r.equal(m.Control.Local, netip.MustParseAddr(ip))
			r.equal(m.Addr, r.local(from))
		}
	}},
	{"control: Local of a broadcast is the broadcast address", func(r *rig) {
		wild, from := r.bound("0.0.0.0:0"), r.bound("127.0.0.1:0")
		r.turnOn(wild, sys.RecvLocal)
		r.turnOn(from, sys.Broadcast)
		r.send(from, "x", at("127.255.255.255", r.local(wild)))
		r.equal(r.recv(wild).Control.Local, netip.MustParseAddr("127.255.255.255"))
	}},
	{"control: a batch tells of each datagram apart", func(r *rig) {
		wild, from := r.bound("0.0.0.0:0"), r.bound("127.0.0.1:0")
		r.turnOn(wild, sys.RecvLocal, sys.RecvTOS)
		var out []sys.Control
		for i, ip := range []string{"127.0.0.2", "127.0.0.3", "127.0.0.4"} {
			c := sys.Control{TrafficClass: uint8(i), HasTrafficClass: true}
			r.sendWith(from, "x", at(ip, r.local(wild)), c)
			c.Local, c.Interface = netip.MustParseAddr(ip), uint32(r.loopbackNumber())
			out = append(out, c)
		}
		b := sys.NewRecvBatch(4, 8)
		n, err := r.Kernel.Recv(wild, b, 4)
		r.must(err)
		r.equal(n, 3)
		for i, want := range out {
			r.equal(b.Msgs[i].Control, want)
		}
	}},
	{"control: a slot says nothing of the datagram that was in it before", func(r *rig) {
		fd := r.bound("127.0.0.1:0")
		b := sys.NewRecvBatch(1, 8)
		for _, on := range []int{1, 0, 1} {
			r.setOption(fd, sys.RecvLocal, on)
			r.deliver(fd, fd, "x")
			_, err := r.Kernel.Recv(fd, b, 1)
			r.must(err)
			r.equal(b.Msgs[0].Control.Local.IsValid(), on == 1)
		}
	}},
	{"control: a dual-stack socket knows IPv4 as mapped, by either family's option", func(r *rig) {
		lo := uint32(r.loopbackNumber())
		for _, o := range [][]sys.Option{{sys.RecvLocal}, {sys.RecvLocal6}, {sys.RecvLocal, sys.RecvLocal6}} {
			dual, from := r.bound("[::]:0"), r.bound("127.0.0.1:0")
			r.turnOn(dual, o...)
			r.send(from, "x", at("127.0.0.2", r.local(dual)))
			r.equal(r.recv(dual).Control, sys.Control{Local: netip.MustParseAddr("::ffff:127.0.0.2"), Interface: lo})
		}
	}},
	{"control: a dual-stack socket asks for the traffic class of each family", func(r *rig) {
		four, six := r.bound("127.0.0.1:0"), r.bound("[::1]:0")
		class := sys.Control{TrafficClass: 5, HasTrafficClass: true}
		for o, want := range map[sys.Option][2]sys.Control{
			sys.RecvTOS:          {class, {}},
			sys.RecvTrafficClass: {{}, class},
		} {
			dual := r.bound("[::]:0")
			r.turnOn(dual, o)
			r.sendWith(four, "4", at("127.0.0.1", r.local(dual)), class)
			r.equal(r.recv(dual).Control, want[0])
			r.sendWith(six, "6", at("::1", r.local(dual)), class)
			r.equal(r.recv(dual).Control, want[1])
		}
	}},
	{"control: all at once, over both families", func(r *rig) {
		lo := uint32(r.loopbackNumber())
		dual := r.bound("[::]:0")
		r.turnOn(dual, hears4...)
		r.turnOn(dual, hears6...)
		for ip, from := range map[string]int{"127.0.0.1": r.bound("127.0.0.1:0"), "::1": r.bound("[::1]:0")} {
			r.sendWith(from, "x", at(ip, r.local(dual)), sys.Control{TrafficClass: 0xfe, HasTrafficClass: true})
			c := r.recv(dual).Control
			r.equal(c.Local.Unmap().String(), ip)
			r.equal(c.Local.Is6(), true)
			r.equal(c.Interface, lo)
			r.equal(c.TrafficClass, uint8(0xfe))
			r.equal(c.HasTrafficClass, true)
			r.equal(c.Time.IsZero(), false)
		}
	}},
	// Linux stamps what comes soon after the first socket of the machine has asked for it only when it is read.
	{"control: Time is when it came", func(r *rig) {
		for _, ip := range []string{"127.0.0.1:0", "[::1]:0"} {
			fd := r.bound(ip)
			r.turnOn(fd, sys.RecvTime)
			const grain = 10 * time.Millisecond // the clock of the kernel may be a coarse one
			r.eventually("it is not when it was read", func() bool {
				before := time.Now().Add(-grain)
				r.deliver(fd, fd, "x")
				after := time.Now().Add(grain)
				time.Sleep(3 * grain)
				got := r.recv(fd).Control.Time
				if got.Before(before) || got.After(time.Now().Add(grain)) {
					r.Fatalf("%v is not near %v", got, after)
				}
				return got.Before(after)
			})
		}
	}},
}

var sourceCases = []assertion{
	{"control: a datagram leaves from the address that is asked for", func(r *rig) {
		fd, wild, to := r.bound("127.0.0.1:0"), r.bound("0.0.0.0:0"), r.bound("127.0.0.1:0")
		for _, from := range []int{fd, wild} {
			for _, ip := range []string{"127.0.0.2", "::ffff:127.0.0.3"} {
				local := netip.MustParseAddr(ip)
				r.sendWith(from, "x", r.local(to), sys.Control{Local: local})
				r.equal(r.recv(to).Addr, netip.AddrPortFrom(local.Unmap(), r.local(from).Port()))
			}
			r.send(from, "x", r.local(to))
			r.equal(r.recv(to).Addr, at("127.0.0.1", r.local(from)))
		}
	}},
	{"control: an IPv6 socket sends to mapped peers from mapped addresses", func(r *rig) {
		from, to := r.bound("[::]:0"), r.bound("127.0.0.1:0")
		for _, ip := range []string{"127.0.0.2", "::ffff:127.0.0.3"} {
			for _, dest := range []string{"127.0.0.1", "::ffff:127.0.0.1"} {
				local := netip.MustParseAddr(ip)
				r.sendWith(from, "x", at(dest, r.local(to)), sys.Control{Local: local})
				r.equal(r.recv(to).Addr, netip.AddrPortFrom(local.Unmap(), r.local(from).Port()))
			}
		}
	}},
	{"control: the answer to a datagram leaves from where that came to", func(r *rig) {
		server, client := r.bound("[::]:0"), r.bound("127.0.0.1:0")
		r.turnOn(server, sys.RecvLocal, sys.RecvLocal6)
		r.send(client, "x", at("127.0.0.9", r.local(server)))
		m := r.recv(server)
		r.sendWith(server, "y", m.Addr, sys.Control{Local: m.Control.Local, Interface: m.Control.Interface})
		r.equal(r.recv(client).Addr, at("127.0.0.9", r.local(server)))
	}},
	{"control: an address that is not local is refused, by an errno of each family", func(r *rig) {
		four, six, dual := r.bound("127.0.0.1:0"), r.bound("[::1]:0"), r.bound("[::]:0")
		for _, c := range []struct {
			fd    int
			dest  string
			local string
			want  error
		}{
			{four, "127.0.0.1", "203.0.113.1", syscall.ENETUNREACH},
			{four, "127.0.0.1", "127.255.255.255", syscall.ENETUNREACH},
			{dual, "::ffff:127.0.0.1", "::ffff:203.0.113.1", syscall.ENETUNREACH},
			{six, "::1", "2001:db8::1", syscall.EINVAL},
			{six, "::1", "::ffff:127.0.0.1", syscall.EINVAL},
			{dual, "::ffff:127.0.0.1", "::1", syscall.EINVAL},
		} {
			err := r.trySendWith(c.fd, []byte("x"), at(c.dest, r.local(c.fd)), sys.Control{Local: netip.MustParseAddr(c.local)})
			if err != c.want {
				r.Errorf("%+v: error is %v", c, err)
			}
			r.silent(c.fd)
		}
	}},
	{"control: an interface that there is not is ENODEV", func(r *rig) {
		four, six, dual := r.bound("127.0.0.1:0"), r.bound("[::1]:0"), r.bound("[::]:0")
		c := sys.Control{Interface: noInterface}
		r.want(r.trySendWith(four, nil, r.local(four), c), syscall.ENODEV)
		r.want(r.trySendWith(six, nil, r.local(six), c), syscall.ENODEV)
		r.want(r.trySendWith(dual, nil, r.local(four), c), syscall.ENODEV)
		for _, fd := range []int{four, six, dual} {
			r.silent(fd)
		}
	}},
	{"control: the interface of the destination is good", func(r *rig) {
		c := sys.Control{Interface: uint32(r.loopbackNumber())}
		for _, ip := range []string{"127.0.0.1:0", "[::1]:0"} {
			fd := r.bound(ip)
			r.sendWith(fd, "x", r.local(fd), c)
			r.equal(r.recvText(fd), "x")
		}
	}},
	{"control: the traffic class of a datagram goes before the socket's", func(r *rig) {
		for _, c := range []struct {
			ip          string
			hear, class sys.Option
		}{
			{ip: "127.0.0.1", hear: sys.RecvTOS, class: sys.TOS},
			{ip: "::1", hear: sys.RecvTrafficClass, class: sys.TrafficClass},
		} {
			fd := r.bound(at(c.ip, none).String())
			r.turnOn(fd, c.hear)
			r.setOption(fd, c.class, 0x28)
			for _, class := range []int{-1, 0, 1, 0xff} {
				var out sys.Control
				want := uint8(0x28)
				if class >= 0 {
					out = sys.Control{TrafficClass: uint8(class), HasTrafficClass: true}
					want = uint8(class)
				}
				r.sendWith(fd, "x", r.local(fd), out)
				r.equal(r.recv(fd).Control.TrafficClass, want)
			}
		}
	}},
	{"control: a connected socket's datagrams take all of it", func(r *rig) {
		lo := uint32(r.loopbackNumber())
		for _, c := range []struct{ fd, listen, peer, local, seen string }{
			{"127.0.0.1:0", "127.0.0.1:0", "127.0.0.1", "127.0.0.2", "127.0.0.2"},
			{"[::]:0", "127.0.0.1:0", "::ffff:127.0.0.1", "::ffff:127.0.0.2", "127.0.0.2"},
			{"[::]:0", "[::1]:0", "::1", "::1", "::1"},
		} {
			fd, to := r.bound(c.fd), r.bound(c.listen)
			r.must(r.Kernel.Connect(fd, at(c.peer, r.local(to))))
			hear := sys.RecvTOS
			if familyOf(r.local(to)) == sys.IPv6 {
				hear = sys.RecvTrafficClass
			}
			r.turnOn(to, hear)
			for _, out := range []sys.Control{
				{Interface: lo},
				{Interface: lo, Local: netip.MustParseAddr(c.local)},
				{Local: netip.MustParseAddr(c.local)},
				{},
			} {
				out.TrafficClass, out.HasTrafficClass = 7, true
				r.sendWith(fd, "x", none, out)
				m := r.recv(to)
				r.equal(m.Control.TrafficClass, uint8(7))
				if out.Local.IsValid() {
					r.equal(m.Addr.Addr().String(), c.seen)
				}
			}
			r.want(r.trySendWith(fd, nil, none, sys.Control{Interface: noInterface}), syscall.ENODEV)
		}
	}},
	{"control: all of it at once, with segments", func(r *rig) {
		lo := uint32(r.loopbackNumber())
		for _, c := range []struct{ from, to, local string }{
			{"127.0.0.1:0", "127.0.0.1:0", "127.0.0.7"},
			{"[::]:0", "127.0.0.1:0", "::ffff:127.0.0.7"},
			{"[::1]:0", "[::1]:0", "::1"},
		} {
			from, to := r.bound(c.from), r.bound(c.to)
			if familyOf(r.local(to)) == sys.IPv4 {
				r.turnOn(to, sys.RecvLocal, sys.RecvTOS, sys.RecvJoined)
			} else {
				r.turnOn(to, sys.RecvLocal6, sys.RecvTrafficClass, sys.RecvJoined)
			}
			out := sys.Control{
				Local: netip.MustParseAddr(c.local), Interface: lo,
				TrafficClass: 0xbb, HasTrafficClass: true, Segment: 2,
			}
			r.sendWith(from, "aabbc", r.local(to), out)
			m := r.recv(to)
			r.equal(string(m.Buf), "aabbc")
			r.equal(m.Addr, netip.AddrPortFrom(out.Local.Unmap(), r.local(from).Port()))
			out.Local = r.local(to).Addr()
			r.equal(m.Control, out)
		}
	}},
	{"control: a batch has nothing left of what it was before", func(r *rig) {
		from, to := r.bound("127.0.0.1:0"), r.bound("127.0.0.1:0")
		b := r.batch("x", r.local(to))
		for _, ip := range []string{"127.0.0.2", "127.0.0.1", "127.0.0.3"} {
			b.Msgs[0].Control = sys.Control{}
			if ip != "127.0.0.1" {
				b.Msgs[0].Control.Local = netip.MustParseAddr(ip)
			}
			_, err := r.Kernel.Send(from, b, 0, 1)
			r.must(err)
			r.equal(r.recv(to).Addr.Addr().String(), ip)
		}
	}},
	{"control: a batch keeps it with its datagram", func(r *rig) {
		from, to := r.bound("127.0.0.1:0"), r.bound("127.0.0.1:0")
		r.turnOn(to, sys.RecvTOS)
		b := r.batch("0", r.local(to), "1", r.local(to), "2", r.local(to))
		b.Msgs[0].Control = sys.Control{Local: netip.MustParseAddr("127.0.0.2")}
		b.Msgs[2].Control = sys.Control{TrafficClass: 9, HasTrafficClass: true}
		n, err := r.Kernel.Send(from, b, 0, 3)
		r.must(err)
		r.equal(n, 3)
		for _, want := range []struct {
			ip    string
			class uint8
		}{{"127.0.0.2", 0}, {"127.0.0.1", 0}, {"127.0.0.1", 9}} {
			m := r.recv(to)
			r.equal(m.Addr.Addr().String(), want.ip)
			r.equal(m.Control.TrafficClass, want.class)
		}
	}},
}
