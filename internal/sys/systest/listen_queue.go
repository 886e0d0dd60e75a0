package systest

import (
	"syscall"
	"time"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
)

var queueCases = []assertion{
	{"backlog: TCP takes one more than was asked for, and the next waits until one is accepted", func(r *rig) {
		l := r.listener("127.0.0.1:0", 1)
		r.dial(r.local(l))
		r.dial(r.local(l))
		time.Sleep(2 * time.Millisecond) // both are in the queue
		waits := r.connecting(r.local(l))
		time.Sleep(2 * time.Millisecond)
		r.becomes(waits, 0)
		r.pendingError(waits, 0)
		r.accept(l)
		r.finish(waits)
		r.accept(l)
		_, peer := r.acceptFrom(l)
		r.equal(peer, r.local(waits))
	}},
	{"backlog: one that waits for its place is refused when the listener is closed", func(r *rig) {
		l := r.listener("127.0.0.1:0", 0)
		has := r.dial(r.local(l))
		r.await(l, poll.Readable)
		waits := r.connecting(r.local(l))
		r.must(r.Kernel.Close(l))
		r.becomes(has, everything)
		r.readErr(has, syscall.ECONNRESET)
		r.refusedConnect(waits)
		r.becomes(waits, over)
	}},
	{"backlog: a unix listener takes one more than was asked for, and the next is told EAGAIN", func(r *rig) {
		for _, backlog := range []int{0, 1, 3} {
			name := r.path()
			l := r.unixListener(name, backlog)
			for range backlog + 1 {
				r.unixDial(name)
			}
			fd := r.unixSocket(sys.UnixStream)
			for range 2 {
				r.want(r.Kernel.ConnectUnix(fd, name), syscall.EAGAIN)
			}
			r.becomes(fd, poll.Writable|poll.HungUp)
			r.accept(l)
			r.must(r.Kernel.ConnectUnix(fd, name))
			r.becomes(fd, poll.Writable)
		}
	}},
	{"backlog: Listen again changes it", func(r *rig) {
		name := r.path()
		tcp, unix := r.listener("127.0.0.1:0", 0), r.unixListener(name, 0)
		for _, l := range []int{tcp, unix} {
			r.must(r.Kernel.Listen(l, 8))
		}
		for range 5 {
			r.dial(r.local(tcp))
			r.unixDial(name)
		}
		r.must(r.Kernel.Listen(unix, 1))
		r.want(r.Kernel.ConnectUnix(r.unixSocket(sys.UnixStream), name), syscall.EAGAIN)
		for range 5 {
			r.accept(tcp)
			r.accept(unix)
		}
	}},
	{"backlog: one that is gone already has its place until it is accepted", func(r *rig) {
		name := r.path()
		l := r.unixListener(name, 0)
		r.must(r.Kernel.Close(r.unixDial(name)))
		fd := r.unixSocket(sys.UnixStream)
		r.want(r.Kernel.ConnectUnix(fd, name), syscall.EAGAIN)
		r.readEnd(r.accept(l))
		r.must(r.Kernel.ConnectUnix(fd, name))
	}},
	{"backlog: closing a listener resets what is in its queue", func(r *rig) {
		name := r.path()
		tcp, unix := r.listener("127.0.0.1:0", 4), r.unixListener(name, 4)
		clients := []int{r.dial(r.local(tcp)), r.dial(r.local(tcp)), r.unixDial(name), r.unixDial(name)}
		r.write(clients[1], "early")
		r.write(clients[3], "early")
		r.await(tcp, poll.Readable)
		for _, l := range []int{tcp, unix} {
			r.must(r.Kernel.Close(l))
		}
		for _, fd := range clients {
			r.becomes(fd, everything)
			r.readErr(fd, syscall.ECONNRESET)
			r.becomes(fd, over)
			r.readEnd(fd)
			r.writeErr(fd, syscall.EPIPE)
		}
	}},
	{"backlog: closing a listener leaves what was accepted", func(r *rig) {
		r.eachStream(func(a, b int) {
			r.write(a, "1")
			r.write(b, "2")
			r.equal(r.read(b, 1), "1")
			r.equal(r.read(a, 1), "2")
		})
	}},
	{"backlog: a duplicate of a listener is the same one, and keeps it open", func(r *rig) {
		l := r.listener("127.0.0.1:0", 4)
		dup := r.duplicate(l)
		a, b := r.dial(r.local(l)), r.dial(r.local(l))
		_, peer := r.acceptFrom(dup)
		r.equal(peer, r.local(a))
		r.must(r.Kernel.Close(l))
		_, peer = r.acceptFrom(dup)
		r.equal(peer, r.local(b))
		r.dial(r.local(dup))
		r.accept(dup)
	}},
	{"defer: a connection comes to the listener with its first bytes", func(r *rig) {
		l := r.listener("127.0.0.1:0", 4)
		r.setOption(l, sys.DeferAccept, 30)
		p := r.poller()
		r.must(p.Add(l, poll.Read, 1))
		a := r.dial(r.local(l))
		time.Sleep(2 * time.Millisecond)
		r.quiet(p)
		r.acceptErr(l, syscall.EAGAIN)
		r.write(a, "first")
		r.equal(r.waitOne(p).Ready, poll.Readable)
		b, peer := r.acceptFrom(l)
		r.equal(peer, r.local(a))
		s, err := r.tryRead(b, 16)
		r.must(err)
		r.equal(s, "first")
		r.quiet(p)
	}},
}

// What a connection is ready for that was reset, and once the error is taken.
const (
	over       = poll.Readable | poll.Writable | poll.HungUp
	everything = over | poll.Failed
)
