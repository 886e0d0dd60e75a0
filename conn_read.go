package weir

import (
	"github.com/weirnet/weir/internal/stream"
)

// visit reads while the bound allows and there is something.
//
// It ends in one of three ways. There is no more to read. The connection is over. Or it stopped on its bound, and
// then it has seen neither: it stays ready, and nothing is to be concluded.
func (c *Conn) visit() (more bool) {
	if c.state == connDialling {
		c.dialled()
		c.loop.charge(1)
		if c.loop.end.begun {
			c.stop() // it was adopted just before
		}
		return false
	}
	most := c.limits.bound.most()
	for most > 0 && c.loop.ring.Open() && !c.loop.stopDue() {
		if !c.reading() {
			return false
		}
		if !c.readOnce() {
			return c.again && c.reading()
		}
		most--
	}
	if !c.reading() {
		return false
	}
	c.loop.stats.streams.boundStops.Add(1)
	return true
}

// readOnce reads, delivers, and tells whether there may be more.
func (c *Conn) readOnce() (more bool) {
	l := c.loop
	if c.again {
		c.again = false
		c.deliver(nil)
		l.charge(1)
		return true
	}
	buf := l.readBuffer()
	n, err := c.read(buf)
	l.stats.streams.readCalls.Add(1)
	switch {
	case err != nil:
		c.readFailed(err)
		return false
	case n == 0:
		c.end()
		l.charge(1)
		return false
	}
	c.readBytes += uint64(n)
	l.stats.streams.readBytes.Add(uint64(n))
	c.touchRead()
	if c.state == connOpen { // OnFiles may have closed it
		c.deliver(buf[:n])
	} else {
		l.stats.streams.discarded.Add(uint64(n))
	}
	l.charge(1)
	return !c.drainedBy(n, len(buf))
}

func (c *Conn) read(buf []byte) (n int, err error) {
	if c.limits.files == 0 || c.discard {
		return c.loop.kernel.Read(c.fd, buf)
	}
	return c.readFiles(buf)
}

func (c *Conn) deliver(b []byte) {
	if c.handler.OnData != nil {
		c.handler.OnData(c, b)
	}
	c.flushAfterCallback()
}

// drainedBy tells whether a read showed that there is no more for now. Under Share a short one is enough: what comes
// later makes the connection ready again, as does an end that is behind it, and a read that would only answer EAGAIN
// is saved. The other bounds go on to the EAGAIN, as the loops do that they stand for. So does a connection that is to
// be closed then: an end that is there has to be told before.
func (c *Conn) drainedBy(n, size int) bool {
	if !c.stopping {
		return n < size && c.limits.bound.kind == boundShare && c.broken == nil
	}
	if c.left -= n; c.left > 0 {
		return false
	}
	c.finishStop()
	return true
}

// readFailed handles the error of a read.
func (c *Conn) readFailed(err error) {
	l := c.loop
	switch stream.ReadClass(err) {
	case stream.Wait:
		l.settle()
		switch {
		case c.broken != nil:
			c.abort(c.broken) // what the peer sent before is read, and more cannot be expected
		case c.stopping:
			c.finishStop()
		}
	case stream.Memory:
		l.charge(1)
		c.rest()
	default:
		c.close(c.opError("receive", err))
		l.charge(1)
	}
}

// end is called when the peer's direction is over.
func (c *Conn) end() {
	c.ended = true
	c.changed()
	switch {
	case c.state == connClosing:
		c.close(nil)
	case c.broken != nil:
		c.close(c.broken)
	case c.handler.OnEnd == nil:
		_ = c.Close()
	default:
		c.handler.OnEnd(c)
		c.flushAfterCallback()
		c.finishEnds()
		if c.stopping {
			c.finishStop()
		}
	}
}

// finishEnds closes a connection of which both directions are over.
func (c *Conn) finishEnds() {
	if c.ended && c.endSent && c.state == connOpen {
		c.close(nil)
	}
}

// rest leaves the connection alone for a moment: the kernel had no memory for it.
func (c *Conn) rest() {
	if c.resting {
		return
	}
	c.resting = true
	c.changed()
	c.loop.AfterFunc(shortestRest, func() {
		c.resting = false
		if c.state == connClosed {
			return
		}
		c.flushDue = true
		c.changed()
		c.goOn()
		if c.timing != nil {
			c.timing.arm()
		}
	})
}

// readBuffer is where connections read to. It is made when the first does.
func (l *Loop) readBuffer() []byte {
	if l.readBuf == nil {
		l.readBuf = make([]byte, readBytes)
	}
	return l.readBuf
}

// readBytes is the size of the read buffer: two of them fit a second-level cache, and a short read, which saves
// a call, is the rule.
const readBytes = 64 << 10
