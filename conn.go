package weir

import (
	"net/netip"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/share"
	"github.com/weirnet/weir/internal/sock"
	"github.com/weirnet/weir/internal/stream"
	"github.com/weirnet/weir/internal/sys"
)

// Conn is a stream connection on a loop: TCP, or a unix socket. All of its methods are for the loop's goroutine;
// Sender is for the others.
type Conn struct {
	// Data is the program's own; weir does not look at it.
	Data any

	// Set once.
	loop     *Loop
	limits   *connLimits
	listener *Listener // nil: it was dialled or adopted
	token    uint64
	family   sys.Family

	// Loop only, as all that follows.
	source     *share.Source
	lane       *Lane // nil: the one that it began with
	handler    *ConnHandler
	remote     netip.AddrPort
	fd         int // -1: not there yet, or closed
	state      connState
	interest   poll.Interest // what the poller was last told
	outside    bool          // not in the poller
	shared     bool          // others may have the socket, too: it is not shut down
	stopping   bool          // the loop stops: what was received is read, then it closes
	delivering bool          // while stopping: that is not done yet
	stopTold   bool          // while stopping: OnStop was called
	resting    bool          // for want of memory in the kernel it is neither read nor written for a moment
	left       int           // while stopping: bytes that may have been received when that began

	// Reading.
	paused  bool
	again   bool // OnData is asked for
	failed  bool // the poller saw an error that no read has told of yet
	ended   bool // the peer's direction is over, and OnEnd has run
	discard bool // what is read is thrown away: the connection was closed, and waits for the peer to do so

	// Writing.
	out       stream.Queue
	published int // of its bytes, in the loop's Stats

	readBytes, writtenBytes uint64

	blocked   bool
	refused   bool // a Write was, for want of room: OnDrain is owed
	endWanted bool // CloseWrite was called
	endSent   bool // the peer has been told
	broken    error

	// For the end of the turn.
	atTurnEnd bool
	flushDue  bool
	filesDone []fileResult
	drained   bool // OnDrain is due
	stopDue   bool // OnStop is due
	closeDue  bool // OnClose has not run yet
	closeErr  error

	// What few connections have.
	timing *timing
	sender *ConnSender
	dial   *dial
}

type connState uint8

const (
	connDialling connState = iota // not there yet; writes are queued
	connOpen
	connClosing // Close was called: what is queued goes out
	connClosed
)

// newConn makes what stands for a connection that is there or is to come.
func (l *Loop) newConn(limits *connLimits, f sys.Family, lane *share.Lane, h *ConnHandler) *Conn {
	c := &Conn{loop: l, limits: limits, family: f, handler: h, fd: -1, outside: true}
	if limits.bound.exempt() {
		lane = new(share.Lane) // of its own, as an exempt source must have
	}
	c.source = lane.NewSource(c)
	c.source.SetExempt(limits.bound.exempt())
	l.ring.Made(c.source)
	c.token = l.table.add(c)
	l.stats.streams.open.Add(1)
	return c
}

// enter gives the connection its descriptor and registers it.
func (c *Conn) enter(fd int, want poll.Interest) error {
	c.fd = fd
	if err := c.loop.poller.Add(fd, want, c.token); err != nil {
		return c.opError("poll", err)
	}
	c.interest, c.outside = want, false
	return nil
}

// opened is called when the connection is there.
func (c *Conn) opened() {
	c.state = connOpen
	c.startTiming()
	if c.handler.OnOpen != nil {
		c.handler.OnOpen(c)
	}
	c.flushAfterCallback()
	if c.again { // it was asked for before
		c.goOn()
	}
}

// SetHandler replaces the handler, from the next call on.
func (c *Conn) SetHandler(h ConnHandler) { c.handler = &h }

// Open tells that the connection is there: OnOpen has been called, or is being, and neither Close nor anything else has
// ended it.
func (c *Conn) Open() bool { return c.state == connOpen }

// Loop is the connection's.
func (c *Conn) Loop() *Loop { return c.loop }

// Listener is the one that the connection was accepted by, or nil.
func (c *Conn) Listener() *Listener { return c.listener }

