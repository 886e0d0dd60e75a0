package weir

import (
	"net/netip"
	"os"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/share"
	"github.com/weirnet/weir/internal/sock"
	"github.com/weirnet/weir/internal/sys"
)

// Listener accepts connections on a loop. It and its connections are one lane under the bound: together they weigh as
// much as any other source of the loop.
type Listener struct {
	// Set once.
	loop     *Loop
	handler  ListenerHandler
	limits   *connLimits
	settings sock.StreamSettings
	maxConns int
	backlog  int // how many may wait
	family   sys.Family
	local    netip.AddrPort
	unixName string // of a unix socket
	unlink   bool   // the path is removed at the end
	lane     share.Lane
	source   *share.Source
	token    uint64

	// Loop only, as all that follows.
	fd       int // -1 once closed
	interest poll.Interest
	outside  bool // not in the poller
	open     int  // connections
	paused   bool

	stopping  bool // it closes when the backlog is empty
	stopConns bool // and the loop does, too
	waiting   int  // while stopping: connections that may have waited when that began

	resting  bool
	rests    int    // in a row
	rested   *Timer // that timer, or the last; nil before the first
	failures int    // of accepts in a row

	// For the end of the turn.
	atTurnEnd bool
	errors    fifo[error]
	errorRate rateLimit
	closeErr  error
	closeDue  bool
}

// ListenTCP accepts connections at a local address. Port 0 lets the system choose. An address that is not given at all
// (netip.AddrPortFrom(netip.Addr{}, port)) is the wildcard of IPv6 and IPv4 together, or of IPv4 alone where there is no
// IPv6.
//
//   - Errors: *OpError; its reason names the call or the option that failed, or is ErrClosed once the loop is
//     stopping or has ended.
func (l *Loop) ListenTCP(local netip.AddrPort, cfg ListenerConfig, h ListenerHandler) (*Listener, error) {
	fail := func(err error) (*Listener, error) {
		return nil, &OpError{Op: "listen", Net: "tcp", Source: local, Err: err}
	}
	ln, cfg, err := l.newListener(cfg, h)
	if err != nil {
		return fail(err)
	}
	o := cfg.options()
	if o.Local, err = sock.ResolveZone(local); err != nil {
		return fail(err)
	}
	ln.fd, ln.family, err = sock.ListenTCP(l.kernel, o, cfg.DeferAccept, cfg.Backlog)
	if err != nil {
		return fail(err)
	}
	if err := ln.register(); err != nil {
		return fail(err)
	}
	return ln, nil
}

// ListenUnix accepts connections at a unix socket of that name: a path, which is made, and removed when the listener
// is closed, or "@" and an abstract name.
//
//   - Errors: as ListenTCP; EADDRINUSE where the path is there: see ListenerConfig.Replace.
//   - Platforms: abstract names on Linux alone.
func (l *Loop) ListenUnix(name string, cfg ListenerConfig, h ListenerHandler) (*Listener, error) {
	fail := func(err error) (*Listener, error) {
		return nil, &OpError{Op: "listen", Net: "unix", SourceName: name, Err: err}
	}
	ln, cfg, err := l.newListener(cfg, h)
	if err != nil {
		return fail(err)
	}
	ln.fd, err = sock.ListenUnix(l.kernel, name, ln.settings, cfg.Backlog, cfg.Replace)
	if err != nil {
		return fail(err)
	}
	ln.family, ln.unixName = sys.UnixFamily, name
	ln.unlink = !cfg.KeepPath && sock.IsPath(name)
	if err := ln.register(); err != nil {
		return fail(err)
	}
	return ln, nil
}

// newListener makes what stands for a listening socket; cfg comes back with its defaults.
func (l *Loop) newListener(cfg ListenerConfig, h ListenerHandler) (*Listener, ListenerConfig, error) {
	if l.end.stage() != stageRunning {
		return nil, cfg, ErrClosed
	}
	cfg, limits, err := cfg.resolve(l.cfg.Bound)
	if err != nil {
		return nil, cfg, err
	}
	ln := &Listener{
		loop: l, handler: h, limits: limits, settings: cfg.Conn.settings(), maxConns: cfg.MaxConns,
		backlog: cfg.Backlog, fd: -1, interest: poll.Read,
	}
	return ln, cfg, nil
}

