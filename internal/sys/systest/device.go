package systest

import (
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

// loopbackName is that of Linux; the cases are about a system call of Linux.
const loopbackName = "lo"

var deviceCases = []assertion{
	{"device: a socket may be kept to the loopback, and released", func(r *rig) {
		for _, ip := range []string{"127.0.0.1:0", "[::1]:0"} {
			fd, peer := r.bound(ip), r.bound(ip)
			r.bindToDevice(fd, loopbackName)
			r.roundTrip(peer, fd, addr(ip).Addr().String(), addr(ip).Addr().String())
			r.bindToDevice(fd, "")
			r.roundTrip(peer, fd, addr(ip).Addr().String(), addr(ip).Addr().String())
			r.bindToDevice(fd, "")
		}
	}},
	{"device: a name that there is not is ENODEV, and changes nothing", func(r *rig) {
		fd := r.bound("127.0.0.1:0")
		for _, name := range []string{"no-such", "a-name-longer-than-any-interface-has"} {
			r.want(r.Kernel.BindToDevice(fd, name), syscall.ENODEV)
		}
		r.send(fd, "x", r.local(fd))
		r.equal(r.recvText(fd), "x")
	}},
	{"device: an unknown descriptor is EBADF", func(r *rig) {
		r.want(r.Kernel.BindToDevice(1<<20, loopbackName), syscall.EBADF)
	}},
	{"device: the socket that is kept to the interface wins over the others at its port", func(r *rig) {
		kept, other := r.socket(sys.IPv4), r.socket(sys.IPv4)
		for _, fd := range []int{kept, other} {
			r.turnOn(fd, sys.ReuseAddr)
		}
		r.bindToDevice(kept, loopbackName)
		r.must(r.Kernel.Bind(kept, addr("127.0.0.1:0")))
		r.must(r.Kernel.Bind(other, r.local(kept)))
		r.deliver(r.bound("127.0.0.1:0"), kept, "x")
		r.equal(r.recvText(kept), "x")
		r.silent(other)
	}},
	{"device: the interface of a datagram may be the same", func(r *rig) {
		c := sys.Control{Interface: uint32(r.loopbackNumber())}
		for _, ip := range []string{"127.0.0.1:0", "[::1]:0"} {
			fd := r.bound(ip)
			r.bindToDevice(fd, loopbackName)
			r.setOption(fd, sys.MulticastInterface, int(c.Interface))
			r.sendWith(fd, "x", r.local(fd), c)
			r.equal(r.recvText(fd), "x")
			r.want(r.trySendWith(fd, nil, r.local(fd), sys.Control{Interface: noInterface}), wrongDevice(ip))
		}
	}},
}

// wrongDevice is what each family answers to an interface that there is not, where the socket is kept to another.
func wrongDevice(ip string) error {
	if addr(ip).Addr().Is4() {
		return syscall.ENODEV
	}
	return syscall.EINVAL
}

// bindToDevice skips where that takes a privilege that the test has not.
func (r *rig) bindToDevice(fd int, name string) {
	r.Helper()
	err := r.Kernel.BindToDevice(fd, name)
	if err == syscall.EPERM {
		r.Skip("BindToDevice is for the privileged here")
	}
	r.must(err)
}
