package systest

import (
	"syscall"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
)

var streamReadinessCases = []assertion{
	{"stream readiness: a new connection is writable at both ends", func(r *rig) {
		r.eachStream(func(a, b int) {
			r.becomes(a, poll.Writable)
			r.becomes(b, poll.Writable)
		})
	}},
	{"stream readiness: what is left is told by every Wait", func(r *rig) {
		r.eachStream(func(a, b int) {
			p := r.poller()
			r.must(p.Add(b, poll.Read, 1))
			r.quiet(p)
			r.write(a, "12345")
			want := poll.Event{Token: 1, Ready: poll.Readable}
			for range 4 {
				r.equal(r.waitOne(p), want)
				r.equal(r.waitOne(p), want)
				r.equal(len(r.read(b, 1)), 1)
			}
			r.equal(r.waitOne(p), want)
			r.read(b, 1)
			r.quiet(p)
			r.write(a, "6")
			r.equal(r.waitOne(p), want)
		})
	}},
	{"stream readiness: room is told by every Wait", func(r *rig) {
		r.eachStream(func(a, _ int) {
			p := r.poller()
			r.must(p.Add(a, poll.Write, 1))
			for range 3 {
				r.equal(r.waitOne(p), poll.Event{Token: 1, Ready: poll.Writable})
			}
		})
	}},
	{"stream readiness: the end of the stream is told by every Wait, until nobody asks", func(r *rig) {
		r.eachStream(func(a, b int) {
			p := r.poller()
			r.must(p.Add(b, poll.Read, 1))
			r.must(r.Kernel.CloseWrite(a))
			for range 3 {
				r.equal(r.waitOne(p), poll.Event{Token: 1, Ready: poll.Readable})
				s, err := r.tryRead(b, 8)
				r.must(err)
				r.equal(s, "")
			}
			r.must(p.Modify(b, 0, 1))
			r.quiet(p)
			r.must(p.Modify(b, poll.Write, 1))
			r.equal(r.waitOne(p), poll.Event{Token: 1, Ready: poll.Writable})
		})
	}},
	{"stream readiness: bytes end a Wait", func(r *rig) {
		r.eachStream(func(a, b int) {
			r.wakes(b, poll.Read, poll.Readable, func(k sys.Kernel, fd int) { _, _ = k.Write(fd, vector("x"), false) }, a)
			r.equal(r.read(b, 1), "x")
			r.wakes(a, poll.Read, poll.Readable, func(k sys.Kernel, fd int) { _, _ = k.Write(fd, vector("y"), false) }, b)
			r.equal(r.read(a, 1), "y")
		})
	}},
	{"stream readiness: a Read of the peer ends a Wait for room", func(r *rig) {
		r.eachStream(func(a, b int) {
			sent := r.fill(a)
			big := make([]byte, sent)
			r.wakes(a, poll.Write, poll.Writable, func(k sys.Kernel, fd int) {
				for n, err := k.Read(fd, big); err != syscall.EAGAIN && n > 0; n, err = k.Read(fd, big) {
				}
			}, b)
		})
	}},
	{"stream readiness: interest finds what came meanwhile", func(r *rig) {
		r.eachStream(func(a, b int) {
			p := r.poller()
			r.must(p.Add(b, 0, 1))
			r.write(a, "x")
			r.await(b, poll.Readable)
			r.quiet(p)
			r.must(p.Modify(b, poll.Read, 2))
			r.equal(r.waitOne(p), poll.Event{Token: 2, Ready: poll.Readable})
		})
	}},
	{"stream readiness: one that was ready before it was added is reported", func(r *rig) {
		r.eachStream(func(a, b int) {
			r.write(a, "x")
			r.await(b, poll.Readable)
			p := r.poller()
			r.must(p.Add(b, readWrite, 1))
			r.equal(r.waitOne(p), poll.Event{Token: 1, Ready: poll.Readable | poll.Writable})
		})
	}},
	{"stream readiness: Failed and HungUp come unasked until the descriptor leaves", func(r *rig) {
		a, b := r.tcpPair()
		p := r.poller()
		r.must(p.Add(b, 0, 1))
		r.quiet(p)
		r.reset(a)
		for range 2 {
			r.equal(r.waitOne(p), poll.Event{Token: 1, Ready: poll.Failed | poll.HungUp})
		}
		r.readErr(b, syscall.ECONNRESET)
		for range 2 {
			r.equal(r.waitOne(p), poll.Event{Token: 1, Ready: poll.HungUp})
		}
		r.must(p.Remove(b))
		r.quiet(p)
	}},
	{"stream readiness: a poller tells many connections apart", func(r *rig) {
		p, l := r.poller(), r.listener("127.0.0.1:0", 8)
		r.must(p.Add(l, poll.Read, 100))
		var clients, conns []int
		for i := range 6 {
			clients = append(clients, r.dial(r.local(l)))
			r.equal(r.waitOne(p), poll.Event{Token: 100, Ready: poll.Readable})
			conns = append(conns, r.accept(l))
			r.must(p.Add(conns[i], poll.Read, uint64(i)))
			r.quiet(p)
		}
		for i := range clients {
			r.write(clients[i], "x")
			r.equal(r.waitOne(p).Token, uint64(i))
			r.equal(r.read(conns[i], 1), "x")
		}
		r.quiet(p)
	}},
	{"stream readiness: the next owner of a descriptor does not inherit it", func(r *rig) {
		p, l := r.poller(), r.listener("127.0.0.1:0", 8)
		a := r.dial(r.local(l))
		old := r.accept(l)
		r.must(p.Add(old, poll.Read, 1))
		r.write(a, "x")
		r.waitOne(p)
		r.must(p.Remove(old))
		r.must(r.Kernel.Close(old))
		c := r.dial(r.local(l))
		b := r.accept(l)
		r.write(c, "y")
		r.await(b, poll.Readable)
		r.quiet(p)
	}},
}