// register makes the listener a source of the loop, or closes it.
func (ln *Listener) register() error {
	l := ln.loop
	lane := &ln.lane
	if ln.limits.bound.exempt() {
		lane = new(share.Lane) // of its own, as an exempt source must have
	}
	ln.source = lane.NewSource(ln)
	ln.source.SetExempt(ln.limits.bound.exempt())
	err := ln.learnLocal()
	if err == nil {
		ln.token = l.table.add(ln)
		if err = l.poller.Add(ln.fd, ln.interest, ln.token); err != nil {
			l.table.remove(ln.token)
		}
	}
	if err != nil {
		_ = l.kernel.Close(ln.fd)
		ln.removePath()
		return err
	}
	l.ring.Made(ln.source)
	l.reserveDescriptor()
	return nil
}

func (ln *Listener) learnLocal() (err error) {
	if ln.family == sys.UnixFamily {
		return nil
	}
	ln.local, err = ln.loop.kernel.LocalAddr(ln.fd)
	ln.local = sock.Unmap(ln.local)
	if err != nil {
		return &sock.Error{Step: "getsockname", Err: err}
	}
	return nil
}

// AdoptListener takes over a listening socket that somebody else opened, by a duplicate of its descriptor: fd is
// borrowed, and stays the caller's to close. The socket is made non-blocking, for all who have it. Of cfg, only what is
// weir's own has a meaning (Bound, limits, times); backlog and options are as they are, but a time to linger, which
// connections would inherit, is taken off. A path is left there at the end.
//
//   - Errors: *OpError: ENOTSOCK, EPROTOTYPE (neither TCP nor a unix stream), EINVAL (no listener), EBADF, ErrClosed.
//   - Platforms: Linux.
func (l *Loop) AdoptListener(fd int, cfg ListenerConfig, h ListenerHandler) (*Listener, error) {
	fail := func(err error) (*Listener, error) {
		return nil, &OpError{Op: "adopt", Net: "listener", Err: err}
	}
	ln, _, err := l.newListener(cfg, h)
	if err != nil {
		return fail(err)
	}
	own, d, err := sock.AdoptListener(l.kernel, fd)
	if err != nil {
		return fail(err)
	}
	ln.fd, ln.family, ln.backlog = own, d.Family, mostBacklog
	if d.Family == sys.UnixFamily {
		ln.unixName, _ = l.kernel.LocalUnix(own) // a name is for texts only
	}
	if err := ln.register(); err != nil {
		return fail(err)
	}
	return ln, nil
}

// mostBacklog is no less than what an adopted listener may have been opened with.
const mostBacklog = 1 << 16

// AdoptListenerFile is AdoptListener of an open file, which stays the caller's.
func (l *Loop) AdoptListenerFile(f *os.File, cfg ListenerConfig, h ListenerHandler) (ln *Listener, err error) {
	if e := withFD(f, func(fd int) { ln, err = l.AdoptListener(fd, cfg, h) }); e != nil {
		return nil, &OpError{Op: "adopt", Net: "listener", Err: e}
	}
	return ln, err
}

// Export makes a descriptor of the listener for another process or another part of this one. Both ends accept, each some
// of the connections; who wants the other to be the only one closes this one. The path of a unix socket stays then.
//
// The descriptor is the caller's, and close-on-exec.
//
//   - Errors: ErrClosed; *OpError.
func (ln *Listener) Export() (fd int, err error) {
	if ln.fd < 0 {
		return -1, ErrClosed
	}
	fd, err = ln.loop.kernel.Duplicate(ln.fd)
	if err != nil {
		return -1, ln.opError("export", err)
	}
	ln.unlink = false
	return fd, nil
}

// Addr is the listener's address, zero of a unix socket. It stays known after Close.
func (ln *Listener) Addr() netip.AddrPort { return ln.local }

// Name is the listener's name where it is a unix socket.
func (ln *Listener) Name() string { return ln.unixName }

// Loop is the listener's.
func (ln *Listener) Loop() *Loop { return ln.loop }

// Conns is the number of its connections that are open.
func (ln *Listener) Conns() int { return ln.open }

// Pause leaves connections in the backlog, which refuses or puts off what is more than it holds. A Stop accepts all the
// same.
func (ln *Listener) Pause() {
	ln.paused = true
	ln.changed()
}

// Resume accepts again.
func (ln *Listener) Resume() {
	ln.paused = false
	ln.changed()
}
