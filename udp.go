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
	cookie  uint64 // 0: the kernel does not tell
	lane    share.Lane
	source  *share.Source
	hooks   batch.Hooks
	sender  *Sender

	// For other goroutines: Stats reads the descriptor, the loop closes it.
	fdMu     sync.Mutex
	fd       int    // written under fdMu; -1 once closed
	memory   memory // guarded by fdMu
	counters udpCounters

	// Loop only, as all that follows.
	local     netip.AddrPort
	peer      netip.AddrPort // valid while connected
	broadcast bool
	class     uint8         // the traffic class of what is sent
	interest  poll.Interest // what the poller was last told
	shared    bool          // others may read it: one datagram a call
	joins     bool          // GRO is on: a message may be many datagrams
	reports   reportTable
	stopping  stopping
	left      int // while stopping: messages that may have been queued when it began

	// Receiving.
	paused     bool
	resting    bool   // receives keep failing, or find nothing
	rested     *Timer // that timer, or the last; nil before the first
	outside    bool   // of the poller while resting: errors cannot be masked
	failing    failing
	empty      int    // receives in a row that found nothing
	readable   bool   // the poller saw something to receive
	emptyDrops uint32 // of the kernel, when the socket was last found so
	failed     bool   // the poller saw an error that nothing has taken yet
	hungUp     bool   // the poller saw both directions ended
	cost       costEstimate
	kept       batch.Queue   // received before, and not delivered: a visit ended inside a batch
	lent       bool          // the first of them is being delivered
	batch      []sys.Message // what was received last and is not delivered, in the loop's slots

	// Sending.
	sends   batch.Queue
	checked checkedAddr             // while not connected
	segment bool                    // GSO is on
	told    struct{ gso, ecn bool } // of what was lost
	ecn     bool                    // the kernel takes traffic classes
	paths   batch.Paths
	blocked bool // the kernel takes no more; wait until writable
	refused bool // a Send was, for want of room; OnDrain is owed

	// For the end of the turn.
	atTurnEnd bool
	flushDue  bool
	drained   bool // OnDrain is due
	errors    fifo[error]
	errorRate rateLimit
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
	cookie := uint64(0)
	if d, err := l.kernel.Describe(fd); err == nil {
		cookie = d.Cookie
	}
	u := l.newUDP(fd, family, cookie, limits, cfg, h)
	u.peer = sock.Unmap(peer)
	if !cfg.NoGRO && !l.cfg.NoGRO {
		u.joins = l.kernel.SetOption(fd, sys.RecvJoined, 1) == nil
	}
	if err := u.register(); err != nil {
		return fail(err)
	}
	return u, nil
}

// newUDP makes what stands for an open descriptor. register follows.
func (l *Loop) newUDP(fd int, f sys.Family, cookie uint64, limits udpLimits, cfg UDPConfig, h UDPHandler) *UDP {
	u := &UDP{
		loop: l, handler: h, limits: limits, family: f, cookie: cookie, fd: fd,
		broadcast: cfg.Broadcast, class: uint8(cfg.TrafficClass), ecn: true,
		kept: batch.NewQueue(&l.pool), sends: batch.NewQueue(&l.pool), interest: poll.Read,
	}
	u.hooks = batch.Hooks{
		Lost: u.lostSend, Retry: u.retrySend, Stale: u.staleSend,
		NoSegments: u.noSegments, NoTrafficClass: u.noTrafficClass,
	}
	u.reports.on = cfg.Reports
	u.sender = newSender(u)
	u.source = u.lane.NewSource(u)
	u.source.SetExempt(limits.bound.exempt())
	if !cfg.NoGSO && !l.cfg.NoGSO {
		_, err := l.kernel.GetOption(fd, sys.SegmentSize)
		u.segment = err == nil
	}
	return u
}

// register makes the socket a source of the loop, or closes it.
func (u *UDP) register() error {
	l := u.loop
	if err := u.learnLocal(); err != nil { // a socket that nobody can be told the address of
		_ = l.kernel.Close(u.fd)
		return &sock.Error{Step: "getsockname", Err: err}
	}
	u.token = l.table.add(u)
	if err := l.poller.Add(u.fd, u.interest, u.token); err != nil {
		l.table.remove(u.token)
		_ = l.kernel.Close(u.fd)
		return err
	}
	l.ring.Made(u.source)
	if u.cookie != 0 {
		l.sockets[u.cookie] = u
	}
	u.publish()
	l.stats.opened(u)
	return nil
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
	if u.undelivered() || u.stopping == drainingReceives {
		u.loop.ring.Ready(u.source)
	}
}
