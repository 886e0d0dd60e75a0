package weir

import (
	"fmt"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/share"
	"github.com/weirnet/weir/internal/sock"
)

// Unixgram is a datagram socket on a loop that has no address but a name, or none: AF_UNIX, SOCK_DGRAM. It loses
// nothing, and keeps datagrams in order: a receiver that does not keep up makes Send answer ErrWouldBlock.
type Unixgram struct {
	// Set once.
	loop    *Loop
	handler UnixgramHandler
	bound   Bound
	most    int // bytes of a datagram that are delivered
	local   string
	peer    string
	token   uint64
	lane    share.Lane
	source  *share.Source

	// Loop only, as all that follows.
	fd       int           // -1 once closed
	interest poll.Interest // what the poller was last told
	outside  bool          // of the poller while resting: errors cannot be masked
	stopping bool
	left     int // while stopping: datagrams that may have been queued when it began
	stats    UnixgramStats

	// Receiving.
	paused  bool
	resting bool   // receives keep failing
	rested  *Timer // that timer, or the last; nil before the first
	failing failing
	failed  bool // the poller saw an error that nothing has taken yet

	// Sending.
	blocked bool   // the peer's queue is full; wait until writable
	retry   *Timer // has OnDrain called where nothing tells of room; nil before the first
	refused int    // sends in a row that found no room

	// For the end of the turn.
	atTurnEnd bool
	drained   bool // OnDrain is due
	errors    fifo[error]
	errorRate rateLimit
	closeErr  error // once closed: why
	closeDue  bool  // OnClose has not run yet
}

// UnixgramHandler is what a Unixgram calls. Functions left nil do nothing.
type UnixgramHandler struct {
	// OnDatagram is called for each datagram. d and its payload are lent until it returns; the payload may
	// be written to.
	OnDatagram func(u *Unixgram, d *UnixDatagram)

	// OnDrain is called after a Send answered ErrWouldBlock: at once when the peer of a connected socket has room.
	// For any other receiver the kernel has no such event, and OnDrain comes for another try: after a millisecond,
	// and after longer and longer, up to 50 ms, as long as Send finds no room.
	OnDrain func(u *Unixgram)

	// OnError is called for an error that the kernel had for the socket, an *OpError: ECONNRESET where the peer was
	// closed before it had read all. There are at most 100 a second, after 16 at once.
	OnError func(u *Unixgram, err error)

	// OnClose is the last call: nil after Close or Stop, ErrClosed when the loop ended, else the error that
	// ended the socket.
	OnClose func(u *Unixgram, err error)
}

// UnixDatagram is one message received.
type UnixDatagram struct {
	Payload   []byte // may be empty: a datagram without payload is one
	Source    string // the sender's name: a path as it was bound, or "@" and an abstract name; empty where it has none
	Truncated bool   // it was longer than UnixgramConfig.MaxDatagramBytes; the rest is gone
}

// UnixgramConfig is a Unixgram's. The zero UnixgramConfig works.
type UnixgramConfig struct {
	// Bound replaces the loop's default.
	Bound Bound

	// MaxDatagramBytes is the most of a datagram that is delivered; the rest of a longer one is cut off,
	// which UnixDatagram.Truncated tells. A loop has one buffer of the largest size. Default: 64 KiB.
	MaxDatagramBytes int

	// SendBufferBytes asks for a buffer (SO_SNDBUF): datagrams must fit in, and what receivers have not read counts.
	// How many datagrams wait for a receiver is the system's to say (net.unix.max_dgram_qlen). Default: the system's.
	SendBufferBytes int

	// Replace takes over the path of a socket that nobody has open any more, as one that was not closed leaves it.
	Replace bool
}

// UnixgramStats is what a Unixgram has done so far, in datagrams unless said otherwise.
type UnixgramStats struct {
	Received      uint64
	ReceivedBytes uint64
	Truncated     uint64 // of Received: longer than UnixgramConfig.MaxDatagramBytes
	Sent          uint64
	SentBytes     uint64
	Refused       uint64 // sends that were answered ErrWouldBlock
	Errors        uint64 // sends and receives that failed
}

func (c *UnixgramConfig) resolve(loop Bound) error {
	c.Bound = c.Bound.or(loop)
	if err := c.Bound.check(); err != nil {
		return err
	}
	if c.MaxDatagramBytes < 0 || c.SendBufferBytes < 0 {
		return fmt.Errorf("weir: UnixgramConfig.MaxDatagramBytes is %d, SendBufferBytes %d; neither can be negative",
			c.MaxDatagramBytes, c.SendBufferBytes)
	}
	setDefault(&c.MaxDatagramBytes, 64<<10)
	return nil
}

