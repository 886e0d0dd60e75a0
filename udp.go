package weir

import (
	"net/netip"
	"sync"

	"github.com/weirnet/weir/internal/batch"
	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/share"
	"github.com/weirnet/weir/internal/sock"
	"github.com/weirnet/weir/internal/sys"
)

// UDP is a datagram socket on a loop.
type UDP struct {
	loop    *Loop
	handler UDPHandler
	bound   Bound // resolved
	limits  udpLimits
	family  sys.Family
	local   netip.AddrPort
	peer    netip.AddrPort // valid while connected; as the user gave it
	token   uint64
	lane    share.Lane
	source  *share.Source

	fdMu   sync.Mutex // the descriptor is read by Stats on any goroutine, and closed by the loop
	fd     int        // guarded by fdMu for other goroutines; -1 once closed
	memory memory     // guarded by fdMu

	paused      bool
	stopping    stopping
	resting     bool // receives keep failing; a timer ends it
	failures    int  // of receives in a row
	failed      bool // the poller saw an error that no receive has returned yet
	left        int  // while stopping: datagrams that may have been queued when it began
	cost        costEstimate
	kept        batch.Queue // received but not delivered: a visit ended inside a batch
	lent        bool        // the first of them is being delivered
	undelivered int         // the rest of the batch that is being delivered
	interest    poll.Interest

	sends   batch.Queue
	blocked bool // the kernel takes no more; wait until writable
	refused bool // a Send was, for want of room; OnDrain is owed
	hooks   batch.Hooks

	atTurnEnd bool
	flushDue  bool
	drained   bool // OnDrain is due
	errors    fifo[error]
	closeErr  error // once closed: why
	closeDue  bool  // OnClose has not run yet
	counters  udpCounters
}

// stopping is how far a socket is on the way to its end by a Stop.
type stopping uint8

const (
	notStopping      stopping = iota
	drainingReceives          // what the kernel has queued is being delivered
	drainingSends             // it was; what is queued here waits for the kernel
)

// UDPHandler is what a UDP socket calls. Functions left nil do nothing.
type UDPHandler struct {
	// OnDatagram is called for each datagram. d and its payload are lent until it returns; the payload may
	// be written to.
	OnDatagram func(u *UDP, d *Datagram)

	// OnDrain is called when, after a Send answered ErrWouldBlock, the queue is half empty. A relay that must
	// not lose the datagram which was refused copies it, pauses the socket that it came from, and in OnDrain
	// sends the copy before it resumes that; if the copy is refused, OnDrain comes again.
	OnDrain func(u *UDP)

	// OnError is called for what went wrong without ending the socket: a datagram that was accepted and
	// could not be sent (OpError.Addr tells for whom), or a report that the kernel had for the socket, such
	// as ECONNREFUSED of a connected socket whose peer is gone. A peer can cause many: count them rather than
	// log each. More than 16 that wait are counted in Stats only.
	OnError func(u *UDP, err error)

	// OnClose is the last call: nil after Close or Stop, ErrClosed when the loop ended, else the error that
	// ended the socket.
	OnClose func(u *UDP, err error)
}

// Datagram is one message received.
type Datagram struct {
	Payload   []byte         // may be empty: a datagram without payload is one
	Source    netip.AddrPort // the sender; IPv4 is IPv4 also through an IPv6 socket, and zones are numbers
	Truncated bool           // it was longer than UDPConfig.MaxDatagramBytes; the rest is gone
}

// ListenUDP opens a socket at a local address. Port 0 lets the system choose. An address that is not
// given at all (netip.AddrPortFrom(netip.Addr{}, port)) is the wildcard of IPv6 and IPv4 together, or of
// IPv4 alone where there is no IPv6.
//
//   - Errors: *OpError; its reason names the call or the option that failed, or is ErrClosed once the loop is
//     stopping or has ended.
func (l *Loop) ListenUDP(local netip.AddrPort, cfg UDPConfig, h UDPHandler) (*UDP, error) {
	return l.openUDP("listen", local, netip.AddrPort{}, cfg, h)
}

// DialUDP opens a socket that is connected to peer: it sends to and receives from that address alone, and
// hears when nobody listens there. The zero local address lets the system choose.
//
//   - Errors: as ListenUDP.
func (l *Loop) DialUDP(local, peer netip.AddrPort, cfg UDPConfig, h UDPHandler) (*UDP, error) {
	peer, err := sock.ResolveZone(peer)
	if err == nil {
		err = checkPeer(peer)
	}
	if err != nil {
		return nil, &OpError{Op: "dial", Net: "udp", Source: local, Addr: peer, Err: err}
	}
	return l.openUDP("dial", local, peer, cfg, h)
}

