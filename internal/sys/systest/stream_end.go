package systest

import (
	"syscall"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
)

var endCases = []assertion{
	{"end: CloseWrite ends one direction, behind what was written", func(r *rig) {
		r.eachStream(func(a, b int) {
			r.write(a, "last words")
			r.must(r.Kernel.CloseWrite(a))
			r.becomes(a, poll.Writable)
			r.writeErr(a, syscall.EPIPE)
			r.becomes(b, poll.Readable|poll.Writable)
			r.equal(r.read(b, 4), "last")
			r.equal(r.read(b, 6), " words")
			r.readEnd(b)
			r.becomes(b, poll.Readable|poll.Writable)
			r.readErr(a, syscall.EAGAIN)
			r.write(b, "answer")
			r.becomes(a, poll.Readable|poll.Writable)
			r.equal(r.read(a, 6), "answer")
			r.becomes(a, poll.Writable)
			r.must(r.Kernel.CloseWrite(a)) // again
		})
	}},
	{"end: both directions are over in either order, and both ends are hung up", func(r *rig) {
		r.eachStream(func(a, b int) {
			for _, ends := range [][2]int{{a, b}, r.another(a)} {
				first, second := ends[0], ends[1]
				r.write(second, "kept")
				r.must(r.Kernel.CloseWrite(first))
				r.readEnd(second)
				r.must(r.Kernel.CloseWrite(second))
				for _, fd := range []int{first, second} {
					r.becomes(fd, over)
				}
				r.equal(r.read(first, 4), "kept")
				for _, fd := range []int{first, second} {
					r.readEnd(fd)
					r.writeErr(fd, syscall.EPIPE)
					r.becomes(fd, over)
					r.pendingError(fd, 0)
				}
			}
		})
	}},
	{"end: the directions of TCP end at once from both sides", func(r *rig) {
		a, b := r.tcpPair()
		r.write(a, "1")
		r.write(b, "2")
		r.must(r.Kernel.CloseWrite(a))
		r.must(r.Kernel.CloseWrite(b))
		r.equal(r.read(a, 1), "2")
		r.equal(r.read(b, 1), "1")
		for _, fd := range []int{a, b} {
			r.becomes(fd, over)
			r.readEnd(fd)
		}
	}},
	{"end: after both directions TCP knows no peer, and a unix socket does", func(r *rig) {
		a, b := r.tcpPair()
		c, d := r.unixPair()
		for _, fd := range []int{a, b, c, d} {
			r.must(r.Kernel.CloseWrite(fd))
		}
		r.becomes(a, over)
		r.want(r.Kernel.CloseWrite(a), syscall.ENOTCONN)
		_, err := r.Kernel.RemoteAddr(a)
		r.want(err, syscall.ENOTCONN)
		r.must(r.Kernel.CloseWrite(c))
		r.remoteUnix(c)
	}},
	{"end: CloseWrite ends a Wait of the peer", func(r *rig) {
		r.eachStream(func(a, b int) {
			r.wakes(b, poll.Read, poll.Readable, func(k sys.Kernel, fd int) { _ = k.CloseWrite(fd) }, a)
			r.must(r.Kernel.CloseWrite(b))
			r.becomes(b, over)
		})
	}},
	{"end: the last CloseWrite ends a Wait that asks for nothing", func(r *rig) {
		r.eachStream(func(a, b int) {
			r.must(r.Kernel.CloseWrite(b))
			r.wakes(b, 0, poll.HungUp, func(k sys.Kernel, fd int) { _ = k.CloseWrite(fd) }, a)
		})
	}},
	{"end: a Close with nothing unread is an end of the stream, behind all that was written", func(r *rig) {
		r.eachStream(func(a, b int) {
			sent := r.fill(a)
			r.must(r.Kernel.Close(a))
			got := 0
			for got < sent {
				got += len(r.read(b, min(sent-got, 256<<10)))
			}
			r.readEnd(b)
		})
	}},
	{"end: what was written with more goes out before the end", func(r *rig) {
		r.eachStream(func(a, b int) {
			_, err := r.Kernel.Write(a, vector("to be "), true)
			r.must(err)
			_, err = r.Kernel.Write(b, vector("answered"), true)
			r.must(err)
			r.must(r.Kernel.CloseWrite(b))
			r.equal(r.read(a, 8), "answered")
			r.readEnd(a)
			_, err = r.Kernel.Write(a, vector("continued"), true)
			r.must(err)
			r.must(r.Kernel.Close(a))
			r.equal(r.read(b, 15), "to be continued")
			r.readEnd(b)
		})
	}},
	{"end: TCP learns by its answer that the peer is closed: EPIPE", func(r *rig) {
		a, b := r.tcpPair()
		r.must(r.Kernel.Close(a))
		r.becomes(b, poll.Readable|poll.Writable)
		r.readEnd(b)
		r.write(b, "anybody?")
		r.becomes(b, everything)
		r.writeErr(b, syscall.EPIPE)
		r.becomes(b, over)
		r.writeErr(b, syscall.EPIPE)
		r.readEnd(b)
	}},
	{"end: what answers a Write to a closed TCP peer is no error of Read", func(r *rig) {
		a, b := r.tcpPair()
		r.must(r.Kernel.Close(a))
		r.becomes(b, poll.Readable|poll.Writable)
		r.write(b, "anybody?")
		r.becomes(b, everything)
		r.readEnd(b)
		r.pendingError(b, syscall.EPIPE)
		r.pendingError(b, 0)
		r.becomes(b, over)
	}},
	{"end: a unix socket is hung up at once when the peer is closed, with data left", func(r *rig) {
		a, b := r.unixPair()
		r.write(a, "left")
		r.must(r.Kernel.Close(a))
		for _, text := range []string{"l", "ef", "t"} {
			r.becomes(b, over)
			r.equal(r.read(b, len(text)), text)
		}
		r.readEnd(b)
		r.becomes(b, over)
		r.pendingError(b, 0)
		r.writeErr(b, syscall.EPIPE)
		r.writeErr(b, syscall.EPIPE)
		r.must(r.Kernel.CloseWrite(b))
	}},
	{"end: a Close with something unread resets: once, then the end of the stream", func(r *rig) {
		r.eachStream(func(a, b int) {
			r.write(b, "unread")
			r.await(a, poll.Readable)
			r.must(r.Kernel.Close(a))
			r.becomes(b, everything)
			r.readErr(b, syscall.ECONNRESET)
			r.becomes(b, over)
			r.readEnd(b)
			r.writeErr(b, syscall.EPIPE)
		})
	}},
	{"end: a reset leaves what came before it", func(r *rig) {
		r.eachStream(func(a, b int) {
			r.write(a, "left")
			r.write(b, "unread")
			r.await(a, poll.Readable)
			r.await(b, poll.Readable)
			r.must(r.Kernel.Close(a))
			for _, text := range []string{"l", "ef", "t"} {
				r.becomes(b, everything)
				r.equal(r.read(b, len(text)), text)
			}
			r.becomes(b, everything)
			r.readErr(b, syscall.ECONNRESET)
			r.becomes(b, over)
			r.readEnd(b)
		})
	}},
	{"end: Linger 0 resets: once, then the end of the stream", func(r *rig) {
		a, b := r.tcpPair()
		r.reset(a)
		r.becomes(b, everything)
		r.readErr(b, syscall.ECONNRESET)
		r.becomes(b, over)
		r.readEnd(b)
		r.writeErr(b, syscall.EPIPE)
		r.want(r.Kernel.CloseWrite(b), syscall.ENOTCONN)
		_, err := r.Kernel.RemoteAddr(b)
		r.want(err, syscall.ENOTCONN)
	}},
	{"end: Linger 0 is nothing to a unix socket, nor is another Linger to TCP", func(r *rig) {
		a, b := r.unixPair()
		r.reset(a)
		r.readEnd(b)
		a, b = r.tcpPair()
		r.setOption(a, sys.Linger, 0)
		r.setOption(a, sys.Linger, -1)
		r.write(a, "x")
		r.must(r.Kernel.Close(a))
		r.equal(r.read(b, 1), "x")
		r.readEnd(b)
	}},
	{"end: a reset is told to Write, once, and then to nobody", func(r *rig) {
		a, b := r.tcpPair()
		r.reset(a)
		r.becomes(b, everything)
		r.writeErr(b, syscall.ECONNRESET)
		r.becomes(b, over)
		r.writeErr(b, syscall.EPIPE)
		r.readEnd(b)
	}},
	{"end: a reset that SocketError took is told to nobody else", func(r *rig) {
		a, b := r.tcpPair()
		r.reset(a)
		r.becomes(b, everything)
		r.pendingError(b, syscall.ECONNRESET)
		r.becomes(b, over)
		r.writeErr(b, syscall.EPIPE)
		r.readEnd(b)
	}},
	{"end: a reset of a unix socket is told by Read, and not by Write", func(r *rig) {
		a, b := r.unixPair()
		r.write(b, "unread")
		r.must(r.Kernel.Close(a))
		r.writeErr(b, syscall.EPIPE)
		r.becomes(b, everything)
		r.readErr(b, syscall.ECONNRESET)
		r.becomes(b, over)
	}},
	{"end: a reset behind the end of the stream is no error of Read", func(r *rig) {
		a, b := r.tcpPair()
		r.must(r.Kernel.CloseWrite(a))
		r.await(b, poll.Readable)
		r.reset(a)
		r.becomes(b, everything)
		r.readEnd(b)
		r.writeErr(b, syscall.EPIPE)
	}},
	{"end: a reset of one that ended its own direction is told", func(r *rig) {
		a, b := r.tcpPair()
		r.must(r.Kernel.CloseWrite(b))
		r.readEnd(a)
		r.reset(a)
		r.becomes(b, everything)
		r.readErr(b, syscall.ECONNRESET)
		r.readEnd(b)
		r.writeErr(b, syscall.EPIPE)
	}},
	{"end: a reset ends a Wait, whatever it asks for", func(r *rig) {
		for _, want := range []poll.Interest{0, poll.Read, poll.Write, readWrite} {
			a, b := r.tcpPair()
			r.setOption(a, sys.Linger, 0)
			if want&poll.Write != 0 {
				r.fill(b) // or it would be writable
			}
			r.wakes(b, want, poll.Failed|poll.HungUp, func(k sys.Kernel, fd int) { _ = k.Close(fd) }, a)
		}
	}},
	{"end: a closed peer ends a Wait of a full unix socket", func(r *rig) {
		a, b := r.unixPair()
		r.fill(b)
		r.wakes(b, poll.Write, poll.Writable|poll.Failed|poll.HungUp, func(k sys.Kernel, fd int) { _ = k.Close(fd) }, a)
	}},
}

// another makes a connection of the kind that fd is of, the other way round.
func (r *rig) another(fd int) [2]int {
	r.Helper()
	pair := r.tcpPair
	if r.describe(fd).Kind == sys.UnixStream {
		pair = r.unixPair
	}
	a, b := pair()
	return [2]int{b, a}
}
