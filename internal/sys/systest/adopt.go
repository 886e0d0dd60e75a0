package systest

import (
	"syscall"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
)

var adoptCases = []assertion{
	{"describe: a socket is of its family and kind", func(r *rig) {
		for family, fd := range map[sys.Family]int{sys.IPv4: r.socket(sys.IPv4), sys.IPv6: r.socket(sys.IPv6)} {
			d := r.describe(fd)
			r.equal(d.Family, family)
			r.equal(d.Kind, sys.UDP)
		}
	}},
	{"describe: a cookie is one socket's, for good", func(r *rig) {
		a, b := r.socket(sys.IPv4), r.socket(sys.IPv4)
		was := r.describe(a).Cookie
		if was == 0 || was == r.describe(b).Cookie {
			r.Errorf("two sockets have the cookies %d and %d", was, r.describe(b).Cookie)
		}
		r.must(r.Kernel.Bind(a, addr("127.0.0.1:0")))
		r.must(r.Kernel.Connect(a, addr("127.0.0.1:9")))
		r.equal(r.describe(a).Cookie, was)
		r.equal(r.describe(r.duplicate(a)).Cookie, was)
		r.must(r.Kernel.Close(a))
		if next := r.socket(sys.IPv4); r.describe(next).Cookie == was {
			r.Error("the next socket has the cookie of a closed one")
		}
	}},
	{"adopt: an unknown descriptor is EBADF", func(r *rig) {
		_, err := r.Kernel.Describe(1 << 20)
		r.want(err, syscall.EBADF)
		fd, err := r.Kernel.Duplicate(1 << 20)
		r.want(err, syscall.EBADF)
		r.equal(fd, -1)
	}},
	{"duplicate: is the same socket, with its queue and its options", func(r *rig) {
		fd, from := r.bound("127.0.0.1:0"), r.bound("127.0.0.1:0")
		dup := r.duplicate(fd)
		if dup == fd {
			r.Fatal("it is the same descriptor")
		}
		r.equal(r.local(dup), r.local(fd))
		r.deliver(from, fd, "1")
		r.deliver(from, fd, "2")
		r.equal(r.recvText(dup), "1")
		r.equal(r.recvText(fd), "2")
		r.silent(dup)
		r.setOption(dup, sys.Broadcast, 1)
		r.equal(r.option(fd, sys.Broadcast), 1)
		r.send(dup, "3", r.local(from))
		r.equal(r.recv(from).Addr, r.local(fd))
	}},
	{"duplicate: shares the error queue and the pending error", func(r *rig) {
		fd := r.reporting("127.0.0.1:0")
		dup := r.duplicate(fd)
		r.refusedReport(fd, r.deadPort())
		r.recvErr(dup, syscall.ECONNREFUSED)
		r.silent(fd)
		r.equal(len(r.takeReports(dup, 8)), 1)
		r.noReports(fd, syscall.EAGAIN)
	}},
	{"duplicate: closing one leaves the others, closing the last frees the port", func(r *rig) {
		fd, from := r.bound("127.0.0.1:0"), r.bound("127.0.0.1:0")
		a := r.local(fd)
		dup := r.duplicate(fd)
		third := r.duplicate(dup)
		r.deliver(from, fd, "queued")
		for _, closed := range []int{fd, third} {
			r.must(r.Kernel.Close(closed))
			r.recvErr(closed, syscall.EBADF)
			r.equal(r.local(dup), a)
		}
		r.equal(r.recvText(dup), "queued")
		r.deliver(from, dup, "later")
		r.equal(r.recvText(dup), "later")
		r.want(r.Kernel.Bind(r.socket(sys.IPv4), a), syscall.EADDRINUSE)
		r.must(r.Kernel.Close(dup))
		r.must(r.Kernel.Bind(r.socket(sys.IPv4), a))
	}},
	{"duplicate: each descriptor is one of its own to a poller", func(r *rig) {
		p, fd := r.poller(), r.bound("127.0.0.1:0")
		dup := r.duplicate(fd)
		r.must(p.Add(fd, poll.Read, 1))
		r.want(p.Remove(dup), syscall.ENOENT)
		r.must(p.Add(dup, poll.Read, 2))
		r.deliver(r.bound("127.0.0.1:0"), fd, "x")
		r.equal(len(r.wait(p, 8, patience)), 2)
		r.must(p.Remove(fd))
		r.equal(r.waitOne(p).Token, uint64(2))
		r.recv(dup)
		r.quiet(p)
	}},
	{"duplicate: one that left its pollers may be closed, and the other goes on", func(r *rig) {
		p, fd := r.poller(), r.bound("127.0.0.1:0")
		dup := r.duplicate(fd)
		r.must(p.Add(fd, poll.Read, 1))
		r.must(p.Remove(fd))
		r.must(r.Kernel.Close(fd))
		r.must(p.Add(dup, poll.Read, 2))
		r.deliver(r.bound("127.0.0.1:0"), dup, "x")
		r.equal(r.waitOne(p).Token, uint64(2))
	}},
	{"duplicate: a closed one that did not leave its poller is there still, out of reach", func(r *rig) {
		p, fd := r.poller(), r.bound("127.0.0.1:0")
		dup := r.duplicate(fd)
		r.must(p.Add(fd, poll.Read, 1))
		r.must(r.Kernel.Close(fd))
		r.want(p.Remove(fd), syscall.EBADF)
		r.deliver(r.bound("127.0.0.1:0"), dup, "x")
		r.equal(r.waitOne(p).Token, uint64(1))
		r.must(r.Kernel.Close(dup))
		r.quiet(p)
	}},
}

func (r *rig) describe(fd int) sys.Description {
	r.Helper()
	d, err := r.Kernel.Describe(fd)
	r.must(err)
	return d
}

func (r *rig) duplicate(fd int) int {
	r.Helper()
	dup, err := r.Kernel.Duplicate(fd)
	r.must(err)
	return dup
}