func (l *Loop) openUDP(op string, local, peer netip.AddrPort, cfg UDPConfig, h UDPHandler) (*UDP, error) {
	fail := func(err error) (*UDP, error) {
		return nil, &OpError{Op: op, Net: "udp", Source: local, Addr: peer, Err: err}
	}
	if l.end.stage() != stageRunning {
		return fail(ErrClosed)
	}
	local, err := sock.ResolveZone(local)
	if err != nil {
		return fail(err)
	}
	limits, err := cfg.resolve(l.cfg.Bound)
	if err != nil {
		return fail(err)
	}
	fd, family, err := sock.OpenUDP(l.kernel, cfg.options(local, peer))
	if err != nil {
		return fail(err)
	}
	u := &UDP{
		loop: l, handler: h, bound: limits.bound, limits: limits, family: family, peer: sock.Unmap(peer), fd: fd,
		kept: batch.NewQueue(&l.pool), sends: batch.NewQueue(&l.pool), interest: poll.Read,
	}
	u.hooks = batch.Hooks{Lost: u.lostSend, Stale: u.report}
	u.source = u.lane.NewSource(u)
	l.ring.Made(u.source)
	u.source.SetExempt(u.bound.exempt())
	u.token = l.table.add(u)
	if err := l.poller.Add(fd, u.interest, u.token); err != nil {
		l.table.remove(u.token)
		_ = l.kernel.Close(fd)
		return fail(err)
	}
	u.learnLocal()
	l.stats.opened(u)
	return u, nil
}

// LocalAddr is the socket's own address: of a socket bound to the wildcard without a peer, that wildcard.
// It stays known after Close.
func (u *UDP) LocalAddr() netip.AddrPort { return u.local }

// RemoteAddr is the peer of a connected socket, else the zero AddrPort.
func (u *UDP) RemoteAddr() netip.AddrPort { return u.peer }

// Connect sets the peer that the socket exchanges datagrams with, instead of an earlier one. Datagrams
// from others that are queued already are still delivered.
//
//   - Errors: ErrClosed, *OpError.
func (u *UDP) Connect(peer netip.AddrPort) error {
	peer, err := sock.ResolveZone(peer)
	if err == nil {
		err = checkPeer(peer)
	}
	if err == nil {
		err = u.connect(peer)
	}
	if err != nil {
		return u.opError("connect", peer, err)
	}
	return nil
}

// Disconnect takes the peer away: the socket hears everybody again. A local address that the system chose
// at Connect goes back to the wildcard; the port stays.
//
//   - Errors: ErrClosed, *OpError; with EADDRINUSE, somebody has taken the port at that moment.
func (u *UDP) Disconnect() error {
	port := u.local.Port()
	err := u.connect(netip.AddrPort{})
	if err == nil && u.local.Port() != port {
		err = u.keepPort(port)
	}
	if err != nil {
		return u.opError("disconnect", u.peer, err)
	}
	return nil
}

// connect first sends what is queued, as that was addressed under the old rule.
func (u *UDP) connect(peer netip.AddrPort) error {
	u.flushAtOnce()
	if u.fd < 0 {
		return ErrClosed
	}
	to := peer
	if peer.IsValid() {
		var err error
		if to, err = sock.ForFamily(peer, u.family); err != nil {
			return err
		}
	}
	u.addressQueued()
	if err := u.loop.kernel.Connect(u.fd, to); err != nil {
		return err
	}
	u.peer = sock.Unmap(peer)
	u.learnLocal()
	return nil
}

// addressQueued gives the queued datagrams for the peer that is about to change its address.
func (u *UDP) addressQueued() {
	if u.sends.Len() == 0 || !u.peer.IsValid() {
		return
	}
	peer, _ := sock.ForFamily(u.peer, u.family) // it was the socket's peer, so it has an address there
	for i := range u.sends.Len() {
		if d := u.sends.At(i); !d.Addr.IsValid() {
			d.Addr = peer
		}
	}
}

// keepPort binds the port again that a disconnect gave up, as Linux does with one that it chose itself
// (SOCK_BINDPORT_LOCK in __udp_disconnect).
func (u *UDP) keepPort(port uint16) error {
	wildcard, err := u.loop.kernel.LocalAddr(u.fd)
	if err == nil {
		err = u.loop.kernel.Bind(u.fd, netip.AddrPortFrom(wildcard.Addr(), port))
	}
	u.learnLocal()
	return err
}

func (u *UDP) learnLocal() {
	if addr, err := u.loop.kernel.LocalAddr(u.fd); err == nil {
		u.local = sock.Unmap(addr)
	}
}

// Pause stops the delivery of datagrams, at once also in the middle of a batch; those that were received
// already are kept. The kernel's buffer takes what comes, and then drops it. A Stop
// resumes it, and waits, for its grace, for one that is paused again.
func (u *UDP) Pause() {
	u.paused = true
	u.changed()
}

