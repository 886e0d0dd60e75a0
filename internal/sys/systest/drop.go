package systest

import (
	"strings"

	"github.com/weirnet/weir/internal/sys"
)

var dropCases = []assertion{
	{"drop: what the buffer does not hold is counted, before any receive", func(r *rig) {
		from, to := r.bound("127.0.0.1:0"), r.bound("127.0.0.1:0")
		r.setOption(to, sys.RecvBuffer, 1)
		r.equal(r.memInfo(to).Drops, uint32(0))
		const sent = 20
		for range sent {
			r.send(from, "x", r.local(to))
		}
		r.eventually("there are drops", func() bool { return r.memInfo(to).Drops > 0 })
		got := 0
		r.eventually("each datagram was received or counted", func() bool {
			n, _ := r.Kernel.Recv(to, sys.NewRecvBatch(sent, 8), sent)
			got += n
			return got+int(r.memInfo(to).Drops) == sent
		})
		if got == 0 {
			r.Error("nothing was received")
		}
	}},
	{"drop: the queue is charged with more than its bytes, and nothing when empty", func(r *rig) {
		from, to := r.bound("127.0.0.1:0"), r.bound("127.0.0.1:0")
		r.equal(r.memInfo(to).RecvQueued, 0)
		r.deliver(from, to, strings.Repeat("x", 1000))
		if q := r.memInfo(to).RecvQueued; q <= 1000 {
			r.Errorf("1000 bytes are charged as %d", q)
		}
		r.recv(to)
		r.equal(r.memInfo(to).RecvQueued, 0)
	}},
	{"drop: an empty queue takes a datagram that is larger than its buffer", func(r *rig) {
		from, to := r.bound("127.0.0.1:0"), r.bound("127.0.0.1:0")
		r.setOption(to, sys.RecvBuffer, 1)
		r.deliver(from, to, strings.Repeat("x", 60_000))
		r.equal(len(r.recv(to).Buf), 60_000)
	}},
	{"drop: room that was read is room again", func(r *rig) {
		from, to := r.bound("127.0.0.1:0"), r.bound("127.0.0.1:0")
		r.setOption(to, sys.RecvBuffer, 1)
		for range 50 {
			r.deliver(from, to, "x")
			r.recv(to)
		}
		r.equal(r.memInfo(to).Drops, uint32(0))
	}},
}
