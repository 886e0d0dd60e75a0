package systest

import (
	"strings"
	"syscall"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
)

var unixgramCases = []assertion{
	{"unixgram: datagrams come whole and in their order, with the sender's name", func(r *rig) {
		for _, from := range []string{r.path(), r.abstract()} {
			to := r.path()
			a, b := r.boundUnix(sys.Unixgram, from), r.boundUnix(sys.Unixgram, to)
			for _, text := range []string{"first", "2nd", "the third"} {
				r.sendUnix(a, text, to)
			}
			r.recvUnix(b, "first", from)
			r.recvUnix(b, "2nd", from)
			r.recvUnix(b, "the third", from)
			r.recvUnixErr(b, syscall.EAGAIN)
			r.sendUnix(b, "answer", from)
			r.recvUnix(a, "answer", to)
		}
	}},
	{"unixgram: a sender without a name has none", func(r *rig) {
		to := r.path()
		b := r.boundUnix(sys.Unixgram, to)
		r.sendUnix(r.unixSocket(sys.Unixgram), "x", to)
		r.recvUnix(b, "x", "")
	}},
	{"unixgram: an empty datagram is one", func(r *rig) {
		to := r.path()
		a, b := r.unixSocket(sys.Unixgram), r.boundUnix(sys.Unixgram, to)
		for _, text := range []string{"before", "", "after"} {
			r.sendUnix(a, text, to)
		}
		r.recvUnix(b, "before", "")
		r.recvUnix(b, "", "")
		r.recvUnix(b, "after", "")
		r.sendUnix(a, "", to)
		r.becomes(b, poll.Readable|poll.Writable)
		r.recvUnix(b, "", "")
		r.recvUnixErr(b, syscall.EAGAIN)
	}},
	{"unixgram: what does not fit is cut, told, and gone", func(r *rig) {
		from, to := r.path(), r.path()
		a, b := r.boundUnix(sys.Unixgram, from), r.boundUnix(sys.Unixgram, to)
		for _, text := range []string{"12345678", "123456789", "1"} {
			r.sendUnix(a, text, to)
		}
		for _, c := range []struct {
			want  string
			flags sys.Flags
		}{{"12345678", 0}, {"12345678", sys.Truncated}, {"1", 0}} {
			buf := make([]byte, 8)
			n, name, flags, err := r.Kernel.RecvUnix(b, buf)
			r.must(err)
			r.equal(string(buf[:n]), c.want)
			r.equal(name, from)
			r.equal(flags, c.flags)
		}
	}},
	{"unixgram: a large datagram comes whole, and one larger than the buffer is EMSGSIZE", func(r *rig) {
		to := r.path()
		a, b := r.unixSocket(sys.Unixgram), r.boundUnix(sys.Unixgram, to)
		large := string(pattern(60_000))
		r.sendUnix(a, large, to)
		buf := make([]byte, len(large)+1)
		n, _, flags, err := r.Kernel.RecvUnix(b, buf)
		r.must(err)
		r.equal(flags, sys.Flags(0))
		r.equal(string(buf[:n]), large)
		huge := []byte(strings.Repeat("x", 2*r.option(a, sys.SendBuffer)))
		r.want(r.Kernel.SendUnix(a, huge, to), syscall.EMSGSIZE)
		r.recvUnixErr(b, syscall.EAGAIN)
	}},
	{"unixgram: a peer is the default destination, and others may be named", func(r *rig) {
		to, other := r.path(), r.path()
		b, c := r.boundUnix(sys.Unixgram, to), r.boundUnix(sys.Unixgram, other)
		a := r.connectedUnix(sys.Unixgram, to)
		r.equal(r.remoteUnix(a), to)
		r.noRemoteUnix(b)
		r.sendUnix(a, "to the peer", "")
		r.sendUnix(a, "to another", other)
		r.recvUnix(b, "to the peer", "")
		r.recvUnix(c, "to another", "")
	}},
	{"unixgram: ConnectUnix again takes another peer, and the empty name none", func(r *rig) {
		first, second := r.path(), r.path()
		b, c := r.boundUnix(sys.Unixgram, first), r.boundUnix(sys.Unixgram, second)
		own := r.path()
		a := r.boundUnix(sys.Unixgram, own)
		for _, name := range []string{first, second} {
			r.must(r.Kernel.ConnectUnix(a, name))
			r.equal(r.remoteUnix(a), name)
		}
		r.sendUnix(a, "x", "")
		r.recvUnix(c, "x", own)
		r.recvUnixErr(b, syscall.EAGAIN)
		r.must(r.Kernel.ConnectUnix(a, ""))
		r.noRemoteUnix(a)
		r.equal(r.localUnix(a), own)
		r.sendUnixErr(a, "", syscall.ENOTCONN)
		r.sendUnix(b, "welcome now", own)
		r.recvUnix(a, "welcome now", first)
		r.must(r.Kernel.ConnectUnix(r.unixSocket(sys.Unixgram), ""))
	}},
	{"unixgram: a socket with a peer hears that peer alone: EPERM for others", func(r *rig) {
		own, peer := r.path(), r.path()
		a, b := r.boundUnix(sys.Unixgram, own), r.boundUnix(sys.Unixgram, peer)
		r.must(r.Kernel.ConnectUnix(a, peer))
		stranger := r.unixSocket(sys.Unixgram)
		r.sendUnixErr(stranger, own, syscall.EPERM)
		r.want(r.Kernel.ConnectUnix(stranger, own), syscall.EPERM)
		r.sendUnix(b, "from the peer", own)
		r.recvUnix(a, "from the peer", peer)
		r.recvUnixErr(a, syscall.EAGAIN)
	}},
	{"unixgram: one that takes another peer drops what it has of the old one, which is told ECONNRESET once", func(r *rig) {
		own, peer, other := r.path(), r.path(), r.path()
		a, b := r.boundUnix(sys.Unixgram, own), r.boundUnix(sys.Unixgram, peer)
		r.boundUnix(sys.Unixgram, other)
		r.must(r.Kernel.ConnectUnix(a, peer))
		r.must(r.Kernel.ConnectUnix(b, own))
		r.sendUnix(b, "of the old peer", "")
		r.must(r.Kernel.ConnectUnix(a, other))
		r.recvUnixErr(a, syscall.EAGAIN)
		r.becomes(b, poll.Writable|poll.Failed)
		r.recvUnixErr(b, syscall.ECONNRESET)
		r.becomes(b, poll.Writable)
		r.recvUnixErr(b, syscall.EAGAIN)
		r.sendUnixErr(b, "", syscall.EPERM)
	}},
	{"unixgram: the old peer of one that took another is told nothing where nothing was dropped", func(r *rig) {
		own, peer, other := r.path(), r.path(), r.path()
		a, b := r.boundUnix(sys.Unixgram, own), r.boundUnix(sys.Unixgram, peer)
		r.boundUnix(sys.Unixgram, other)
		r.must(r.Kernel.ConnectUnix(a, peer))
		r.must(r.Kernel.ConnectUnix(b, own))
		r.must(r.Kernel.ConnectUnix(a, other))
		r.becomes(b, poll.Writable)
		r.recvUnixErr(b, syscall.EAGAIN)
	}},
	{"unixgram: errors of a destination", func(r *rig) {
		a := r.unixSocket(sys.Unixgram)
		r.sendUnixErr(a, "", syscall.ENOTCONN)
		r.sendUnixErr(a, r.path(), syscall.ENOENT)
		r.sendUnixErr(a, r.abstract(), syscall.ECONNREFUSED)
		r.want(r.Kernel.ConnectUnix(a, r.path()), syscall.ENOENT)
		r.noRemoteUnix(a)
		closed := r.path()
		r.must(r.Kernel.Close(r.boundUnix(sys.Unixgram, closed)))
		r.sendUnixErr(a, closed, syscall.ECONNREFUSED)
		r.becomes(a, poll.Writable)
		r.pendingError(a, 0)
	}},
	{"unixgram: a closed peer is ECONNREFUSED once, then there is none", func(r *rig) {
		own, peer := r.path(), r.path()
		a, b := r.boundUnix(sys.Unixgram, own), r.boundUnix(sys.Unixgram, peer)
		r.must(r.Kernel.ConnectUnix(a, peer))
		r.must(r.Kernel.ConnectUnix(b, own))
		r.must(r.Kernel.Close(b))
		r.becomes(a, poll.Writable)
		r.recvUnixErr(a, syscall.EAGAIN)
		r.equal(r.remoteUnix(a), peer)
		r.sendUnixErr(a, "", syscall.ECONNREFUSED)
		r.sendUnixErr(a, "", syscall.ENOTCONN)
		r.noRemoteUnix(a)
		r.recvUnixErr(a, syscall.EAGAIN)
	}},
	{"unixgram: what was sent outlives its sender", func(r *rig) {
		from, to := r.path(), r.path()
		a, b := r.boundUnix(sys.Unixgram, from), r.boundUnix(sys.Unixgram, to)
		r.sendUnix(a, "last words", to)
		r.must(r.Kernel.Close(a))
		r.recvUnix(b, "last words", from)
		r.recvUnixErr(b, syscall.EAGAIN)
	}},
	{"unixgram: a full queue is EAGAIN, for which a connected sender can wait alone", func(r *rig) {
		to := r.path()
		b := r.boundUnix(sys.Unixgram, to)
		stranger, peer := r.unixSocket(sys.Unixgram), r.connectedUnix(sys.Unixgram, to)
		r.becomes(peer, poll.Writable)
		if r.fillUnix(stranger, to) == 0 {
			r.Fatal("there is no room at all")
		}
		r.becomes(stranger, poll.Writable)
		r.sendUnixErr(peer, "", syscall.EAGAIN)
		r.becomes(peer, 0)
		r.wakes(peer, poll.Write, poll.Writable, func(k sys.Kernel, fd int) {
			buf := make([]byte, 8)
			for _, _, _, err := k.RecvUnix(fd, buf); err == nil; _, _, _, err = k.RecvUnix(fd, buf) {
			}
		}, b)
		r.sendUnix(peer, "y", "")
		r.recvUnix(b, "y", "")
	}},
	{"unixgram: a connected sender of a full queue hears that the receiver is closed", func(r *rig) {
		to := r.path()
		b, a := r.boundUnix(sys.Unixgram, to), r.connectedUnix(sys.Unixgram, to)
		r.fillUnix(a, "")
		r.becomes(a, 0)
		r.wakes(a, poll.Write, poll.Writable, func(k sys.Kernel, fd int) { _ = k.Close(fd) }, b)
		r.sendUnixErr(a, "", syscall.ECONNREFUSED)
	}},
	{"unixgram: the own buffer is EAGAIN too, until what is in it was received", func(r *rig) {
		to := r.path()
		b, a := r.boundUnix(sys.Unixgram, to), r.unixSocket(sys.Unixgram)
		r.setOption(a, sys.SendBuffer, 1)
		large := []byte(strings.Repeat("x", 1000))
		sent := 0
		for err := error(nil); err == nil; sent++ {
			if err = r.Kernel.SendUnix(a, large, to); err != nil {
				r.want(err, syscall.EAGAIN)
			}
		}
		if sent == 1 {
			r.Fatal("there is no room at all")
		}
		r.becomes(a, 0)
		r.sendUnix(r.unixSocket(sys.Unixgram), "of another", to)
		for range sent - 1 {
			_, _, _, err := r.Kernel.RecvUnix(b, make([]byte, len(large)))
			r.must(err)
		}
		r.recvUnix(b, "of another", "")
		r.becomes(a, poll.Writable)
	}},
	{"unixgram: a datagram ends a Wait, and what is left is told again", func(r *rig) {
		to := r.path()
		b, a := r.boundUnix(sys.Unixgram, to), r.unixSocket(sys.Unixgram)
		r.wakes(b, poll.Read, poll.Readable, func(k sys.Kernel, fd int) { _ = k.SendUnix(fd, []byte("1"), to) }, a)
		r.sendUnix(a, "2", to)
		p := r.poller()
		r.must(p.Add(b, poll.Read, 1))
		for _, text := range []string{"1", "2"} {
			for range 2 {
				r.equal(r.waitOne(p), poll.Event{Token: 1, Ready: poll.Readable})
			}
			r.recvUnix(b, text, "")
		}
		r.quiet(p)
	}},
	{"unixgram: a duplicate is the same socket", func(r *rig) {
		to := r.path()
		b, a := r.boundUnix(sys.Unixgram, to), r.unixSocket(sys.Unixgram)
		dup := r.duplicate(b)
		r.sendUnix(a, "1", to)
		r.sendUnix(a, "2", to)
		r.recvUnix(dup, "1", "")
		r.must(r.Kernel.Close(b))
		r.recvUnix(dup, "2", "")
		r.sendUnix(a, "3", to)
		r.recvUnix(dup, "3", "")
		r.must(r.Kernel.Close(dup))
		r.sendUnixErr(a, to, syscall.ECONNREFUSED)
	}},
	{"unixgram: CloseWrite ends sending", func(r *rig) {
		to := r.path()
		b, a := r.boundUnix(sys.Unixgram, to), r.connectedUnix(sys.Unixgram, to)
		r.sendUnix(a, "kept", "")
		r.must(r.Kernel.CloseWrite(a))
		r.sendUnixErr(a, "", syscall.EPIPE)
		r.recvUnix(b, "kept", "")
		r.recvUnixErr(b, syscall.EAGAIN)
	}},
}
