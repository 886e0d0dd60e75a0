package weir

import (
	"syscall"

	"github.com/weirnet/weir/internal/stream"
	"github.com/weirnet/weir/internal/sys"
)

// Close closes the connection when the kernel has taken what is queued, at once where it can. Nothing is delivered any
// more, and OnClose follows. One that is not there yet is given up, with what is queued for it.
//
// Where the peer has sent something that was not read, which would have a close reset the connection and take from the
// peer what it was sent last, the writing direction is ended and what comes thrown away until the peer ends its own.
// Where the peer takes nothing for ConnConfig.CloseTimeout, or has not ended so long after it was told, the connection is
// reset and OnClose told ErrTimeout.
//
//   - Errors: ErrClosed when Close was called before, or the connection is closed.
func (c *Conn) Close() error {
	switch {
	case c.state >= connClosing:
		return ErrClosed
	case c.state == connDialling:
		c.close(nil)
		return nil
	}
	c.moveSender()
	c.state = connClosing
	c.again, c.refused, c.drained = false, false, false
	c.changed()
	if c.out.Items() == 0 {
		c.flush()
	}
	if c.state == connClosing && c.out.Empty() {
		c.finishClose()
	}
	if c.state == connClosing && !c.discard {
		c.limitClose()
	}
	return nil
}

// Reset closes the connection at once: the peer reads an error instead of an end (RST), and what is queued on both
// sides is lost. OnClose follows, with nil.
//
//   - Errors: ErrClosed when it is closed already.
//   - Platforms: a unix socket has no reset: the peer reads the end behind what the kernel has.
func (c *Conn) Reset() error {
	if c.state == connClosed {
		return ErrClosed
	}
	c.abort(nil)
	return nil
}

func (c *Conn) abort(why error) {
	c.resetAtClose()
	c.close(why)
}

// resetAtClose has the peer read an error, where an end would say that it has got everything.
func (c *Conn) resetAtClose() {
	if c.fd >= 0 && c.family != sys.UnixFamily && !c.shared {
		_ = c.loop.kernel.SetOption(c.fd, sys.Linger, 0) // at worst the peer reads an end
	}
}

// finishClose closes a connection that has written everything.
func (c *Conn) finishClose() {
	switch {
	case c.discard:
		return // until the peer closes
	case c.ended || c.shared || c.broken != nil:
		c.close(c.broken)
		return
	}
	switch unread, err := c.unread(); {
	case err != nil:
		c.close(c.opError("receive", err))
	case !unread:
		c.close(nil)
	default:
		c.discard = true
		c.limitClose()
		if c.endSent || c.shutDown() {
			c.changed()
		}
	}
}

// shutDown tells the peer that the writing direction is over, or closes the connection where the kernel refuses. A read
// will tell of one that is gone.
func (c *Conn) shutDown() (ok bool) {
	c.endSent = true
	if err := c.loop.kernel.CloseWrite(c.fd); err != nil && err != syscall.ENOTCONN {
		c.close(c.opError("shutdown", err))
		return false
	}
	return true
}

// unread tells whether the peer has sent something that nobody has read. A look takes one piece of it away.
func (c *Conn) unread() (bool, error) {
	n, err := c.loop.kernel.Read(c.fd, c.loop.scratchBuffer()[:])
	c.readBytes += uint64(n)
	c.loop.stats.streams.readBytes.Add(uint64(n))
	c.loop.stats.streams.discarded.Add(uint64(n))
	if err != nil && stream.ReadClass(err) != stream.Gone {
		err = nil
	}
	return n > 0, err
}

// scratchBytes are for what is thrown away while a callback may still have the read buffer.
const scratchBytes = 4 << 10

func (l *Loop) scratchBuffer() *[scratchBytes]byte {
	if l.scratch == nil {
		l.scratch = new([scratchBytes]byte)
	}
	return l.scratch
}

