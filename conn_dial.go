package weir

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sock"
	"github.com/weirnet/weir/internal/sys"
)

// dial is a connection on its way.
type dial struct {
	timer  *Timer             // when it has taken too long, or is to be tried again; nil: no limit
	retry  *Timer             // of a unix socket whose backlog was full
	rest   time.Duration      // before that
	cancel context.CancelFunc // ends a Dialer; does nothing where there is none
	name   string             // what is dialled, where that is no address
}

// Dial connects to an address as net.Dial takes them: network is tcp, tcp4, tcp6 or unix, and a host may be a name. The
// connection can be used at once: what is written goes out when it is there, which OnOpen tells. A failure is told
// by OnClose.
//
// A name is looked up, and its addresses tried, by a net.Dialer on a goroutine (RFC 8305), which needs this machine's
// kernel. What is given as an IP address is dialled on the loop.
//
//   - Errors: *OpError for a network or address that is none, options that the kernel refuses, what the kernel answers
//     at once; ErrClosed once the loop is stopping or has ended; ErrUnsupported for a name on a Kernel that was given.
func (l *Loop) Dial(network, address string, cfg ConnConfig, h ConnHandler) (*Conn, error) {
	switch network {
	case "unix":
		return l.DialUnix(address, cfg, h)
	case "tcp", "tcp4", "tcp6":
	default:
		return nil, &OpError{Op: "dial", Net: network, Name: address, Err: net.UnknownNetworkError(network)}
	}
	if peer, err := netip.ParseAddrPort(address); err == nil && fits(network, peer.Addr()) {
		return l.DialTCP(netip.AddrPort{}, peer, cfg, h)
	}
	fail := func(err error) (*Conn, error) {
		return nil, &OpError{Op: "dial", Net: network, Name: address, Err: err}
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return fail(err)
	}
	if !l.native {
		return fail(fmt.Errorf("a name on a kernel that was given: %w", ErrUnsupported))
	}
	c, err := l.newDial(cfg, sys.IPv4, h)
	if err != nil {
		return fail(err)
	}
	c.dial.name = address
	c.dialName(network, address, cfg.settings())
	return c, nil
}

func fits(network string, ip netip.Addr) bool {
	v4 := ip.Unmap().Is4()
	return network == "tcp" || v4 == (network == "tcp4")
}

// DialTCP connects to peer, from local where that is valid. See Dial.
func (l *Loop) DialTCP(local, peer netip.AddrPort, cfg ConnConfig, h ConnHandler) (*Conn, error) {
	fail := func(err error) (*Conn, error) {
		return nil, &OpError{Op: "dial", Net: "tcp", Source: local, Addr: peer, Err: err}
	}
	peer, err := sock.ResolveZone(peer)
	if err == nil {
		err = checkPeer(peer)
	}
	if err == nil {
		local, err = sock.ResolveZone(local)
	}
	if err != nil {
		return fail(err)
	}
	c, err := l.newDial(cfg, sys.IPv4, h)
	if err != nil {
		return fail(err)
	}
	c.remote = sock.Unmap(peer)
	fd, family, _, err := sock.ConnectTCP(l.kernel, sock.TCPOptions{Local: local, StreamSettings: cfg.settings()}, peer)
	if err == nil {
		c.family = family
		err = c.connecting(fd)
	}
	if err != nil {
		c.forget()
		return fail(err)
	}
	return c, nil
}

// DialUnix connects to the unix socket of that name: a path, or "@" and an abstract name. See Dial. Where the listener's
// backlog is full it is tried again until ConnConfig.DialTimeout.
func (l *Loop) DialUnix(name string, cfg ConnConfig, h ConnHandler) (*Conn, error) {
	fail := func(err error) (*Conn, error) {
		return nil, &OpError{Op: "dial", Net: "unix", Name: name, Err: err}
	}
	c, err := l.newDial(cfg, sys.UnixFamily, h)
	if err != nil {
		return fail(err)
	}
	c.dial.name = name
	if err := c.connectUnix(name, cfg.settings()); err != nil {
		c.forget()
		return fail(err)
	}
	return c, nil
}

// newDial makes a connection that is to come.
func (l *Loop) newDial(cfg ConnConfig, f sys.Family, h ConnHandler) (*Conn, error) {
	if l.end.stage() != stageRunning {
		return nil, ErrClosed
	}
	limits, err := cfg.resolve(l.cfg.Bound)
	if err != nil {
		return nil, err
	}
	c := l.newConn(limits, f, &l.outgoing, &h)
	c.dial = &dial{cancel: func() {}}
	if d := limits.dialTimeout; d > 0 {
		c.dial.timer = l.AfterFunc(d, func() { c.dialFailed(ErrTimeout) })
	}
	return c, nil
}

// forget takes back a connection that nobody has heard of.
func (c *Conn) forget() {
	c.close(nil)
	c.closeDue = false
}

// connecting has the poller tell how a connection goes that has begun, or is there.
func (c *Conn) connecting(fd int) error { return c.enter(fd, poll.Write) }

