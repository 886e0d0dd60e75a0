package systest

import (
	"slices"
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

var optionCases = []assertion{
	{"option: flags are off, and on once set", func(r *rig) {
		fd := r.socket(sys.IPv4)
		for _, o := range []sys.Option{sys.ReuseAddr, sys.ReusePort, sys.Broadcast} {
			r.equal(r.option(fd, o), 0)
			r.setOption(fd, o, 5)
			r.equal(r.option(fd, o), 1)
			r.setOption(fd, o, 0)
			r.equal(r.option(fd, o), 0)
		}
	}},
	{"option: buffers are doubled, with a least size", func(r *rig) {
		fd := r.socket(sys.IPv4)
		for _, c := range []struct {
			option      sys.Option
			value, want int
		}{
			{sys.RecvBuffer, 100_000, 200_000},
			{sys.RecvBuffer, 1153, 2306},
			{sys.RecvBuffer, 1, 2304},
			{sys.SendBuffer, 100_000, 200_000},
			{sys.SendBuffer, 1, 4608},
		} {
			r.setOption(fd, c.option, c.value)
			r.equal(r.option(fd, c.option), c.want)
		}
		m := r.memInfo(fd)
		r.equal(m.RecvLimit, 2304)
		r.equal(m.SendLimit, 4608)
	}},
	{"option: buffers have a largest size, which a negative one asks for too", func(r *rig) {
		fd := r.socket(sys.IPv4)
		r.setOption(fd, sys.RecvBuffer, 1<<30)
		most := r.option(fd, sys.RecvBuffer)
		if most >= 1<<30 {
			r.Fatalf("receive buffer of %d", most)
		}
		r.setOption(fd, sys.RecvBuffer, 1)
		r.setOption(fd, sys.RecvBuffer, -1)
		r.equal(r.option(fd, sys.RecvBuffer), most)
	}},
	{"option: IPv6Only is off, and fixed once there is a port", func(r *rig) {
		fd := r.socket(sys.IPv6)
		r.equal(r.option(fd, sys.IPv6Only), 0)
		r.setOption(fd, sys.IPv6Only, 1)
		r.equal(r.option(fd, sys.IPv6Only), 1)
		r.must(r.Kernel.Bind(fd, addr("[::1]:0")))
		r.want(r.Kernel.SetOption(fd, sys.IPv6Only, 0), syscall.EINVAL)
	}},
	{"option: IPv6Only keeps IPv4 out", func(r *rig) {
		fd, from := r.socket(sys.IPv6), r.bound("127.0.0.1:0")
		r.setOption(fd, sys.IPv6Only, 1)
		r.want(r.Kernel.Bind(fd, addr("[::ffff:127.0.0.1]:0")), syscall.EINVAL)
		r.must(r.Kernel.Bind(fd, addr("[::]:0")))
		r.send(from, "stray", at("127.0.0.1", r.local(fd)))
		r.deliverTo(r.bound("[::1]:0"), fd, "meant", at("::1", r.local(fd)))
		r.equal(r.recvText(fd), "meant")
		r.silent(fd)
	}},
	{"option: an IPv4 socket knows no IPv6Only", func(r *rig) {
		fd := r.socket(sys.IPv4)
		r.want(r.Kernel.SetOption(fd, sys.IPv6Only, 1), syscall.ENOPROTOOPT)
		if _, err := r.Kernel.GetOption(fd, sys.IPv6Only); err == nil {
			r.Error("it can be read")
		}
	}},
	{"option: a number is kept, -1 is the system's, and others are refused", func(r *rig) {
		for _, c := range numbers {
			for _, family := range c.families {
				fd := r.socket(family)
				initial := r.option(fd, c.option)
				if c.initial != systems && initial != c.initial {
					r.Errorf("option %d is %d at first, want %d", c.option, initial, c.initial)
				}
				for _, v := range c.good {
					r.setOption(fd, c.option, v)
					r.equal(r.option(fd, c.option), v)
				}
				for _, v := range c.bad {
					if err := r.Kernel.SetOption(fd, c.option, v); err != syscall.EINVAL {
						r.Errorf("option %d set to %d: error is %v", c.option, v, err)
					}
				}
				r.equal(r.option(fd, c.option), c.good[len(c.good)-1])
				if c.reset {
					r.setOption(fd, c.option, -1)
					r.equal(r.option(fd, c.option), initial)
				}
			}
		}
	}},
	{"option: what is asked to be told is off, and on once set", func(r *rig) {
		for _, family := range []sys.Family{sys.IPv4, sys.IPv6} {
			fd := r.socket(family)
			for _, o := range tellers {
				if family == sys.IPv4 && slices.Contains(ipv6Options, o) {
					continue
				}
				r.equal(r.option(fd, o), 0)
				r.setOption(fd, o, 5)
				r.equal(r.option(fd, o), 1)
				r.setOption(fd, o, 0)
				r.equal(r.option(fd, o), 0)
			}
		}
	}},
	{"option: an IPv4 socket knows none of IPv6's", func(r *rig) {
		fd := r.socket(sys.IPv4)
		for _, o := range ipv6Options {
			if err := r.Kernel.SetOption(fd, o, 1); err != syscall.ENOPROTOOPT {
				r.Errorf("option %d: error is %v", o, err)
			}
			if _, err := r.Kernel.GetOption(fd, o); err != syscall.EOPNOTSUPP {
				r.Errorf("option %d can be read: error is %v", o, err)
			}
		}
	}},
	{"option: TOS keeps one byte of what it is told", func(r *rig) {
		fd := r.socket(sys.IPv4)
		r.equal(r.option(fd, sys.TOS), 0)
		for _, v := range []int{0xb8, 0xff, 0, 0x1b9} {
			r.setOption(fd, sys.TOS, v)
			r.equal(r.option(fd, sys.TOS), v&0xff)
		}
	}},
	{"option: a privileged caller has buffers beyond the largest size", func(r *rig) {
		fd := r.socket(sys.IPv4)
		for force, o := range map[sys.Option]sys.Option{
			sys.RecvBufferForce: sys.RecvBuffer, sys.SendBufferForce: sys.SendBuffer,
		} {
			r.setOption(fd, o, 1<<30)
			most := r.option(fd, o)
			err := r.Kernel.SetOption(fd, force, most) // which it doubles
			if err == syscall.EPERM {
				r.Skip("larger buffers are for the privileged here")
			}
			r.must(err)
			r.equal(r.option(fd, o), 2*most)
			if _, err := r.Kernel.GetOption(fd, force); err != syscall.ENOPROTOOPT {
				r.Errorf("it can be read: error is %v", err)
			}
		}
	}},
	{"option: PathMTU is that of a connected socket", func(r *rig) {
		for _, c := range []struct {
			ip   string
			o    sys.Option
			most int
		}{{"127.0.0.1:0", sys.PathMTU, 65_535}, {"[::1]:0", sys.PathMTU6, 1 << 20}} {
			fd := r.bound(c.ip)
			_, err := r.Kernel.GetOption(fd, c.o)
			r.want(err, syscall.ENOTCONN)
			r.must(r.Kernel.Connect(fd, r.local(fd)))
			if mtu := r.option(fd, c.o); mtu < 1280 || mtu > c.most {
				r.Errorf("the MTU of %s is %d", c.ip, mtu)
			}
		}
		dual := r.bound("[::]:0")
		r.must(r.Kernel.Connect(dual, addr("[::ffff:127.0.0.1]:9")))
		r.equal(r.option(dual, sys.PathMTU), r.option(dual, sys.PathMTU6))
	}},
	{"option: what may not be fragmented is no larger than the path's MTU", func(r *rig) {
		fd := r.bound("[::1]:0")
		r.must(r.Kernel.Connect(fd, r.local(fd)))
		most := r.option(fd, sys.PathMTU6) - 48 // the headers of IPv6 and UDP
		if most >= 65527 {
			r.Skipf("the loopback takes whatever there is")
		}
		for _, c := range []struct {
			mode  sys.PathMTUMode
			whole bool
		}{
			{sys.FragmentByRoute, false}, {sys.FragmentAlways, false}, {sys.FragmentOmit, false},
			{sys.FragmentNever, true}, {sys.FragmentProbe, true},
		} {
			r.setOption(fd, sys.PathMTUDiscovery6, int(c.mode))
			r.must(r.trySend(fd, make([]byte, most), none))
			r.equal(len(r.recv(fd).Buf), most)
			err := r.trySend(fd, make([]byte, most+1), none)
			if c.whole {
				r.want(err, syscall.EMSGSIZE)
				continue
			}
			r.must(err)
			r.equal(len(r.recv(fd).Buf), most+1)
		}
	}},
	{"option: TTL and the like do not keep a datagram from this machine", func(r *rig) {
		for ip, o := range map[string]sys.Option{"127.0.0.1:0": sys.TTL, "[::1]:0": sys.HopLimit} {
			fd := r.bound(ip)
			r.setOption(fd, o, 1)
			r.send(fd, "x", r.local(fd))
			r.equal(r.recvText(fd), "x")
		}
	}},
	{"option: SocketError cannot be set", func(r *rig) {
		r.want(r.Kernel.SetOption(r.socket(sys.IPv4), sys.SocketError, 1), syscall.ENOPROTOOPT)
	}},
}

// systems stands for a value that is the system's to choose.
const systems = -1

var (
	either   = []sys.Family{sys.IPv4, sys.IPv6}
	onlyIPv6 = []sys.Family{sys.IPv6}
)

// numbers are the options that keep a number.
var numbers = []struct {
	option    sys.Option
	families  []sys.Family
	initial   int
	good, bad []int
	reset     bool
}{
	{sys.TTL, either, systems, []int{1, 64, 255}, []int{-2, 0, 256}, true},
	{sys.HopLimit, onlyIPv6, systems, []int{0, 1, 255}, []int{-2, 256}, true},
	{sys.TrafficClass, onlyIPv6, 0, []int{0, 1, 0xb8, 255}, []int{-2, 256}, true},
	{sys.MulticastTTL, either, 1, []int{0, 1, 255}, []int{-2, 256}, true},
	{sys.MulticastHopLimit, onlyIPv6, 1, []int{0, 1, 255}, []int{-2, 256}, true},
	{sys.MulticastLoop, either, 1, []int{0, 1}, nil, false},
	{sys.MulticastLoop6, onlyIPv6, 1, []int{0, 1}, []int{-1, 2}, false},
	{sys.PathMTUDiscovery, either, systems, modes, []int{-1, 6}, false},
	{sys.PathMTUDiscovery6, onlyIPv6, systems, modes, []int{-1, 6}, false},
	{sys.SegmentSize, either, 0, []int{1, 1200, 65535, 0}, []int{-1, 65536}, false},
}

var modes = []int{
	int(sys.FragmentAlways), int(sys.FragmentByRoute), int(sys.FragmentNever), int(sys.FragmentProbe), int(sys.FragmentOmit),
}

// tellers are the options that make the kernel tell something.
var tellers = []sys.Option{
	sys.Reports, sys.Reports6, sys.RecvTOS, sys.RecvTrafficClass, sys.RecvLocal, sys.RecvLocal6, sys.RecvTime, sys.RecvJoined,
}

// ipv6Options are those that belong to IPv6.
var ipv6Options = []sys.Option{
	sys.HopLimit, sys.TrafficClass, sys.MulticastHopLimit, sys.MulticastLoop6, sys.PathMTUDiscovery6, sys.Reports6,
	sys.RecvTrafficClass, sys.RecvLocal6,
}
