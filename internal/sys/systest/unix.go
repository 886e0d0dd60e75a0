package systest

import (
	"strings"
	"syscall"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
)

var unixCases = []assertion{
	{"unix: a new socket has no name and no peer", func(r *rig) {
		for _, kind := range []sys.Kind{sys.UnixStream, sys.Unixgram} {
			fd := r.unixSocket(kind)
			r.equal(r.localUnix(fd), "")
			r.noRemoteUnix(fd)
		}
	}},
	{"unix: a name is a path or abstract, and both ends tell it", func(r *rig) {
		for _, name := range []string{r.path(), r.abstract()} {
			l := r.unixListener(name, 1)
			r.equal(r.localUnix(l), name)
			r.noRemoteUnix(l)
			a := r.unixDial(name)
			b := r.accept(l)
			r.equal(r.localUnix(a), "")
			r.equal(r.remoteUnix(a), name)
			r.equal(r.localUnix(b), name)
			r.equal(r.remoteUnix(b), "")
			r.write(a, "x")
			r.equal(r.read(b, 1), "x")
		}
	}},
	{"unix: one that connects may have a name too", func(r *rig) {
		for _, own := range []string{r.path(), r.abstract()} {
			name := r.path()
			l, a := r.unixListener(name, 1), r.boundUnix(sys.UnixStream, own)
			r.must(r.Kernel.ConnectUnix(a, name))
			b := r.accept(l)
			r.equal(r.localUnix(a), own)
			r.equal(r.remoteUnix(a), name)
			r.equal(r.localUnix(b), name)
			r.equal(r.remoteUnix(b), own)
		}
	}},
	{"unix: the peer's name outlives the peer", func(r *rig) {
		name := r.path()
		l := r.unixListener(name, 1)
		a := r.unixDial(name)
		b := r.accept(l)
		r.must(r.Kernel.Close(l))
		r.must(r.Kernel.Close(b))
		r.must(r.Kernel.UnlinkUnix(name))
		r.readEnd(a)
		r.equal(r.remoteUnix(a), name)
	}},
	{"unix: a connection is there at once, before it is accepted", func(r *rig) {
		name := r.path()
		l := r.unixListener(name, 1)
		a := r.unixSocket(sys.UnixStream)
		r.must(r.Kernel.ConnectUnix(a, name))
		r.becomes(a, poll.Writable)
		r.equal(r.remoteUnix(a), name)
		r.want(r.Kernel.ConnectUnix(a, name), syscall.EISCONN)
		b := r.accept(l)
		r.want(r.Kernel.ConnectUnix(b, name), syscall.EISCONN)
		r.acceptErr(l, syscall.EAGAIN)
	}},
	{"unix: a path stays when the socket is closed, until it is removed", func(r *rig) {
		for _, kind := range []sys.Kind{sys.UnixStream, sys.Unixgram} {
			name := r.path()
			fd := r.boundUnix(kind, name)
			r.want(r.Kernel.BindUnix(r.unixSocket(kind), name), syscall.EADDRINUSE)
			r.must(r.Kernel.Close(fd))
			r.want(r.Kernel.BindUnix(r.unixSocket(kind), name), syscall.EADDRINUSE)
			r.want(r.Kernel.ConnectUnix(r.unixSocket(kind), name), syscall.ECONNREFUSED)
			r.must(r.Kernel.UnlinkUnix(name))
			r.want(r.Kernel.UnlinkUnix(name), syscall.ENOENT)
			r.want(r.Kernel.ConnectUnix(r.unixSocket(kind), name), syscall.ENOENT)
			r.boundUnix(kind, name)
			r.connectedUnixOrRefused(kind, name)
		}
	}},
	{"unix: an abstract name is free when the socket is closed", func(r *rig) {
		for _, kind := range []sys.Kind{sys.UnixStream, sys.Unixgram} {
			name := r.abstract()
			fd := r.boundUnix(kind, name)
			r.want(r.Kernel.BindUnix(r.unixSocket(kind), name), syscall.EADDRINUSE)
			r.must(r.Kernel.Close(fd))
			r.want(r.Kernel.ConnectUnix(r.unixSocket(kind), name), syscall.ECONNREFUSED)
			r.boundUnix(kind, name)
		}
	}},
	{"unix: an abstract name is free once all descriptors of the socket are closed", func(r *rig) {
		name := r.abstract()
		l := r.unixListener(name, 1)
		dup := r.duplicate(l)
		r.must(r.Kernel.Close(l))
		r.unixDial(name)
		r.accept(dup)
		r.want(r.Kernel.BindUnix(r.unixSocket(sys.UnixStream), name), syscall.EADDRINUSE)
		r.must(r.Kernel.Close(dup))
		r.unixListener(name, 1)
	}},
	{"unix: a socket whose path was removed lives on for those that it has", func(r *rig) {
		name := r.path()
		old := r.unixListener(name, 4)
		a := r.unixDial(name)
		r.must(r.Kernel.UnlinkUnix(name))
		r.want(r.Kernel.ConnectUnix(r.unixSocket(sys.UnixStream), name), syscall.ENOENT)
		r.equal(r.localUnix(old), name)
		next := r.unixListener(name, 4)
		c := r.unixDial(name)
		r.write(a, "old")
		r.write(c, "next")
		r.equal(r.read(r.accept(old), 3), "old")
		r.equal(r.read(r.accept(next), 4), "next")
		r.acceptErr(old, syscall.EAGAIN)
	}},
	{"unix: a socket has one name", func(r *rig) {
		for _, kind := range []sys.Kind{sys.UnixStream, sys.Unixgram} {
			fd := r.boundUnix(kind, r.path())
			r.want(r.Kernel.BindUnix(fd, r.path()), syscall.EINVAL)
			r.want(r.Kernel.BindUnix(fd, r.abstract()), syscall.EINVAL)
		}
	}},
	{"unix: a name is not empty, and an abstract one has 107 bytes at most", func(r *rig) {
		for _, kind := range []sys.Kind{sys.UnixStream, sys.Unixgram} {
			r.want(r.Kernel.BindUnix(r.unixSocket(kind), ""), syscall.EINVAL)
			unique := r.abstract()
			longest := unique + strings.Repeat("n", 108-len(unique))
			r.want(r.Kernel.BindUnix(r.unixSocket(kind), longest+"n"), syscall.EINVAL)
			fd := r.boundUnix(kind, longest)
			r.equal(r.localUnix(fd), longest)
			r.want(r.Kernel.BindUnix(r.unixSocket(kind), longest), syscall.EADDRINUSE)
			r.boundUnix(kind, longest[:107])
		}
		r.want(r.Kernel.ConnectUnix(r.unixSocket(sys.UnixStream), ""), syscall.EINVAL)
	}},
	{"unix: an abstract name and a path of the same letters are apart", func(r *rig) {
		path := r.path()
		byPath, byName := r.unixListener(path, 1), r.unixListener("@"+path, 1)
		r.unixDial(path)
		r.accept(byPath)
		r.acceptErr(byName, syscall.EAGAIN)
		r.unixDial("@" + path)
		r.accept(byName)
	}},
	{"unix: a name is looked up when one connects: nobody is ENOENT, nobody who listens ECONNREFUSED", func(r *rig) {
		name := r.path()
		fd := r.unixSocket(sys.UnixStream)
		r.want(r.Kernel.ConnectUnix(fd, name), syscall.ENOENT)
		r.want(r.Kernel.ConnectUnix(fd, r.abstract()), syscall.ECONNREFUSED)
		l := r.boundUnix(sys.UnixStream, name)
		r.want(r.Kernel.ConnectUnix(fd, name), syscall.ECONNREFUSED)
		r.becomes(fd, poll.Writable|poll.HungUp)
		r.must(r.Kernel.Listen(l, 1))
		r.must(r.Kernel.ConnectUnix(fd, name))
		r.accept(l)
	}},
	{"unix: kinds are apart", func(r *rig) {
		stream, gram := r.path(), r.path()
		r.unixListener(stream, 1)
		r.boundUnix(sys.Unixgram, gram)
		r.want(r.Kernel.ConnectUnix(r.unixSocket(sys.UnixStream), gram), syscall.EPROTOTYPE)
		r.want(r.Kernel.ConnectUnix(r.unixSocket(sys.Unixgram), stream), syscall.EPROTOTYPE)
		r.sendUnixErr(r.unixSocket(sys.Unixgram), stream, syscall.EPROTOTYPE)
	}},
	{"unix: two connections of a name are apart", func(r *rig) {
		name := r.path()
		l := r.unixListener(name, 4)
		a, c := r.unixDial(name), r.unixDial(name)
		b, d := r.accept(l), r.accept(l)
		r.write(c, "second")
		r.write(a, "first")
		r.equal(r.read(b, 5), "first")
		r.equal(r.read(d, 6), "second")
		r.must(r.Kernel.Close(a))
		r.readEnd(b)
		r.becomes(d, poll.Writable)
	}},
}

// connectedUnixOrRefused connects to a name that is there: a stream to one that does not listen is refused.
func (r *rig) connectedUnixOrRefused(kind sys.Kind, name string) {
	r.Helper()
	err := r.Kernel.ConnectUnix(r.unixSocket(kind), name)
	if kind == sys.UnixStream {
		r.want(err, syscall.ECONNREFUSED)
		return
	}
	r.must(err)
}
