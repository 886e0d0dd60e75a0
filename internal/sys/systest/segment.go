package systest

import (
	"strings"
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

// Every kernel takes that many segments, and none takes more than tooManySegments-1 (UDP_MAX_SEGMENTS is 64, or
// 128 in newer kernels).
const (
	surelySegments  = 64
	tooManySegments = 129
)

var segmentCases = []assertion{
	{"segment: a train comes as one message to a socket that takes joined ones", func(r *rig) {
		for _, ip := range []string{"127.0.0.1:0", "[::1]:0"} {
			from, to := r.segmenting(ip), r.bound(ip)
			r.turnOn(to, sys.RecvJoined)
			for _, payload := range []string{"aabbcc", "aabbc", "aab"} { // the last one may be shorter
				r.sendWith(from, payload, r.local(to), sys.Control{Segment: 2})
				m := r.recv(to)
				r.equal(string(m.Buf), payload)
				r.equal(m.Addr, r.local(from))
				r.equal(m.Control, sys.Control{Segment: 2})
			}
			r.silent(to)
		}
	}},
	{"segment: a train comes as single datagrams to any other socket", func(r *rig) {
		for _, ip := range []string{"127.0.0.1:0", "[::1]:0"} {
			from, to := r.segmenting(ip), r.bound(ip)
			r.sendWith(from, "aabbc", r.local(to), sys.Control{Segment: 2})
			for _, want := range []string{"aa", "bb", "c"} {
				m := r.recv(to)
				r.equal(string(m.Buf), want)
				r.equal(m.Addr, r.local(from))
				r.equal(m.Control, sys.Control{})
			}
			r.silent(to)
		}
	}},
	{"segment: single datagrams of a train each tell where they came to", func(r *rig) {
		from, to := r.segmenting("127.0.0.1:0"), r.bound("0.0.0.0:0")
		r.turnOn(to, sys.RecvLocal, sys.RecvTOS)
		r.sendWith(from, "aab", at("127.0.0.2", r.local(to)), sys.Control{Segment: 2, TrafficClass: 3, HasTrafficClass: true})
		for _, want := range []string{"aa", "b"} {
			m := r.recv(to)
			r.equal(string(m.Buf), want)
			r.equal(m.Control.Local.String(), "127.0.0.2")
			r.equal(m.Control.TrafficClass, uint8(3))
		}
	}},
	{"segment: none, and one that is not smaller than what is sent, are plain datagrams", func(r *rig) {
		for _, ip := range []string{"127.0.0.1:0", "[::1]:0"} {
			from, to := r.segmenting(ip), r.bound(ip)
			r.turnOn(to, sys.RecvJoined)
			for _, c := range []struct {
				payload string
				segment uint16
			}{{"ab", 0}, {"ab", 2}, {"ab", 3}, {"ab", 60_000}, {"", 2}} {
				r.sendWith(from, c.payload, r.local(to), sys.Control{Segment: c.segment})
				m := r.recv(to)
				r.equal(string(m.Buf), c.payload)
				r.equal(m.Control, sys.Control{})
			}
		}
	}},
	{"segment: 64 always pass, 129 never", func(r *rig) {
		for _, ip := range []string{"127.0.0.1:0", "[::1]:0"} {
			for _, size := range []int{1, 100} {
				from, to := r.segmenting(ip), r.bound(ip)
				r.turnOn(to, sys.RecvJoined)
				c := sys.Control{Segment: uint16(size)}
				r.sendWith(from, strings.Repeat("x", surelySegments*size), r.local(to), c)
				m := r.recv(to)
				r.equal(len(m.Buf), surelySegments*size)
				r.equal(m.Control, c)
				r.want(r.trySendWith(from, make([]byte, tooManySegments*size), r.local(to), c), syscall.EINVAL)
				r.silent(to)
			}
		}
	}},
	{"segment: all of a train together are no larger than one datagram may be", func(r *rig) {
		for ip, most := range map[string]int{"127.0.0.1:0": 65507, "[::1]:0": 65527} {
			from, to := r.segmenting(ip), r.bound(ip)
			r.turnOn(to, sys.RecvJoined)
			c := sys.Control{Segment: 1200}
			r.sendWith(from, strings.Repeat("x", most), r.local(to), c)
			for left := most; left > 0; { // Linux cuts one apart that its device finds too large
				m := r.recv(to)
				if left -= len(m.Buf); len(m.Buf) > 1200 {
					r.equal(m.Control, c)
				}
			}
			for _, size := range []int{most + 1, 65_536, 70_000} {
				r.want(r.trySendWith(from, make([]byte, size), r.local(to), c), syscall.EMSGSIZE)
			}
			r.silent(to)
		}
	}},
	{"segment: what does not fit its slot of a train is cut, told, and gone", func(r *rig) {
		from, to := r.segmenting("127.0.0.1:0"), r.bound("127.0.0.1:0")
		r.turnOn(to, sys.RecvJoined)
		before := r.memInfo(to).RecvQueued
		r.sendWith(from, "aabbcc", r.local(to), sys.Control{Segment: 2})
		r.eventually("the train arrives", func() bool { return r.memInfo(to).RecvQueued > before })
		b := sys.NewRecvBatch(2, 3)
		n, err := r.Kernel.Recv(to, b, 2)
		r.must(err)
		r.equal(n, 1)
		r.equal(string(b.Msgs[0].Buf), "aab")
		r.equal(b.Msgs[0].Flags, sys.Truncated)
		r.equal(b.Msgs[0].Control.Segment, uint16(2))
		r.silent(to)
	}},
	{"segment: trains and datagrams of a batch stay apart and in order", func(r *rig) {
		from, to := r.segmenting("127.0.0.1:0"), r.bound("127.0.0.1:0")
		r.turnOn(to, sys.RecvJoined)
		b := r.batch("aab", r.local(to), "cc", r.local(to), "ddde", r.local(to))
		b.Msgs[0].Control.Segment = 2
		b.Msgs[2].Control.Segment = 3
		n, err := r.Kernel.Send(from, b, 0, 3)
		r.must(err)
		r.equal(n, 3)
		for i, want := range []string{"aab", "cc", "ddde"} {
			m := r.recv(to)
			r.equal(string(m.Buf), want)
			r.equal(m.Control.Segment, b.Msgs[i].Control.Segment)
		}
	}},
	{"segment: a train takes less of the buffer than its datagrams", func(r *rig) {
		from, joined, single := r.segmenting("127.0.0.1:0"), r.bound("127.0.0.1:0"), r.bound("127.0.0.1:0")
		r.turnOn(joined, sys.RecvJoined)
		for _, to := range []int{joined, single} {
			r.sendWith(from, strings.Repeat("x", 6000), r.local(to), sys.Control{Segment: 1000})
			r.eventually("all of it arrives", func() bool { return r.memInfo(to).RecvQueued > 6000 })
		}
		r.eventually("the single ones are charged more", func() bool {
			return r.memInfo(single).RecvQueued > r.memInfo(joined).RecvQueued
		})
	}},
	{"segment: a train to the dead is refused once", func(r *rig) {
		fd := r.segmenting("127.0.0.1:0")
		r.must(r.Kernel.Connect(fd, r.deadPort()))
		r.sendWith(fd, "aabbc", none, sys.Control{Segment: 2})
		r.eventually("the error comes", func() bool { return r.option(fd, sys.SocketError) == int(syscall.ECONNREFUSED) })
		r.silent(fd)
	}},
	{"segment: SegmentSize is for all that is sent, and a datagram's own goes before", func(r *rig) {
		from, to := r.segmenting("127.0.0.1:0"), r.bound("127.0.0.1:0")
		r.turnOn(to, sys.RecvJoined)
		r.setOption(from, sys.SegmentSize, 2)
		r.equal(r.option(from, sys.SegmentSize), 2)
		for _, c := range []struct{ own, want uint16 }{{0, 2}, {3, 3}} {
			r.sendWith(from, "aabbc", r.local(to), sys.Control{Segment: c.own})
			r.equal(r.recv(to).Control.Segment, c.want)
		}
		r.setOption(from, sys.SegmentSize, 0)
		r.send(from, "aabbc", r.local(to))
		r.equal(r.recv(to).Control.Segment, uint16(0))
	}},
	{"segment: a pending error comes before what is wrong with the segments", func(r *rig) {
		fd := r.refusedBy(r.deadPort())
		r.segmentable(fd)
		live := r.local(r.bound("127.0.0.1:0"))
		c := sys.Control{Segment: 1}
		r.want(r.trySendWith(fd, make([]byte, 65_508), live, c), syscall.EMSGSIZE)
		r.want(r.trySendWith(fd, make([]byte, tooManySegments), live, c), syscall.ECONNREFUSED)
		r.want(r.trySendWith(fd, make([]byte, tooManySegments), live, c), syscall.EINVAL)
	}},
}

// segmenting makes a socket that sends segments, where the kernel has that.
func (r *rig) segmenting(local string) int {
	r.Helper()
	fd := r.bound(local)
	r.segmentable(fd)
	return fd
}

func (r *rig) segmentable(fd int) {
	r.Helper()
	if _, err := r.Kernel.GetOption(fd, sys.SegmentSize); err != nil {
		r.Skipf("no segments here: %v", err)
	}
}