// ListenUnixgram opens a socket of that name: a path, or "@" and an abstract name. Close removes a path, whoever has
// made it anew in the meantime.
//
//   - Errors: *OpError; its reason names the call or the option that failed, or is ErrClosed once the loop is
//     stopping or has ended. EADDRINUSE where the name is there, also as the path of a socket that is gone
//     (UnixgramConfig.Replace); ENOENT, ENOTDIR, EACCES.
//   - Platforms: abstract names are Linux's.
//   - Source: unix(7).
func (l *Loop) ListenUnixgram(name string, cfg UnixgramConfig, h UnixgramHandler) (*Unixgram, error) {
	return l.openUnixgram("listen", name, "", cfg, h)
}

// DialUnixgram opens a socket that is connected to the socket named peer: it receives from that alone. An empty local
// name is none, and then nobody can answer.
//
//   - Errors: as ListenUnixgram; ENOENT, ECONNREFUSED where nobody has the peer's name, EPROTOTYPE, EPERM where it is
//     connected to another.
func (l *Loop) DialUnixgram(local, peer string, cfg UnixgramConfig, h UnixgramHandler) (*Unixgram, error) {
	return l.openUnixgram("dial", local, peer, cfg, h)
}

func (l *Loop) openUnixgram(op, local, peer string, cfg UnixgramConfig, h UnixgramHandler) (*Unixgram, error) {
	u := &Unixgram{loop: l, handler: h, local: local, peer: peer, interest: poll.Read}
	if l.end.stage() != stageRunning {
		return nil, u.failedTo(op, ErrClosed)
	}
	if err := cfg.resolve(l.cfg.Bound); err != nil {
		return nil, u.failedTo(op, err)
	}
	u.bound, u.most = cfg.Bound, cfg.MaxDatagramBytes
	fd, err := l.openUnixgramFD(op, local, peer, cfg)
	if err != nil {
		return nil, u.failedTo(op, err)
	}
	u.fd = fd
	u.source = u.lane.NewSource(u)
	u.source.SetExempt(u.bound.exempt())
	u.token = l.table.add(u)
	if err := l.poller.Add(fd, u.interest, u.token); err != nil {
		l.table.remove(u.token)
		u.unlink()
		_ = l.kernel.Close(fd)
		return nil, u.failedTo(op, err)
	}
	l.ring.Made(u.source)
	return u, nil
}

// LocalName is the socket's own name, empty where it has none. It stays known after Close.
func (u *Unixgram) LocalName() string { return u.local }

// RemoteName is the name of the socket that this one is connected to; empty where it is not.
func (u *Unixgram) RemoteName() string { return u.peer }

// Stats is what the socket has done so far, also after Close.
func (u *Unixgram) Stats() UnixgramStats { return u.stats }

// Pause stops the delivery of datagrams at once. The kernel keeps a few, and then senders find no room. A Stop resumes
// it, and waits, for its grace, for one that is paused again.
func (u *Unixgram) Pause() {
	u.paused = true
	u.changed()
}

// Resume delivers again.
func (u *Unixgram) Resume() {
	u.paused = false
	u.changed()
	if u.stopping {
		u.loop.ring.Ready(u.source)
	}
}

// Close closes the socket. The descriptor is closed, and its name free, when Close returns. OnClose follows.
//
//   - Errors: ErrClosed when it is closed already.
func (u *Unixgram) Close() error {
	if u.fd < 0 {
		return ErrClosed
	}
	u.close(nil)
	return nil
}

func (u *Unixgram) close(why error) {
	if u.fd < 0 {
		return
	}
	l := u.loop
	for _, t := range []*Timer{u.rested, u.retry} {
		if t != nil {
			t.Stop()
		}
	}
	l.table.remove(u.token)
	l.ring.Remove(u.source)
	if !u.outside {
		_ = l.poller.Remove(u.fd) // before close: a duplicate of the descriptor would keep it registered
	}
	u.unlink()
	_ = l.kernel.Close(u.fd)
	u.fd = -1
	l.descriptorFreed()
	u.closeErr, u.closeDue, u.drained = why, true, false
	l.turnEnd.add(u)
}

// unlink removes the socket's path.
func (u *Unixgram) unlink() {
	if sock.IsPath(u.local) {
		_ = u.loop.kernel.UnlinkUnix(u.local) // it may be gone already
	}
}

// mostStopped is more than the kernel keeps for a socket: each sender's buffer, and max_dgram_qlen, are below.
const mostStopped = 4096

// stop is Close, once what the kernel holds for the socket has been delivered.
func (u *Unixgram) stop() {
	u.stopping = true
	u.endRest()
	u.left = mostStopped
	u.Resume()
}

func (u *Unixgram) inTurnEnd() *bool { return &u.atTurnEnd }

func (u *Unixgram) name() string {
	if u.local == "" {
		return "unixgram to " + u.peer
	}
	return "unixgram " + u.local
}

func (u *Unixgram) failedTo(op string, err error) error { return u.opError(op, u.peer, err) }

func (u *Unixgram) opError(op, other string, err error) error {
	return &OpError{Op: op, Net: "unixgram", SourceName: u.local, Name: other, Err: err}
}
