package weirtls

import (
	"syscall"

	"github.com/weirnet/weir"
)

// flushBytes of ciphertext go to the kernel at once, while they are in the processor's cache.
const flushBytes = 128 << 10

// Write encrypts as much of b as there is room for, and queues it: ciphertext that the kernel has not taken is limited
// by ConnConfig.WriteBufferBytes of the connection below, give or take a record. It goes out as weir's Write.
//
//   - Shape: n < len(b) comes with weir.ErrWouldBlock, and OnDrain follows; n bytes have been taken, the rest has not.
//     Before the handshake is done nothing is taken, and OnDrain follows OnHandshake.
//   - Errors: weir.ErrClosed after Close; *weir.OpError: EPIPE after CloseWrite or when the peer takes no more, which
//     OnClose tells, too, with the reason.
func (c *Conn) Write(b []byte) (n int, err error) {
	switch {
	case c.phase >= phaseClosing:
		return 0, weir.ErrClosed
	case c.endSent, c.endWanted:
		return 0, c.opError("send", syscall.EPIPE)
	case c.phase == phaseHandshake:
		c.refused = true
		return 0, weir.ErrWouldBlock
	}
	for n < len(b) {
		if !c.room() {
			c.refused = true
			return n, weir.ErrWouldBlock
		}
		taken, err := c.seal(b[n:min(n+mostPlain, len(b))])
		n += taken
		if err != nil {
			return n, c.opError("send", syscall.EPIPE)
		}
	}
	return n, nil
}

// seal encrypts a record's worth, and queues it, whatever room there is.
func (c *Conn) seal(b []byte) (n int, err error) {
	if n, err = c.tls.Write(b); err == nil && c.raw.Stats().Queued >= flushBytes {
		c.raw.Flush()
	}
	return n, err
}

// room tells that something can be queued, and has the kernel make some where there is none. A connection that takes
// nothing any more has room: crypto/tls is to learn of it.
func (c *Conn) room() bool {
	if c.raw.Room() == 0 && c.raw.Stats().Queued > 0 {
		c.raw.Flush()
		return c.raw.Room() > 0 || c.raw.Stats().Queued == 0
	}
	return true
}

// drained is called when half of the write buffer or less waits.
func (c *Conn) drained() {
	c.roomForSender()
	if !c.refused || c.phase != phaseOpen {
		return
	}
	c.refused = false
	if c.handler.OnDrain != nil {
		c.handler.OnDrain(c)
	}
	if c.stopping {
		c.sayFarewell()
	}
}

// CloseWrite ends the writing direction behind what is queued, by the Sender, too, with a close_notify: the peer reads
// its end. Reading goes on. When the peer has ended, too, the connection is closed. Over TLS 1.2, which has no half-closed
// connections (RFC 5246, section 7.2.1), a peer may end at once, too, instead of answering. Before the handshake is done
// it waits for that.
//
//   - Errors: weir.ErrClosed after Close.
func (c *Conn) CloseWrite() error {
	switch {
	case c.phase >= phaseClosing:
		return weir.ErrClosed
	case c.phase == phaseHandshake:
		c.endWanted = true
		c.moveSender()
		return nil
	case c.endSent:
		return nil
	}
	c.sendEnd()
	if c.ended {
		return c.Close()
	}
	return nil
}

// sendEnd sends the close_notify, and ends the direction of the connection below with it.
func (c *Conn) sendEnd() {
	if c.endSent {
		return
	}
	c.moveSender()
	c.writeEnd()
	if c.wire.ended && !c.ended && c.unread() {
		return // with both directions over the connection below would close before all is delivered, which sees to it itself
	}
	_ = c.raw.CloseWrite()
}

// writeEnd queues the close_notify, the last that the wire takes. That the peer does not take it any more is told by the
// connection below.
func (c *Conn) writeEnd() {
	_ = c.tls.CloseWrite()
	c.endSent, c.refused = true, false
}
