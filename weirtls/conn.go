package weirtls

import (
	"crypto/tls"
	"errors"
	"net"
	"net/netip"

	"github.com/weirnet/weir"
)

// Conn is a TLS connection on a loop. All of its methods are for the loop's goroutine.
type Conn struct {
	// Data is the program's own; weirtls does not look at it. Of a connection on which TLS was begun later, it is what
	// the Data of the weir.Conn was.
	Data any

	// Set once.
	raw        *weir.Conn
	set        *settings
	handshakes *Handshakes

	// Loop only, as all that follows, but see wire.
	handler   *Handler
	tls       *tls.Conn // nil before the connection is there
	wire      wire
	handshake *handshake // nil before and after
	phase     phase
	paused    bool // by Pause
	ended     bool // the peer has sent its close_notify, and OnEnd has run
	endWanted bool // CloseWrite was called before the handshake was done
	endSent   bool // the own close_notify is sent
	refused   bool // a Write was: OnDrain is owed
	stopping  bool // OnStop was called
	limit     *closeLimit
	sender    *Sender // nil before the first call of Sender
	failure   error   // of reading, not told yet, as what was read before is to be delivered
	reason    error   // for OnClose; nil: what the connection below tells
}

type phase uint8

const (
	phaseHandshake phase = iota // done by nobody yet
	phaseOpen
	phaseClosing // Close waits for the peer's close_notify, or for what is queued
	phaseClosed  // the connection below is being closed, or is
)

// Server begins TLS as the server on a connection that is open or being dialled, before anything was read of it.
//
// The connection below is TLS's from here on: it must not be written to, read, paused or closed directly, and its
// Data and its handler are replaced. Its time limits, options and statistics are the program's as before.
//
//   - Errors: weir.ErrClosed, and EPIPE after CloseWrite; a Config that makes no sense. The connection is left as it was.
func Server(conn *weir.Conn, cfg Config, h Handler) (*Conn, error) {
	return StartTLS(conn, AsServer, nil, cfg, h)
}

// Client begins TLS as the client on a connection that is open or being dialled. See Server.
func Client(conn *weir.Conn, cfg Config, h Handler) (*Conn, error) {
	return StartTLS(conn, AsClient, nil, cfg, h)
}

var errTwice = errors.New("weirtls: TLS was begun on this connection before")

// StartTLS begins TLS on a connection in the middle of its life, in OnData or any other callback, as STARTTLS, a PROXY
// protocol header or PostgreSQL's SSLRequest have it. What was queued goes out before. read is what was read of it already
// beyond the last byte that was not TLS; it is copied. See Server.
func StartTLS(conn *weir.Conn, role Role, read []byte, cfg Config, h Handler) (*Conn, error) {
	set, err := cfg.resolve(role, h)
	if err != nil {
		return nil, err
	}
	if c, ok := conn.Data.(*Conn); ok && c.raw == conn {
		return nil, errTwice
	}
	if err := conn.Enqueue(nil); err != nil { // nothing is queued, but whether something could be is told
		return nil, err
	}
	c := newConn(conn.Loop(), set)
	c.Data = conn.Data
	c.attach(conn)
	conn.SetHandler(below(c.open))
	c.wire.put(read)
	c.wire.keep()
	if conn.Open() {
		c.begin()
	}
	return c, nil
}

func newConn(l *weir.Loop, set *settings) *Conn {
	c := &Conn{set: set, handler: &set.handler, handshakes: HandshakesOf(l)}
	c.wire.conn, c.wire.spares = c, &c.handshakes.spares
	return c
}

func (c *Conn) attach(raw *weir.Conn) {
	c.raw = raw
	raw.Data = c
}

// below is what the connection below calls. open is called when it is there.
func below(open func(*weir.Conn)) weir.ConnHandler {
	return weir.ConnHandler{
		OnOpen:    open,
		OnData:    func(raw *weir.Conn, b []byte) { connOf(raw).received(b) },
		OnDrain:   func(raw *weir.Conn) { connOf(raw).drained() },
		OnEnd:     func(raw *weir.Conn) { connOf(raw).transportEnded() },
		OnTimeout: func(raw *weir.Conn, what weir.Timeout) { connOf(raw).timedOut(what) },
		OnStop:    func(raw *weir.Conn) { connOf(raw).stop() },
		OnClose:   func(raw *weir.Conn, err error) { connOf(raw).closed(err) },
	}
}

