package weirtls

import (
	"crypto/tls"
	"errors"
	"io"

	"github.com/weirnet/weir"
)

// plainBytes is how much is decrypted before it is delivered: what one read of the loop brings, of 64 KiB, and a record
// that was begun before. With less, the rest of each read would be kept for another visit.
const plainBytes = 80 << 10

// received is called with what was read of the connection below, or with nothing where Again asked for it.
func (c *Conn) received(b []byte) {
	if c.phase == phaseClosed || c.ended {
		return
	}
	c.stopResumes()
	switch {
	case c.handshake != nil:
		c.handshake.received(b)
		return
	case len(b) > 0:
		c.wire.put(b)
	}
	c.read()
	c.wire.keep()
}

// transportEnded is called when the peer's direction of the connection below is over.
func (c *Conn) transportEnded() {
	if c.phase == phaseClosed || c.ended {
		return
	}
	c.stopResumes()
	if c.handshake != nil {
		c.handshake.transportEnded()
		return
	}
	c.wire.ended = true
	c.read()
}

// stopResumes takes note of a Stop, which resumes what is paused.
func (c *Conn) stopResumes() {
	if c.paused && !c.raw.Paused() {
		c.paused = false
		if c.handshake != nil {
			c.handshake.resumed()
		}
	}
}

// reading tells that bytes may be decrypted.
func (c *Conn) reading() bool {
	return !c.paused && !c.ended && (c.phase == phaseOpen || c.phase == phaseClosing)
}

// read decrypts and delivers until nothing is left, or the share of the visit is used up, and then goes on in the next.
func (c *Conn) read() {
	for first := true; c.reading() && c.unread(); first = false {
		if !first && c.Loop().Expired() {
			break
		}
		if c.failure == nil {
			var n int
			if n, c.failure = c.decrypt(c.handshakes.plainBuffer()); n > 0 {
				c.deliver(c.handshakes.plain[:n])
			}
		}
		if c.failure != nil && c.reading() {
			c.readFailed(c.failure)
			return
		}
	}
	c.goOn()
}

// unread tells that there is something to read, or to tell of it.
func (c *Conn) unread() bool { return c.failure != nil || c.wire.pending() }

// decrypt fills buf with the plaintext of records, as long as a whole one has room, and tells of an error that ends the
// reading.
func (c *Conn) decrypt(buf []byte) (n int, err error) {
	c.wire.records = 0
	for len(buf)-n >= mostPlain && c.wire.pending() {
		c.wire.answers.wanted = true
		m, err := c.tls.Read(buf[n:])
		c.wire.answers.wanted = false
		n += m
		switch {
		case c.wire.answers.tooMany():
			return n, errAnswers
		case err == errEmpty:
			return n, nil
		case err != nil:
			return n, err
		}
	}
	return n, nil
}

func (c *Conn) deliver(b []byte) {
	if c.phase == phaseOpen && c.handler.OnData != nil {
		c.handler.OnData(c, b)
	}
}

// readFailed handles what crypto/tls says when it reads no further.
func (c *Conn) readFailed(err error) {
	switch {
	case err == io.EOF && !c.wire.told:
		c.end()
	case c.wire.told && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)):
		if c.phase == phaseClosing {
			c.finish(nil) // who ends like this has at least seen our end
			return
		}
		c.finish(c.opError("receive", ErrTruncated))
	default:
		c.finish(c.opError("receive", plainAlert(err)))
	}
}

// end is called when the peer has sent its close_notify.
func (c *Conn) end() {
	c.ended = true
	c.wire.in = nil
	c.sync()
	if c.phase == phaseClosing {
		c.finish(nil)
		return
	}
	onEnd := c.handler.OnEnd
	if onEnd != nil {
		onEnd(c)
	}
	if c.phase == phaseOpen && (onEnd == nil || c.endSent || !c.halfCloses()) {
		_ = c.Close()
	}
}

// halfCloses tells that one direction can go on without the other (RFC 8446, section 6.1; not so RFC 5246, section
// 7.2.1).
func (c *Conn) halfCloses() bool { return c.tls.ConnectionState().Version >= tls.VersionTLS13 }

// timedOut is called when a time limit of the connection below is over.
func (c *Conn) timedOut(what weir.Timeout) {
	err := c.opError(what.String(), weir.ErrTimeout)
	switch {
	case c.ended && what == weir.ReadTimeout: // nothing is to come
	case c.phase != phaseClosing && c.handler.OnTimeout != nil:
		c.handler.OnTimeout(c, what)
	case c.handshake != nil:
		c.reset(c.handshakeError(KindTimeout, err))
	default:
		c.reset(err)
	}
}