// dialled is called when something is known of the connection.
func (c *Conn) dialled() {
	errno, err := c.loop.kernel.GetOption(c.fd, sys.SocketError)
	switch {
	case err != nil:
		c.dialFailed(err)
	case errno != 0:
		c.dialFailed(syscall.Errno(errno))
	case c.dial != nil && c.toItself():
		c.dialFailed(syscall.ECONNREFUSED)
	default:
		c.came()
	}
}

// toItself tells that a dialled connection has met itself: where nobody listens at a port that the system gives to who
// dials, it may be the own one (a simultaneous open, RFC 9293 section 3.5).
func (c *Conn) toItself() bool {
	return c.remote.IsValid() && c.remote.Addr().IsLoopback() && c.LocalAddr() == c.remote
}

// came makes a connection that is there one that can be used.
func (c *Conn) came() {
	if c.dial != nil { // it was not adopted
		c.loop.stats.streams.dialled.Add(1)
	}
	c.endDial()
	c.flushDue = !c.out.Empty() || c.endWanted
	c.changed()
	c.opened()
}

func (c *Conn) dialFailed(err error) {
	e := &OpError{Op: "adopt", Net: c.network(), Addr: c.remote, Err: err}
	if c.dial != nil {
		c.loop.stats.streams.dialErrors.Add(1)
		e.Op, e.Name = "dial", c.dial.name
	}
	c.close(e)
}

func (c *Conn) endDial() {
	d := c.dial
	if d == nil {
		return
	}
	for _, t := range []*Timer{d.timer, d.retry} {
		if t != nil {
			t.Stop()
		}
	}
	d.cancel()
	c.dial = nil
}

// The pauses between trials of a unix socket whose backlog is full.
const (
	shortestDialRest = time.Millisecond
	longestDialRest  = 50 * time.Millisecond
)

// connectUnix tries once.
func (c *Conn) connectUnix(name string, s sock.StreamSettings) error {
	fd, err := sock.ConnectUnix(c.loop.kernel, name, s)
	if errors.Is(err, syscall.EAGAIN) {
		d := c.dial
		d.rest = min(max(2*d.rest, shortestDialRest), longestDialRest)
		d.retry = c.loop.AfterFunc(d.rest, func() {
			if err := c.connectUnix(name, s); err != nil {
				c.dialFailed(err)
			}
		})
		return nil
	}
	if err != nil {
		return err
	}
	return c.connecting(fd)
}

// dialers are the goroutines that look names up for a loop.
type dialers struct {
	ctx    context.Context // nil before the first
	cancel context.CancelFunc
	wait   sync.WaitGroup

	mu   sync.Mutex
	made map[*Conn]int // guarded by mu; descriptors that the loop has not taken yet
}

func (d *dialers) start() context.Context {
	if d.ctx == nil {
		d.ctx, d.cancel = context.WithCancel(context.Background())
		d.made = make(map[*Conn]int)
	}
	return d.ctx
}

// end ends the goroutines, waits for them, and closes what they have made for nobody.
func (d *dialers) end(k sys.Kernel) {
	if d.ctx == nil {
		return
	}
	d.cancel()
	d.wait.Wait()
	for _, fd := range d.made {
		_ = k.Close(fd)
	}
}

func (d *dialers) put(c *Conn, fd int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.made[c] = fd
}

func (d *dialers) take(c *Conn) (fd int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fd = d.made[c]
	delete(d.made, c)
	return fd
}

// dialName has a net.Dialer connect, and takes over what it has made.
func (c *Conn) dialName(network, address string, s sock.StreamSettings) {
	l := c.loop
	ctx, cancel := context.WithCancel(l.dialers.start())
	c.dial.cancel = cancel
	l.dialers.wait.Go(func() {
		fd, err := dialOffLoop(ctx, l.kernel, network, address)
		if err == nil {
			l.dialers.put(c, fd)
		}
		_ = l.posts.addAlways(func() { c.takeDialled(err, s) }) // a loop that has ended closes what was made
	})
}

// dialOffLoop returns a descriptor of its own.
func dialOffLoop(ctx context.Context, k sys.Kernel, network, address string) (fd int, err error) {
	d := net.Dialer{KeepAlive: -1} // the loop's settings come later
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		if e, ok := errors.AsType[*net.OpError](err); ok {
			err = e.Err // the rest is in the loop's own
		}
		return -1, err
	}
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		return -1, err
	}
	if e := raw.Control(func(of uintptr) { fd, err = k.Duplicate(int(of)) }); e != nil {
		return -1, e
	}
	return fd, err
}

// takeDialled is on the loop again.
func (c *Conn) takeDialled(err error, s sock.StreamSettings) {
	k := c.loop.kernel
	if err != nil {
		if c.state == connDialling {
			c.dialFailed(err)
		}
		return
	}
	fd := c.loop.dialers.take(c)
	if c.state != connDialling {
		_ = k.Close(fd)
		return
	}
	d, err := k.Describe(fd)
	if err == nil {
		c.family = d.Family
		err = s.Apply(k, fd, d.Family)
	}
	if err == nil {
		c.remote, err = k.RemoteAddr(fd)
		c.remote = sock.Unmap(c.remote)
	}
	if err == nil {
		err = c.enter(fd, poll.Write) // OnOpen comes by a visit, like that of other connections
	} else {
		_ = k.Close(fd)
	}
	if err != nil {
		c.dialFailed(err)
	}
}