// connOf is the TLS connection over another.
func connOf(raw *weir.Conn) *Conn {
	c, ok := raw.Data.(*Conn)
	if !ok {
		panic("weirtls: the Data of a weir.Conn under TLS was replaced; Conn.Data is the program's")
	}
	return c
}

// ConnOf is the connection that a callback of Config.TLS is about, by ClientHelloInfo.Conn. With Config.Blocking, nothing
// of it but Data may be looked at there, as the loop goes on; false where it is no connection of this package.
func ConnOf(conn net.Conn) (c *Conn, ok bool) {
	w, ok := conn.(*wire)
	if !ok {
		return nil, false
	}
	return w.conn, true
}

// open is called when the connection below is there, if it was not when TLS was begun on it.
func (c *Conn) open(*weir.Conn) {
	if c.handler.OnOpen != nil {
		c.handler.OnOpen(c)
	}
	if c.tls == nil && c.phase == phaseHandshake {
		c.begin()
	}
}

// SetHandler replaces the handler, from the next call on.
func (c *Conn) SetHandler(h Handler) { c.handler = &h }

// Raw is the connection below.
func (c *Conn) Raw() *weir.Conn { return c.raw }

// Loop is the connection's.
func (c *Conn) Loop() *weir.Loop { return c.raw.Loop() }

// RemoteAddr is that of the connection below.
func (c *Conn) RemoteAddr() netip.AddrPort { return c.raw.RemoteAddr() }

// LocalAddr is that of the connection below.
func (c *Conn) LocalAddr() netip.AddrPort { return c.raw.LocalAddr() }

// String names the connection in texts: its network and its peer.
func (c *Conn) String() string { return "tls over " + c.raw.String() }

// ConnectionState is what was agreed on, and false before the handshake is done.
func (c *Conn) ConnectionState() (state tls.ConnectionState, ok bool) {
	if c.tls == nil || c.handshake != nil || c.phase == phaseHandshake { // crypto/tls would wait for itself
		return state, false
	}
	state = c.tls.ConnectionState()
	return state, state.HandshakeComplete
}

// opError is an error of the TLS connection.
func (c *Conn) opError(op string, err error) error {
	return &weir.OpError{Op: op, Net: "tls", Addr: c.raw.RemoteAddr(), Err: err}
}

// Pause stops reading and decrypting. One that is paused before its handshake, or in it, does not go on with that. After
// Close it does nothing.
//
// A Stop of the loop resumes it, as it does with a weir.Conn.
func (c *Conn) Pause() {
	if c.phase >= phaseClosing {
		return
	}
	c.paused = true
	c.sync()
}

// Resume reads again.
func (c *Conn) Resume() {
	if !c.paused {
		return
	}
	c.paused = false
	if c.handshake != nil {
		c.handshake.resumed()
	}
	c.sync()
	c.goOn()
}

// Paused tells whether Pause was called last.
func (c *Conn) Paused() bool { return c.paused }

// sync pauses and resumes the connection below. A handshake that has what it needs does not want more. After the peer's
// close_notify it is read, though nothing is to come, as who writes is to learn of a peer that is gone.
func (c *Conn) sync() {
	if c.phase == phaseClosed {
		return
	}
	pause := !c.ended && (c.paused || c.handshake != nil && !c.handshake.reads())
	switch {
	case pause == c.raw.Paused():
	case pause:
		c.raw.Pause()
	default:
		c.raw.Resume()
	}
}

// goOn has what is left of the last read, or an error that was not told, be seen to: now, or when the connection is
// resumed, as a Stop does below.
func (c *Conn) goOn() {
	switch {
	case c.handshake != nil || c.ended || !c.unread():
	case !c.wire.ended:
		c.raw.Again()
	case c.reading(): // weir calls nothing any more for a peer that has ended
		c.handshakes.later(c)
	}
}
