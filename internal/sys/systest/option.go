package systest

import (
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
	{"option: SocketError cannot be set", func(r *rig) {
		r.want(r.Kernel.SetOption(r.socket(sys.IPv4), sys.SocketError, 1), syscall.ENOPROTOOPT)
	}},
}
