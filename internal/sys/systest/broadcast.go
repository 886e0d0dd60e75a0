package systest

import (
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

// The cases use the loopback's own broadcast address: 255.255.255.255 needs a route.
var broadcastCases = []assertion{
	{"broadcast: needs leave, to send and to connect", func(r *rig) {
		fd := r.socket(sys.IPv4)
		dest := addr("127.255.255.255:9")
		r.want(r.trySend(fd, []byte("x"), dest), syscall.EACCES)
		r.want(r.Kernel.Connect(fd, dest), syscall.EACCES)
		r.setOption(fd, sys.Broadcast, 1)
		r.must(r.trySend(fd, []byte("x"), dest))
		r.must(r.Kernel.Connect(fd, dest))
	}},
	{"broadcast: comes to wildcards, and not to those with an address", func(r *rig) {
		wild := r.bound("0.0.0.0:0")
		r.setOption(wild, sys.Broadcast, 1)
		fd := r.bound("127.0.0.1:0")
		dual := r.bound("[::]:0")
		for _, to := range []int{wild, fd, dual} {
			r.send(wild, "x", at("127.255.255.255", r.local(to)))
		}
		for _, to := range []int{wild, dual} {
			r.equal(r.recv(to).Addr.Addr().Unmap().String(), "127.0.0.1")
			r.silent(to)
		}
		r.silent(fd)
	}},
	{"broadcast: comes to each socket at the port", func(r *rig) {
		first, second := r.socket(sys.IPv4), r.socket(sys.IPv4)
		for _, fd := range []int{first, second} {
			r.setOption(fd, sys.ReuseAddr, 1)
			r.setOption(fd, sys.Broadcast, 1)
			r.must(r.Kernel.Bind(fd, at("0.0.0.0", r.local(first))))
		}
		r.send(first, "all", at("127.255.255.255", r.local(first)))
		r.equal(r.recvText(first), "all")
		r.equal(r.recvText(second), "all")
	}},
	{"broadcast: a socket bound to the address hears it, and sends from another", func(r *rig) {
		fd, from := r.bound("127.255.255.255:0"), r.bound("127.0.0.1:0")
		r.setOption(from, sys.Broadcast, 1)
		r.send(from, "x", r.local(fd))
		r.equal(r.recv(fd).Addr, r.local(from))
		r.send(fd, "y", r.local(from))
		r.equal(r.recv(from).Addr, at("127.0.0.1", r.local(fd)))
	}},
}
