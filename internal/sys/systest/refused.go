package systest

import (
	"net/netip"
	"syscall"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
)

var refusedCases = []assertion{
	{"refused: the next receive says that the peer is dead, once", func(r *rig) {
		fd := r.refusedBy(r.deadPort())
		r.recvErr(fd, syscall.ECONNREFUSED)
		r.silent(fd)
	}},
	{"refused: the next send says so, is not sent itself, and the one after is", func(r *rig) {
		fd, live := r.refusedBy(r.deadPort()), r.bound("127.0.0.1:0")
		r.want(r.trySend(fd, []byte("lost"), r.local(live)), syscall.ECONNREFUSED)
		r.send(fd, "sent", r.local(live))
		r.equal(r.recvText(live), "sent")
		r.silent(fd)
	}},
	{"refused: a batch stops there, and nobody is told why", func(r *rig) {
		fd, live := r.connected(r.deadPort()), r.bound("127.0.0.1:0")
		first := r.batch("to the dead", none)
		_, err := r.Kernel.Send(fd, first, 0, 1)
		r.must(err)
		r.await(fd, poll.Failed)
		batch := r.batch("fails", r.local(live), "1", r.local(live))
		n, err := r.Kernel.Send(fd, batch, 0, 2)
		r.equal(n, 0)
		r.want(err, syscall.ECONNREFUSED)
		n, err = r.Kernel.Send(fd, batch, 0, 2)
		r.must(err)
		r.equal(n, 2)
		r.equal(r.recvText(live)+r.recvText(live), "fails1")
	}},
	{"refused: what is wrong with a datagram itself is told first", func(r *rig) {
		fd := r.refusedBy(r.deadPort())
		r.want(r.trySend(fd, make([]byte, 65508), none), syscall.EMSGSIZE)
		r.want(r.trySend(fd, nil, addr("127.0.0.1:0")), syscall.EINVAL)
		r.recvErr(fd, syscall.ECONNREFUSED)
	}},
	{"refused: SocketError reads it and clears it", func(r *rig) {
		fd := r.refusedBy(r.deadPort())
		r.equal(r.option(fd, sys.SocketError), int(syscall.ECONNREFUSED))
		r.equal(r.option(fd, sys.SocketError), 0)
		r.silent(fd)
	}},
	{"refused: data queued before stays, behind the error", func(r *rig) {
		peer := r.bound("127.0.0.1:0")
		fd := r.connected(r.local(peer))
		r.deliver(peer, fd, "last words")
		r.must(r.Kernel.Close(peer))
		r.send(fd, "too late", none)
		r.await(fd, poll.Failed|poll.Readable)
		r.recvErr(fd, syscall.ECONNREFUSED)
		r.equal(r.recvText(fd), "last words")
		r.silent(fd)
	}},
	{"refused: connect and dissolve leave the error where it is", func(r *rig) {
		fd := r.refusedBy(r.deadPort())
		r.must(r.Kernel.Connect(fd, r.local(r.bound("127.0.0.1:0"))))
		r.must(r.Kernel.Connect(fd, none))
		r.recvErr(fd, syscall.ECONNREFUSED)
	}},
	{"refused: an unconnected socket does not hear of it", func(r *rig) {
		fd, fence := r.bound("127.0.0.1:0"), r.bound("127.0.0.1:0")
		r.send(fd, "x", r.deadPort())
		r.deliver(fd, fence, "y")
		r.silent(fd)
		r.equal(r.option(fd, sys.SocketError), 0)
	}},
	{"refused: a connected socket hears of its own peer only", func(r *rig) {
		dead := r.deadPort()
		fd := r.connected(r.local(r.bound("127.0.0.1:0")))
		fence := r.bound("127.0.0.1:0")
		r.send(fd, "x", dead)
		r.deliver(fd, fence, "y")
		r.silent(fd)
		r.must(r.Kernel.Connect(fd, dead))
		r.send(fd, "x", dead)
		r.await(fd, poll.Failed)
		r.recvErr(fd, syscall.ECONNREFUSED)
	}},
	{"refused: a peer that is connected elsewhere does not listen", func(r *rig) {
		peer := r.connected(r.local(r.bound("127.0.0.1:0")))
		fd := r.connected(r.local(peer))
		r.send(fd, "x", none)
		r.await(fd, poll.Failed)
		r.recvErr(fd, syscall.ECONNREFUSED)
		r.silent(peer)
	}},
	{"refused: over IPv6 and from a mapped address too", func(r *rig) {
		for _, ip := range []string{"::1", "::ffff:127.0.0.1"} {
			fd := r.socket(sys.IPv6)
			r.must(r.Kernel.Connect(fd, at(ip, r.deadPort())))
			r.send(fd, "x", none)
			r.await(fd, poll.Failed)
			r.recvErr(fd, syscall.ECONNREFUSED)
		}
	}},
}

// refusedBy makes a socket with the error of a dead peer pending.
func (r *rig) refusedBy(dead netip.AddrPort) int {
	r.Helper()
	fd := r.connected(dead)
	r.send(fd, "anybody?", none)
	r.await(fd, poll.Failed)
	return fd
}