// Resume delivers again.
func (u *UDP) Resume() {
	u.paused = false
	u.changed()
	if u.kept.Len() > 0 || u.stopping == drainingReceives {
		u.loop.ring.Ready(u.source)
	}
}

// Close closes the socket. What was sent before goes out first, as far as the kernel takes it at once.
// The descriptor is closed and its port free when Close returns. OnClose follows, after OnError for what the
// kernel refused; what it did not take at once is counted in Stats as Unsent.
//
//   - Errors: ErrClosed when it is closed already.
func (u *UDP) Close() error {
	if u.fd < 0 {
		return ErrClosed
	}
	u.close(nil)
	return nil
}

func (u *UDP) close(why error) {
	if u.fd < 0 {
		return
	}
	l := u.loop
	u.flushAtOnce()
	if u.fd < 0 {
		return // the flush found the socket dead and closed it
	}
	u.discardKept()
	u.counters.unsent.Add(uint64(u.sends.Len()))
	u.sends.Drop(u.sends.Len())
	l.stats.closing(u)
	l.table.remove(u.token)
	l.ring.Remove(u.source)
	_ = l.poller.Remove(u.fd) // before close: a duplicate of the descriptor would keep it registered
	u.fdMu.Lock()
	fd := u.fd
	u.fd = -1
	u.fdMu.Unlock()
	_ = l.kernel.Close(fd)
	u.closeErr, u.closeDue = why, true
	u.flushDue, u.drained = false, false
	l.turnEnd.add(u)
}

// discardKept gives up what was not delivered. The datagram that a callback holds now was; its memory stays
// until the callback returns.
func (u *UDP) discardKept() {
	discarded := u.undelivered + u.kept.Len()
	if u.lent {
		discarded--
	} else {
		u.kept.Drop(u.kept.Len())
	}
	u.counters.discarded.Add(uint64(discarded))
}

// stop is Close, once what the kernel holds for the socket has been delivered.
func (u *UDP) stop() {
	u.stopping = drainingReceives
	u.resting = false
	u.left = u.queuedAtMost()
	u.Resume()
}

// ready is called with what the poller saw.
func (u *UDP) ready(r poll.Ready) {
	if r&poll.Writable != 0 && u.blocked {
		u.blocked, u.flushDue = false, true
		u.changed()
	}
	if r&(poll.Failed|poll.HungUp) != 0 {
		u.failed = true
		if u.paused || u.resting {
			// It cannot be masked, and a paused socket receives nothing that would clear it.
			u.clearFailure()
			return
		}
	}
	if r&(poll.Readable|poll.Failed|poll.HungUp) != 0 && !u.paused && !u.resting {
		u.loop.ring.Ready(u.source)
	}
}

// changed puts what the socket asks of the poller in order at the end of the turn.
func (u *UDP) changed() {
	if u.fd >= 0 {
		u.loop.turnEnd.add(u)
	}
}

// endTurn flushes what is queued, then runs one callback that was put off.
func (u *UDP) endTurn() (more bool) {
	if u.fd >= 0 && u.flushDue {
		u.flush()
	}
	if u.stopping == drainingSends && u.sends.Len() == 0 {
		u.close(nil)
	}
	if u.fd >= 0 {
		u.syncInterest()
	}
	switch {
	case u.errors.len() > 0:
		call(u.handler.OnError, u, u.errors.pop())
	case u.drained:
		u.drained = false
		if u.handler.OnDrain != nil {
			u.handler.OnDrain(u)
		}
	case u.closeDue:
		u.closeDue = false
		call(u.handler.OnClose, u, u.closeErr)
	}
	return u.errors.len() > 0 || u.drained || u.closeDue
}

func call(fn func(*UDP, error), u *UDP, err error) {
	if fn != nil {
		fn(u, err)
	}
}

// syncInterest tells the poller what changed since it was last told.
func (u *UDP) syncInterest() {
	var want poll.Interest
	if !u.paused && !u.resting && u.stopping != drainingSends {
		want |= poll.Read
	}
	if u.blocked {
		want |= poll.Write
	}
	if want == u.interest {
		return
	}
	if err := u.loop.poller.Modify(u.fd, want, u.token); err != nil {
		u.close(u.opError("poll", netip.AddrPort{}, err))
		return
	}
	u.interest = want
}

func (u *UDP) inTurnEnd() *bool { return &u.atTurnEnd }
func (u *UDP) name() string     { return "udp " + u.local.String() }

// maxErrors is how many errors wait for OnError; more are counted only.
const maxErrors = 16

func (u *UDP) deferError(err error) {
	if u.errors.len() < maxErrors {
		u.errors.push(err)
		u.loop.turnEnd.add(u)
	}
}

func (u *UDP) opError(op string, addr netip.AddrPort, err error) error {
	if err == ErrClosed {
		return err
	}
	return &OpError{Op: op, Net: "udp", Source: u.local, Addr: addr, Err: err}
}
