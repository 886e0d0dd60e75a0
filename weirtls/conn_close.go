package weirtls

import (
	"errors"
	"time"

	"github.com/weirnet/weir"
)

// Close closes the connection: a close_notify goes out behind what is queued, by the Sender, too, and the peer's is
// waited for, so that nothing that is sent to it is lost (RFC 8446, section 6.1). Nothing is delivered any more, and
// OnClose follows. A connection whose handshake is not done is given up.
//
// Where the peer takes nothing of what is queued for Config.CloseTimeout, or has not ended so long after it has, the
// connection is reset and OnClose told weir.ErrTimeout.
//
//   - Errors: weir.ErrClosed when Close was called before, or the connection is closed.
func (c *Conn) Close() error {
	switch {
	case c.phase >= phaseClosing:
		return weir.ErrClosed
	case c.phase == phaseHandshake:
		c.finish(nil)
		return nil
	}
	c.sendEnd()
	if c.ended {
		c.finish(nil)
		return nil
	}
	c.raw.Flush() // what is taken at once does not count as taken later
	c.phase = phaseClosing
	c.paused = false
	c.limitClose()
	c.sync()
	c.goOn()
	return nil
}

// Reset closes the connection at once: the peer reads an error instead of an end, and what is queued on both sides is
// lost. OnClose follows, with nil.
//
//   - Errors: weir.ErrClosed when it is closed already.
func (c *Conn) Reset() error {
	if c.phase == phaseClosed {
		return weir.ErrClosed
	}
	c.reset(nil)
	return nil
}

// finish closes the connection below when what is queued has gone out.
func (c *Conn) finish(why error) {
	if c.phase == phaseClosed {
		return
	}
	c.over(why)
	_ = c.raw.Close()
}

// reset closes the connection below at once.
func (c *Conn) reset(why error) {
	if c.phase == phaseClosed {
		return
	}
	c.over(why)
	_ = c.raw.Reset()
}

// over ends everything that is above the connection below.
func (c *Conn) over(why error) {
	c.phase = phaseClosed
	c.reason = why
	c.refused = false
	c.endSender()
	if c.limit != nil {
		c.limit.timer.Stop()
	}
	if h := c.handshake; h != nil {
		if _, failed := why.(*HandshakeError); !failed {
			c.handshakes.counts.givenUp.Add(1)
		}
		h.giveUp()
	}
}

// stop is called when a Stop of the loop is about to close the connection below.
func (c *Conn) stop() {
	c.stopping = true
	c.moveSender()
	if c.phase == phaseOpen && c.handler.OnStop != nil {
		c.handler.OnStop(c)
	}
	c.sayFarewell()
}

// sayFarewell sends the close_notify of a Stop, behind what OnStop wrote: where some of that was refused, OnDrain is
// waited for.
func (c *Conn) sayFarewell() {
	if c.phase == phaseOpen && !c.refused && !c.endSent {
		c.writeEnd()
	}
}

// closed is called when the connection below is.
func (c *Conn) closed(err error) {
	if c.phase != phaseClosed {
		c.lost(err)
	}
	if c.reason != nil {
		err = c.reason
	}
	if c.handler.OnClose != nil {
		c.handler.OnClose(c, err)
	}
}

// lost is called when the connection below was closed from its side.
func (c *Conn) lost(err error) {
	if c.phase == phaseHandshake && err != nil && !errors.Is(err, weir.ErrClosed) && !dialFailed(err) {
		err = c.handshakeError(KindGone, err)
	}
	c.over(err)
}

// dialFailed tells that the connection below never came about.
func dialFailed(err error) bool {
	op, ok := errors.AsType[*weir.OpError](err)
	return ok && op.Op == "dial"
}

// closeLimit is how long a Close may take.
type closeLimit struct {
	conn    *Conn
	timer   *weir.Timer
	after   time.Duration
	written uint64 // when it began
}

func (c *Conn) limitClose() {
	if c.set.closeTimeout == 0 {
		return
	}
	c.raw.Flush() // what goes out at once is no sign that the peer takes anything
	l := &closeLimit{conn: c, after: c.set.closeTimeout, written: c.raw.Stats().Written}
	l.timer = c.Loop().AfterFunc(l.after, l.over)
	c.limit = l
}

// over begins the limit again where the peer has taken something meanwhile.
func (l *closeLimit) over() {
	s := l.conn.raw.Stats()
	if s.Written > l.written {
		l.written = s.Written
		l.timer.Reset(l.after)
		return
	}
	l.conn.reset(l.conn.opError("close", weir.ErrTimeout))
}
