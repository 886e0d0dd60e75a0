package systest

import (
	"math"
	"syscall"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
)

var registrationCases = []assertion{
	{"registration: a descriptor can be added once", func(r *rig) {
		p, fd := r.poller(), r.bound("127.0.0.1:0")
		r.must(p.Add(fd, poll.Read, 1))
		r.want(p.Add(fd, poll.Read, 2), syscall.EEXIST)
		r.must(p.Remove(fd))
		r.must(p.Add(fd, poll.Read, 3))
	}},
	{"registration: one that was not added is ENOENT", func(r *rig) {
		p, fd := r.poller(), r.bound("127.0.0.1:0")
		r.want(p.Modify(fd, poll.Read, 1), syscall.ENOENT)
		r.want(p.Remove(fd), syscall.ENOENT)
		r.must(p.Add(fd, poll.Read, 1))
		r.must(p.Remove(fd))
		r.want(p.Remove(fd), syscall.ENOENT)
	}},
	{"registration: an unknown descriptor is EBADF", func(r *rig) {
		const fd = 1 << 20
		p := r.poller()
		r.want(p.Add(fd, poll.Read, 1), syscall.EBADF)
		r.want(p.Modify(fd, poll.Read, 1), syscall.EBADF)
		r.want(p.Remove(fd), syscall.EBADF)
	}},
	{"registration: tokens come back with all of their 64 bits", func(r *rig) {
		for _, token := range []uint64{0, 1, math.MaxUint32, 1 << 32, 1 << 63, 0xfedc_ba98_7654_3210, math.MaxUint64 - 1} {
			p, fd := r.poller(), r.bound("127.0.0.1:0")
			r.must(p.Add(fd, poll.Write, token))
			r.equal(r.waitOne(p), poll.Event{Token: token, Ready: poll.Writable})
		}
	}},
	{"registration: Modify replaces interest and token", func(r *rig) {
		p, fd := r.poller(), r.bound("127.0.0.1:0")
		r.must(p.Add(fd, poll.Write, 1))
		r.waitOne(p)
		r.must(p.Modify(fd, poll.Read, 2))
		r.quiet(p)
		r.deliver(r.bound("127.0.0.1:0"), fd, "x")
		r.equal(r.waitOne(p), poll.Event{Token: 2, Ready: poll.Readable})
		r.must(p.Modify(fd, poll.Read|poll.Write, 3))
		r.equal(r.waitOne(p), poll.Event{Token: 3, Ready: poll.Readable | poll.Writable})
	}},
	{"registration: no interest hears of nothing, and interest finds what came meanwhile", func(r *rig) {
		p, fd := r.poller(), r.bound("127.0.0.1:0")
		r.must(p.Add(fd, 0, 1))
		r.deliver(r.bound("127.0.0.1:0"), fd, "x")
		r.quiet(p)
		r.must(p.Modify(fd, poll.Read, 1))
		r.equal(r.waitOne(p).Ready, poll.Readable)
	}},
	{"registration: Remove ends it, also for one that is ready", func(r *rig) {
		p, fd := r.poller(), r.bound("127.0.0.1:0")
		r.must(p.Add(fd, poll.Read, 1))
		r.deliver(r.bound("127.0.0.1:0"), fd, "x")
		r.waitOne(p)
		r.must(p.Remove(fd))
		r.quiet(p)
	}},
	{"registration: the next owner of a descriptor does not inherit it", func(r *rig) {
		p, from := r.poller(), r.bound("127.0.0.1:0")
		old := r.bound("127.0.0.1:0")
		r.must(p.Add(old, poll.Read, 1))
		r.deliver(from, old, "x")
		r.must(p.Remove(old))
		r.must(r.Kernel.Close(old))
		fd := r.bound("127.0.0.1:0")
		r.equal(fd, old)
		r.deliver(from, fd, "y")
		r.quiet(p)
		r.must(p.Add(fd, poll.Read, 2))
		r.equal(r.waitOne(p).Token, uint64(2))
	}},
	{"registration: two pollers may have the same descriptor", func(r *rig) {
		p, q, fd := r.poller(), r.poller(), r.bound("127.0.0.1:0")
		r.must(p.Add(fd, poll.Read, 1))
		r.must(q.Add(fd, poll.Read, 2))
		r.deliver(r.bound("127.0.0.1:0"), fd, "x")
		r.equal(r.waitOne(p).Token, uint64(1))
		r.equal(r.waitOne(q).Token, uint64(2))
		r.must(p.Remove(fd))
		r.equal(r.waitOne(q).Token, uint64(2))
		_, err := r.Kernel.Recv(fd, sys.NewRecvBatch(1, 8), 1)
		r.must(err)
		r.quiet(q)
	}},
}
