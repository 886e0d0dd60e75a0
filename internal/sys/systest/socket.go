package systest

import (
	"net/netip"
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

var socketCases = []assertion{
	{"socket: a new one has no address, no peer and no data", func(r *rig) {
		fd := r.socket(sys.IPv4)
		r.equal(r.local(fd), addr("0.0.0.0:0"))
		_, err := r.Kernel.RemoteAddr(fd)
		r.want(err, syscall.ENOTCONN)
		r.silent(fd)
		r.equal(r.local(r.socket(sys.IPv6)), addr("[::]:0"))
	}},
	{"socket: a kind that nobody knows is refused", func(r *rig) {
		_, err := r.Kernel.Socket(sys.IPv4, 99)
		r.want(err, syscall.EPROTONOSUPPORT)
	}},
	{"socket: a family that nobody knows is refused", func(r *rig) {
		_, err := r.Kernel.Socket(99, sys.UDP)
		r.want(err, syscall.EAFNOSUPPORT)
	}},
	{"socket: every call on an unknown descriptor answers EBADF", func(r *rig) {
		const fd = 1 << 20
		k := r.Kernel
		r.want(k.Bind(fd, addr("127.0.0.1:0")), syscall.EBADF)
		r.want(k.Connect(fd, addr("127.0.0.1:9")), syscall.EBADF)
		r.want(k.Connect(fd, netip.AddrPort{}), syscall.EBADF)
		r.want(k.Close(fd), syscall.EBADF)
		r.want(k.SetOption(fd, sys.ReuseAddr, 1), syscall.EBADF)
		_, err := k.LocalAddr(fd)
		r.want(err, syscall.EBADF)
		_, err = k.RemoteAddr(fd)
		r.want(err, syscall.EBADF)
		_, err = k.GetOption(fd, sys.ReuseAddr)
		r.want(err, syscall.EBADF)
		_, err = k.MemInfo(fd)
		r.want(err, syscall.EBADF)
		r.recvErr(fd, syscall.EBADF)
		r.want(r.trySend(fd, nil, addr("127.0.0.1:9")), syscall.EBADF)
	}},
	{"socket: a closed descriptor is unknown", func(r *rig) {
		fd := r.bound("127.0.0.1:0")
		r.must(r.Kernel.Close(fd))
		r.recvErr(fd, syscall.EBADF)
	}},
	{"socket: close frees the port and drops what was queued", func(r *rig) {
		from, old := r.bound("127.0.0.1:0"), r.bound("127.0.0.1:0")
		a := r.local(old)
		r.deliver(from, old, "for the old one")
		r.must(r.Kernel.Close(old))
		r.silent(r.bound(a.String()))
	}},
}
