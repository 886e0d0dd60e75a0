package systest

import (
	"net/netip"
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

var none netip.AddrPort

var connectCases = []assertion{
	{"connect: sets the default destination and both addresses", func(r *rig) {
		peer, fd := r.bound("127.0.0.1:0"), r.socket(sys.IPv4)
		r.must(r.Kernel.Connect(fd, r.local(peer)))
		remote, err := r.Kernel.RemoteAddr(fd)
		r.must(err)
		r.equal(remote, r.local(peer))
		r.equal(r.local(fd).Addr().String(), "127.0.0.1")
		r.send(fd, "x", none)
		r.equal(r.recv(peer).Addr, r.local(fd))
	}},
	{"connect: filters on the source", func(r *rig) {
		peer, stranger := r.bound("127.0.0.1:0"), r.bound("127.0.0.1:0")
		fd := r.connected(r.local(peer))
		r.send(stranger, "stray", r.local(fd))
		r.deliver(peer, fd, "meant")
		r.equal(r.recvText(fd), "meant")
		r.silent(fd)
	}},
	{"connect: leaves what was queued before", func(r *rig) {
		peer, stranger, fd := r.bound("127.0.0.1:0"), r.bound("127.0.0.1:0"), r.bound("127.0.0.1:0")
		r.deliver(stranger, fd, "early")
		r.must(r.Kernel.Connect(fd, r.local(peer)))
		r.equal(r.recvText(fd), "early")
	}},
	{"connect: an explicit destination still works", func(r *rig) {
		peer, other := r.bound("127.0.0.1:0"), r.bound("127.0.0.1:0")
		r.send(r.connected(r.local(peer)), "x", r.local(other))
		r.equal(r.recvText(other), "x")
		r.silent(peer)
	}},
	{"connect: the connected socket wins over the others at its port", func(r *rig) {
		peer, wild := r.bound("127.0.0.1:0"), r.socket(sys.IPv4)
		fd := r.socket(sys.IPv4)
		r.setOption(fd, sys.ReuseAddr, 1)
		r.setOption(wild, sys.ReuseAddr, 1)
		r.must(r.Kernel.Bind(fd, addr("127.0.0.1:0")))
		r.must(r.Kernel.Connect(fd, r.local(peer)))
		r.must(r.Kernel.Bind(wild, r.local(fd)))
		r.deliver(peer, fd, "from the peer")
		stranger := r.bound("127.0.0.1:0")
		r.deliverTo(stranger, wild, "from a stranger", r.local(fd))
		r.equal(r.recvText(fd), "from the peer")
		r.equal(r.recvText(wild), "from a stranger")
		r.silent(fd)
	}},
	{"connect: again takes another peer", func(r *rig) {
		first, second := r.bound("127.0.0.1:0"), r.bound("127.0.0.1:0")
		fd := r.connected(r.local(first))
		was := r.local(fd)
		r.must(r.Kernel.Connect(fd, r.local(second)))
		r.equal(r.local(fd), was)
		r.send(fd, "x", none)
		r.equal(r.recvText(second), "x")
		r.send(first, "stray", was)
		r.deliver(second, fd, "meant")
		r.equal(r.recvText(fd), "meant")
		r.silent(fd)
	}},
	{"connect: to the unspecified address is to this machine", func(r *rig) {
		for dest, want := range map[string]string{
			"0.0.0.0:9":          "127.0.0.1:9",
			"[::]:9":             "[::1]:9",
			"[::ffff:0.0.0.0]:9": "[::ffff:127.0.0.1]:9",
		} {
			fd := r.socket(familyOf(addr(dest)))
			r.must(r.Kernel.Connect(fd, addr(dest)))
			remote, err := r.Kernel.RemoteAddr(fd)
			r.must(err)
			r.equal(remote, addr(want))
		}
	}},
	{"connect: IPv4 from an IPv6 socket shows mapped addresses", func(r *rig) {
		peer := r.bound("127.0.0.1:0")
		for _, dest := range []netip.AddrPort{r.local(peer), at("::ffff:127.0.0.1", r.local(peer))} {
			fd := r.socket(sys.IPv6)
			r.must(r.Kernel.Connect(fd, dest))
			remote, err := r.Kernel.RemoteAddr(fd)
			r.must(err)
			r.equal(remote, at("::ffff:127.0.0.1", dest))
			r.equal(r.local(fd).Addr().String(), "::ffff:127.0.0.1")
			r.send(fd, "x", none)
			r.equal(r.recv(peer).Addr, at("127.0.0.1", r.local(fd)))
		}
	}},
	{"connect: an address of the wrong family is refused", func(r *rig) {
		r.want(r.Kernel.Connect(r.socket(sys.IPv4), addr("[::1]:9")), syscall.EAFNOSUPPORT)
		only := r.socket(sys.IPv6)
		r.setOption(only, sys.IPv6Only, 1)
		r.want(r.Kernel.Connect(only, addr("127.0.0.1:9")), syscall.EAFNOSUPPORT)
		r.want(r.Kernel.Connect(only, addr("[::ffff:127.0.0.1]:9")), syscall.ENETUNREACH)
		r.want(r.Kernel.Connect(r.bound("[::1]:0"), addr("[::ffff:127.0.0.1]:9")), syscall.ENETUNREACH)
		r.want(r.Kernel.Connect(r.socket(sys.IPv6), addr("[fe80::1]:9")), syscall.EINVAL)
	}},
	{"connect: a failed one leaves no peer but a port", func(r *rig) {
		fd := r.socket(sys.IPv4)
		r.want(r.Kernel.Connect(fd, addr("[::1]:9")), syscall.EAFNOSUPPORT)
		_, err := r.Kernel.RemoteAddr(fd)
		r.want(err, syscall.ENOTCONN)
		if r.local(fd).Port() == 0 {
			r.Error("no port")
		}
	}},
	{"dissolve: ends the filter and the default destination", func(r *rig) {
		peer, stranger := r.bound("127.0.0.1:0"), r.bound("127.0.0.1:0")
		fd := r.boundAgain()
		r.must(r.Kernel.Connect(fd, r.local(peer)))
		r.must(r.Kernel.Connect(fd, none))
		_, err := r.Kernel.RemoteAddr(fd)
		r.want(err, syscall.ENOTCONN)
		r.want(r.trySend(fd, nil, none), syscall.EDESTADDRREQ)
		r.deliver(stranger, fd, "welcome now")
		r.equal(r.recvText(fd), "welcome now")
	}},
	{"dissolve: keeps what Bind named and gives up the rest", func(r *rig) {
		to := addr("127.0.0.1:9")
		fd := r.socket(sys.IPv4)
		r.must(r.Kernel.Connect(fd, to))
		r.must(r.Kernel.Connect(fd, none))
		r.equal(r.local(fd), addr("0.0.0.0:0"))

		fd = r.bound("127.0.0.1:0")
		r.must(r.Kernel.Connect(fd, to))
		r.must(r.Kernel.Connect(fd, none))
		r.equal(r.local(fd), addr("127.0.0.1:0"))

		fd = r.boundAgain()
		named := r.local(fd)
		r.must(r.Kernel.Connect(fd, to))
		r.must(r.Kernel.Connect(fd, none))
		r.equal(r.local(fd), named)

		wild := r.bound("0.0.0.0:0")
		named = r.local(wild)
		r.must(r.Kernel.Close(wild))
		wild = r.bound(named.String())
		r.must(r.Kernel.Connect(wild, to))
		r.equal(r.local(wild), at("127.0.0.1", named))
		r.must(r.Kernel.Connect(wild, none))
		r.equal(r.local(wild), named)
	}},
	{"dissolve: a socket without a peer takes it too", func(r *rig) {
		r.must(r.Kernel.Connect(r.socket(sys.IPv4), none))
	}},
}

// boundAgain makes a socket whose port was named by the caller, and is free all the same.
func (r *rig) boundAgain() int {
	r.Helper()
	fd := r.socket(sys.IPv4)
	r.eventually("a free port is free still", func() bool { return r.Kernel.Bind(fd, r.freePort()) == nil })
	return fd
}