func (c *Conn) close(why error) {
	if why == ErrClosed {
		c.flush() // half a MiB of it, as far as the kernel takes it at once
	}
	if c.state == connClosed {
		return
	}
	l := c.loop
	if c.endSender() > 0 || !c.out.Empty() {
		c.resetAtClose()
	}
	c.endDial()
	came := c.state != connDialling
	c.state = connClosed
	c.endDelivery()
	c.giveUpQueue()
	c.publish()
	c.stopTiming()
	l.table.remove(c.token)
	l.ring.Remove(c.source)
	c.closeDescriptor()
	c.countClosed(came, why)
	if c.listener != nil {
		c.listener.left()
	}
	c.closeErr, c.closeDue = why, true
	c.flushDue, c.drained, c.stopDue, c.again = false, false, false, false
	l.turnEnd.add(c)
}

func (c *Conn) closeDescriptor() {
	if c.fd < 0 {
		return
	}
	if !c.outside {
		_ = c.loop.poller.Remove(c.fd) // before close: a duplicate of the descriptor would keep it registered
	}
	fd := c.fd
	c.fd = -1
	_ = c.loop.kernel.Close(fd)
	c.loop.descriptorFreed()
}

// giveUpQueue drops what is queued to be written.
func (c *Conn) giveUpQueue() {
	l := c.loop
	l.stats.streams.unsentBytes.Add(uint64(c.out.Bytes()))
	c.out.Clear(&l.chunks, c.closeFD, func(f *stream.File) { c.fileDone(f, ErrClosed) })
}

// stop has what the kernel has received for the connection delivered; closeStopped follows.
func (c *Conn) stop() {
	switch {
	case c.state == connDialling && c.dial == nil:
		return // it was adopted: its first visit is to come, and sees to that
	case c.state == connDialling:
		c.close(nil)
		return
	case c.state != connOpen:
		return
	}
	c.stopping, c.delivering = true, true
	c.loop.delivering++
	c.left = max(c.receivedAtMost(), 1)
	c.Resume()
	if c.ended {
		c.finishStop()
		return
	}
	c.loop.becameReady(c.source)
}

// finishStop ends the delivery of what was received before a Stop.
func (c *Conn) finishStop() {
	if c.delivering && !c.paused && !(c.again && c.reading()) {
		c.endDelivery()
	}
}

// endDelivery takes note that nothing of what was received before a Stop is left. The last connection has all of them
// closed: one may be written to by what another delivers.
func (c *Conn) endDelivery() {
	if !c.delivering {
		return
	}
	l := c.loop
	c.delivering = false
	c.changed()
	if l.delivering--; l.delivering > 0 {
		return
	}
	for _, s := range l.table.slots {
		if other, ok := s.source.(*Conn); ok && other.stopping {
			other.changed()
		}
	}
}

// closeStopped closes a connection that a Stop has nothing left to do for. Who was refused a Write has OnDrain first, and
// then, as all have, OnStop.
func (c *Conn) closeStopped() {
	if !c.stopDelivered() {
		return
	}
	if c.handler.OnStop == nil || c.stopTold {
		_ = c.Close()
		return
	}
	c.stopDue = true
}

// tellStop calls OnStop, unless something has come between. What the Sender took goes out before what that writes, and
// what others write after it is refused.
func (c *Conn) tellStop() {
	if !c.stopDelivered() {
		return
	}
	c.stopTold = true
	c.moveSender()
	c.handler.OnStop(c)
	c.closeStopped()
}

// stopDelivered tells that a Stop has delivered everything, and that this connection is owed no OnDrain. Who was told
// does not wait again, for a connection that a listener has accepted since.
func (c *Conn) stopDelivered() bool {
	delivered := c.stopTold || c.stopping && c.loop.delivering == 0
	return delivered && c.state == connOpen && !c.refused && !c.drained
}

// receivedAtMost is a number of bytes that the kernel cannot hold more of. Those of a unix socket are in the buffer of
// the one that sent them, which is taken to be as the own one.
func (c *Conn) receivedAtMost() int {
	buffer := sys.RecvBuffer
	if c.family == sys.UnixFamily {
		buffer = sys.SendBuffer
	}
	limit, err := c.loop.kernel.GetOption(c.fd, buffer)
	if err != nil {
		return 0
	}
	return limit
}
