package weir

import (
	"os"
	"syscall"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sock"
	"github.com/weirnet/weir/internal/sys"
)

// AdoptConn takes over a connection that somebody else opened, by a duplicate of its descriptor: fd is borrowed, and
// stays the caller's to close. The socket is made non-blocking, for all who have it, and a time to linger is taken off it
// (SO_LINGER), as the loop would wait in close(2). Of cfg, what can be told to an open socket is told to it, also if an
// error follows. OnOpen follows.
//
//   - Errors: *OpError: ENOTSOCK, EPROTOTYPE (neither TCP nor a unix stream), ENOTCONN, EINVAL (a listener), EBADF,
//     ErrClosed.
//   - Platforms: Linux.
func (l *Loop) AdoptConn(fd int, cfg ConnConfig, h ConnHandler) (*Conn, error) {
	fail := func(err error) (*Conn, error) {
		return nil, &OpError{Op: "adopt", Net: "conn", Err: err}
	}
	if l.end.stage() != stageRunning {
		return fail(ErrClosed)
	}
	limits, err := cfg.resolve(l.cfg.Bound)
	if err != nil {
		return fail(err)
	}
	own, d, err := sock.AdoptStream(l.kernel, fd)
	if err != nil {
		return fail(err)
	}
	closeOwn := func(err error) (*Conn, error) {
		_ = l.kernel.Close(own)
		return fail(err)
	}
	settings := cfg.settings()
	if err := settings.Apply(l.kernel, own, d.Family); err != nil {
		return closeOwn(err)
	}
	c := l.newConn(limits, d.Family, &l.outgoing, &h)
	if d.Family == sys.UnixFamily {
		_, err = l.kernel.RemoteUnix(own)
	} else if c.remote, err = l.kernel.RemoteAddr(own); err == nil {
		c.remote = sock.Unmap(c.remote)
	}
	if err == nil {
		err = c.enter(own, poll.Read)
	} else {
		_ = l.kernel.Close(own)
	}
	if err != nil {
		c.forget()
		return fail(err)
	}
	l.becameReady(c.source) // not by the poller: the connection may be neither readable nor writable
	return c, nil
}

// AdoptConnFile is AdoptConn of an open file, which stays the caller's.
func (l *Loop) AdoptConnFile(f *os.File, cfg ConnConfig, h ConnHandler) (c *Conn, err error) {
	if e := withFD(f, func(fd int) { c, err = l.AdoptConn(fd, cfg, h) }); e != nil {
		return nil, &OpError{Op: "adopt", Net: "conn", Err: e}
	}
	return c, err
}

// withFD calls fn with the descriptor of a file, which it keeps open meanwhile.
func withFD(f *os.File, fn func(fd int)) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Control(func(fd uintptr) { fn(int(fd)) })
}

// Export makes a descriptor of the connection for another process or another part of this one. Nothing is read ahead
// here, so pause the connection first, or close it after: what OnData has had, the other end has not. From here on Close
// and Reset leave the socket to the others who have it: they close this end's descriptor alone. CloseWrite ends the
// direction for all.
//
// The descriptor is the caller's, and close-on-exec.
//
//   - Errors: ErrClosed; ErrWouldBlock while something is queued to be written: OnDrain follows; *OpError: ENOTCONN
//     before OnOpen.
func (c *Conn) Export() (fd int, err error) {
	switch {
	case c.state == connDialling:
		return -1, c.opError("export", syscall.ENOTCONN)
	case c.state != connOpen:
		return -1, ErrClosed
	case c.sender != nil && c.mayWrite() == nil:
		c.sender.moveAll()
	}
	c.flush()
	switch {
	case c.state != connOpen, c.broken != nil:
		return -1, ErrClosed
	case !c.out.Empty():
		c.oweDrain()
		return -1, ErrWouldBlock
	}
	fd, err = c.loop.kernel.Duplicate(c.fd)
	if err != nil {
		return -1, c.opError("export", err)
	}
	c.shared = true
	return fd, nil
}
