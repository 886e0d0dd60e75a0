package systest

import (
	"slices"
	"syscall"

	"github.com/weirnet/weir/internal/poll"
)

var readinessCases = []assertion{
	{"readiness: a socket that stays ready is reported by every Wait", func(r *rig) {
		p, fd, from := r.poller(), r.bound("127.0.0.1:0"), r.bound("127.0.0.1:0")
		r.must(p.Add(fd, poll.Read, 1))
		r.quiet(p)
		r.deliver(from, fd, "1")
		r.deliver(from, fd, "2")
		want := poll.Event{Token: 1, Ready: poll.Readable}
		r.equal(r.waitOne(p), want)
		r.equal(r.waitOne(p), want)
		r.recv(fd)
		r.equal(r.waitOne(p), want)
		r.recv(fd)
		r.quiet(p)
		r.deliver(from, fd, "3")
		r.equal(r.waitOne(p), want)
	}},
	{"readiness: a datagram of no bytes makes readable", func(r *rig) {
		p, fd := r.poller(), r.bound("127.0.0.1:0")
		r.must(p.Add(fd, poll.Read, 1))
		r.deliver(r.bound("127.0.0.1:0"), fd, "")
		r.equal(r.waitOne(p).Ready, poll.Readable)
	}},
	{"readiness: one that was ready before it was added is reported", func(r *rig) {
		p, fd := r.poller(), r.bound("127.0.0.1:0")
		r.deliver(r.bound("127.0.0.1:0"), fd, "x")
		r.must(p.Add(fd, poll.Read, 1))
		r.equal(r.waitOne(p).Ready, poll.Readable)
	}},
	{"readiness: read interest does not hear of writable", func(r *rig) {
		p, fd := r.poller(), r.bound("127.0.0.1:0")
		r.must(p.Add(fd, poll.Read, 1))
		r.quiet(p)
	}},
	{"readiness: a socket without a port is writable", func(r *rig) {
		r.await(r.socket(1), poll.Writable)
	}},
	{"readiness: write interest is reported by every Wait", func(r *rig) {
		p, fd := r.poller(), r.bound("127.0.0.1:0")
		r.must(p.Add(fd, poll.Write, 1))
		for range 3 {
			r.equal(r.waitOne(p).Ready, poll.Writable)
		}
	}},
	{"readiness: Failed comes unasked until the error is read", func(r *rig) {
		p, fd := r.poller(), r.refusedBy(r.deadPort())
		r.must(p.Add(fd, 0, 1))
		for range 2 {
			r.equal(r.waitOne(p), poll.Event{Token: 1, Ready: poll.Failed})
		}
		r.recvErr(fd, syscall.ECONNREFUSED)
		r.quiet(p)
	}},
	{"readiness: an error that comes later is reported, asked for or not", func(r *rig) {
		p, fd := r.poller(), r.connected(r.deadPort())
		r.must(p.Add(fd, 0, 1))
		r.quiet(p)
		r.send(fd, "anybody?", none)
		r.equal(r.waitOne(p).Ready, poll.Failed)
	}},
	{"readiness: Failed alone is not readable, and is writable", func(r *rig) {
		p, fd := r.poller(), r.refusedBy(r.deadPort())
		r.must(p.Add(fd, poll.Read|poll.Write, 1))
		r.equal(r.waitOne(p).Ready, poll.Failed|poll.Writable)
	}},
	{"readiness: more than there is room for rotates", func(r *rig) {
		p := r.poller()
		const sockets = 5
		for i := range sockets {
			r.must(p.Add(r.bound("127.0.0.1:0"), poll.Write, uint64(i)))
		}
		first, second, third := r.wait(p, 2, patience), r.wait(p, 2, patience), r.wait(p, 2, patience)
		seen := slices.Concat(tokens(first), tokens(second), tokens(third))
		if len(seen) != 6 {
			r.Fatalf("Waits for two bring %v", seen)
		}
		left := slices.Clone(seen[:sockets])
		slices.Sort(left)
		if !slices.Equal(left, []uint64{0, 1, 2, 3, 4}) {
			r.Errorf("Waits for two bring %v: somebody came twice before all came once", seen)
		}
		r.equal(seen[5], seen[0])
	}},
	{"readiness: all that are ready come in one Wait with room for them", func(r *rig) {
		p, from := r.poller(), r.bound("127.0.0.1:0")
		var want []uint64
		for i := range 40 {
			fd := r.bound("127.0.0.1:0")
			r.must(p.Add(fd, poll.Read, uint64(i)))
			if i%2 == 1 {
				r.deliver(from, fd, "x")
				want = append(want, uint64(i))
			}
		}
		got := tokens(r.wait(p, 64, patience))
		slices.Sort(got)
		if !slices.Equal(got, want) {
			r.Errorf("got %v, want %v", got, want)
		}
	}},
}
