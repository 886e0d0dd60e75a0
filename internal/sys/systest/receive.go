package systest

import (
	"fmt"
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

var receiveCases = []assertion{
	{"receive: a batch brings what is there, in order, and no more than asked", func(r *rig) {
		from, to := r.bound("127.0.0.1:0"), r.bound("127.0.0.1:0")
		for i := range 5 {
			r.deliver(from, to, fmt.Sprint(i))
		}
		b := sys.NewRecvBatch(8, 64)
		var got []string
		for _, c := range []struct{ ask, want int }{{1, 1}, {2, 2}, {8, 2}} {
			n, err := r.Kernel.Recv(to, b, c.ask)
			r.must(err)
			r.equal(n, c.want)
			for _, m := range b.Msgs[:n] {
				r.equal(m.Addr, r.local(from))
				r.equal(m.Flags, sys.Flags(0))
				got = append(got, string(m.Buf))
			}
		}
		r.equal(fmt.Sprint(got), "[0 1 2 3 4]")
		r.silent(to)
	}},
	{"receive: sources of a batch are told apart", func(r *rig) {
		to := r.bound("[::]:0")
		v4, v6 := r.bound("127.0.0.1:0"), r.bound("[::1]:0")
		r.deliverTo(v4, to, "4", at("127.0.0.1", r.local(to)))
		r.deliverTo(v6, to, "6", at("::1", r.local(to)))
		r.deliverTo(v4, to, "4", at("127.0.0.1", r.local(to)))
		b := sys.NewRecvBatch(4, 64)
		n, err := r.Kernel.Recv(to, b, 4)
		r.must(err)
		r.equal(n, 3)
		r.equal(b.Msgs[0].Addr, at("::ffff:127.0.0.1", r.local(v4)))
		r.equal(b.Msgs[1].Addr, r.local(v6))
		r.equal(b.Msgs[2].Addr, b.Msgs[0].Addr)
	}},
	{"receive: an empty queue is EAGAIN, and leaves the batch alone", func(r *rig) {
		from, to := r.bound("127.0.0.1:0"), r.bound("127.0.0.1:0")
		r.deliver(from, to, "kept")
		b := sys.NewRecvBatch(2, 64)
		_, err := r.Kernel.Recv(to, b, 2)
		r.must(err)
		n, err := r.Kernel.Recv(to, b, 2)
		r.equal(n, 0)
		r.want(err, syscall.EAGAIN)
		r.equal(string(b.Msgs[0].Buf), "kept")
	}},
	{"receive: a datagram of no bytes is one", func(r *rig) {
		from, to := r.bound("127.0.0.1:0"), r.bound("127.0.0.1:0")
		r.deliver(from, to, "before")
		r.deliver(from, to, "")
		r.deliver(from, to, "after")
		b := sys.NewRecvBatch(4, 64)
		n, err := r.Kernel.Recv(to, b, 4)
		r.must(err)
		r.equal(n, 3)
		r.equal(len(b.Msgs[1].Buf), 0)
		r.equal(b.Msgs[1].Addr, r.local(from))
		r.equal(string(b.Msgs[2].Buf), "after")
	}},
	{"receive: what does not fit its slot is cut, told, and gone", func(r *rig) {
		from, to := r.bound("127.0.0.1:0"), r.bound("127.0.0.1:0")
		r.deliver(from, to, "12345678")
		r.deliver(from, to, "123456789")
		r.deliver(from, to, "1")
		b := sys.NewRecvBatch(3, 8)
		n, err := r.Kernel.Recv(to, b, 3)
		r.must(err)
		r.equal(n, 3)
		r.equal(string(b.Msgs[0].Buf), "12345678")
		r.equal(b.Msgs[0].Flags, sys.Flags(0))
		r.equal(string(b.Msgs[1].Buf), "12345678")
		r.equal(b.Msgs[1].Flags, sys.Truncated)
		r.equal(string(b.Msgs[2].Buf), "1")
		r.equal(b.Msgs[2].Flags, sys.Flags(0))
	}},
	{"receive: a slot says nothing of the datagram that was in it before", func(r *rig) {
		from, to := r.bound("127.0.0.1:0"), r.bound("127.0.0.1:0")
		b := sys.NewRecvBatch(1, 8)
		for _, c := range []struct {
			send, want string
			flags      sys.Flags
		}{{"123456789", "12345678", sys.Truncated}, {"ab", "ab", 0}, {"", "", 0}} {
			r.deliver(from, to, c.send)
			n, err := r.Kernel.Recv(to, b, 1)
			r.must(err)
			r.equal(n, 1)
			r.equal(string(b.Msgs[0].Buf), c.want)
			r.equal(b.Msgs[0].Flags, c.flags)
		}
	}},
}