// RemoteAddr is the peer's address, zero for a unix connection, and before OnOpen where a name was dialled. It stays
// known after Close.
func (c *Conn) RemoteAddr() netip.AddrPort { return c.remote }

// LocalAddr asks the kernel for the own address; zero for a unix connection and once closed.
func (c *Conn) LocalAddr() netip.AddrPort {
	if c.fd < 0 || c.family == sys.UnixFamily {
		return netip.AddrPort{}
	}
	local, err := c.loop.kernel.LocalAddr(c.fd)
	if err != nil {
		return netip.AddrPort{}
	}
	return sock.Unmap(local)
}

// RemoteName and LocalName ask the kernel for the names of a unix connection, which the side that dialled has none
// of; empty for others and once closed.
func (c *Conn) RemoteName() string { return c.unixName(c.loop.kernel.RemoteUnix) }

// LocalName is the own name: see RemoteName.
func (c *Conn) LocalName() string { return c.unixName(c.loop.kernel.LocalUnix) }

func (c *Conn) unixName(ask func(fd int) (string, error)) string {
	if c.fd < 0 || c.family != sys.UnixFamily {
		return ""
	}
	name, _ := ask(c.fd) // without one it has none to tell
	return name
}

// Pause stops reading. The kernel's buffer fills, and then the peer has to wait. What was read before has been
// delivered; the end of the stream comes after Resume, a reset at once.
//
// A Stop resumes it, and waits, for its grace, for one that is paused again. So OnData may be called while there is
// still no room for what the call before was given: keep the new bytes behind those, and pause again.
func (c *Conn) Pause() {
	c.paused = true
	c.changed()
}

// Resume reads again.
func (c *Conn) Resume() {
	if !c.paused {
		return
	}
	c.paused = false
	if c.timing != nil {
		c.timing.begin(ReadTimeout)
		c.timing.arm()
	}
	c.changed()
	if c.stopping && (c.ended || c.left <= 0) { // whoever pauses in each OnData is told of no other end
		c.finishStop()
	}
	if c.again || c.stopping || c.broken != nil { // what they wait for the poller does not tell
		c.goOn()
	}
}

// goOn has the connection visited, if it reads.
func (c *Conn) goOn() {
	if c.reading() {
		c.loop.becameReady(c.source)
	}
}

// Paused tells whether Pause was called last.
func (c *Conn) Paused() bool { return c.paused }

// Again has OnData called without a read, once, with no bytes: for a layer above that has kept some of what it was
// given. It counts like a read. While the connection is paused it waits, and once the peer has ended it is too late.
func (c *Conn) Again() {
	if c.state >= connClosing {
		return
	}
	c.again = true
	c.goOn()
}

// reading tells that bytes may be read.
func (c *Conn) reading() bool {
	switch c.state {
	case connOpen:
		return !c.paused && !c.resting && !c.ended && c.stopping == c.delivering && c.loop.end.stage() != stageClosing
	case connClosing:
		return c.discard && !c.resting && !c.ended
	default:
		return false
	}
}

// String names the connection in texts: its network and its peer.
func (c *Conn) String() string { return c.name() }

func (c *Conn) inTurnEnd() *bool { return &c.atTurnEnd }

func (c *Conn) name() string {
	switch {
	case c.family != sys.UnixFamily:
		return "tcp " + c.remote.String()
	case c.listener != nil:
		return "unix " + c.listener.unixName
	default:
		return "unix"
	}
}

func (c *Conn) network() string {
	if c.family == sys.UnixFamily {
		return "unix"
	}
	return "tcp"
}

func (c *Conn) opError(op string, err error) error {
	e := &OpError{Op: op, Net: c.network(), Addr: c.remote, Err: err}
	if c.listener != nil {
		e.SourceName = c.listener.unixName
	}
	return e
}

// ConnStats is what a connection has done so far, in bytes. The kernel knows more: see Conn.Info.
type ConnStats struct {
	Read    uint64
	Written uint64 // taken by the kernel
	Queued  int    // taken by Write, and not by the kernel yet, without those of files
}

// Stats is how the connection stands; it stays known after Close.
func (c *Conn) Stats() ConnStats {
	return ConnStats{Read: c.readBytes, Written: c.writtenBytes, Queued: c.out.Bytes()}
}
