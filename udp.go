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
	// Set once.
	loop    *Loop
	handler UDPHandler
	limits  udpLimits
	family  sys.Family
	token   uint64
	lane    share.Lane
	source  *share.Source
	hooks   batch.Hooks

	// For other goroutines: Stats reads the descriptor, the loop closes it.
	fdMu     sync.Mutex
	fd       int    // written under fdMu; -1 once closed
	memory   memory // guarded by fdMu
	counters udpCounters

	// Loop only, as all that follows.
	local    netip.AddrPort
	peer     netip.AddrPort // valid while connected
	interest poll.Interest  // what the poller was last told
	stopping stopping
	left     int // while stopping: datagrams that may have been queued when it began

	// Receiving.
	paused      bool
	resting     bool // receives keep failing; a timer ends it
	failures    int  // of receives in a row
	failed      bool // the poller saw an error that no receive has returned yet
	cost        costEstimate
	kept        batch.Queue // received but not delivered: a visit ended inside a batch
	lent        bool        // the first of them is being delivered
	undelivered int         // the rest of the batch that is being delivered

	// Sending.
	sends   batch.Queue
	blocked bool // the kernel takes no more; wait until writable
	refused bool // a Send was, for want of room; OnDrain is owed

	// For the end of the turn.
	atTurnEnd bool
	flushDue  bool
	drained   bool // OnDrain is due
	errors    fifo[error]
	closeErr  error // once closed: why
	closeDue  bool  // OnClose has not run yet
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
		loop: l, handler: h, limits: limits, family: family, peer: sock.Unmap(peer), fd: fd,
		kept: batch.NewQueue(&l.pool), sends: batch.NewQueue(&l.pool), interest: poll.Read,
	}
	u.hooks = batch.Hooks{Lost: u.lostSend, Stale: u.report}
	u.source = u.lane.NewSource(u)
	l.ring.Made(u.source)
	u.source.SetExempt(u.limits.bound.exempt())
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

// Pause stops the delivery of datagrams, at once also in the middle of a batch; those that were received
// already are kept. The kernel's buffer takes what comes, and then drops it. A Stop resumes it, and waits, for
// its grace, for one that is paused again.
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
