package weir

import (
	"errors"
	"syscall"

	"github.com/weirnet/weir/internal/stream"
)

// Write takes as much of b as there is room for: it is copied, or written at once where it is large, and goes out in
// the order of the calls, after the callback that runs now, together.
//
//   - Shape: n < len(b) comes with ErrWouldBlock, and OnDrain follows. Nothing is left to chance: n bytes have been
//     taken, the rest has not.
//   - Errors: ErrClosed after Close, *OpError: EPIPE after CloseWrite or when the peer takes no more, which OnClose
//     tells, too, with the reason.
func (c *Conn) Write(b []byte) (n int, err error) {
	if err := c.mayWrite(); err != nil {
		return 0, err
	}
	if len(b) >= directBytes && c.startThrough() {
		c.loop.vector.Bufs = append(c.loop.vector.Bufs, b)
		if n = c.writeThrough(len(b)); c.brokeOff() {
			return n, c.brokeOffError()
		}
	}
	taken, err := c.queue(b[n:])
	return n + taken, err
}

// Writev is Write of several buffers, one behind the other; n counts over all.
//
//   - Errors: as Write.
func (c *Conn) Writev(bufs [][]byte) (n int, err error) {
	if err := c.mayWrite(); err != nil {
		return 0, err
	}
	total := 0
	for _, b := range bufs {
		total += len(b)
	}
	if total >= directBytes && c.startThrough() {
		v := c.loop.vector
		size := 0
		for _, b := range bufs {
			if len(b) > 0 && len(v.Bufs) < cap(v.Bufs) {
				v.Bufs = append(v.Bufs, b)
				size += len(b)
			} else if len(b) > 0 {
				break
			}
		}
		if n = c.writeThrough(size); c.brokeOff() {
			return n, c.brokeOffError()
		}
	}
	skip := n
	for _, b := range bufs {
		if skip >= len(b) {
			skip -= len(b)
			continue
		}
		taken, err := c.queue(b[skip:])
		skip = 0
		n += taken
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// brokeOff tells that a write has ended the connection, or the direction.
func (c *Conn) brokeOff() bool { return c.state == connClosed || c.broken != nil }

// brokeOffError is what a Write answers in which that came to pass. Of what it had taken, some may have gone.
func (c *Conn) brokeOffError() error { return c.opError("send", syscall.EPIPE) }

// queue takes what there is room for, and makes room first where the kernel may have some.
func (c *Conn) queue(b []byte) (n int, err error) {
	n = c.enqueueSome(b)
	if n < len(b) && c.mayFlush() {
		if c.flush(); c.brokeOff() {
			return n, c.brokeOffError()
		}
		n += c.enqueueSome(b[n:])
	}
	if n < len(b) {
		c.refuse()
		return n, ErrWouldBlock
	}
	return n, nil
}

// refuse takes note of a write that there was no room for.
func (c *Conn) refuse() {
	c.oweDrain()
	c.loop.stats.streams.refused.Add(1)
}

// oweDrain has OnDrain called when there is room. One that is due for an earlier refusal has been overtaken: it would
// find what is full again.
func (c *Conn) oweDrain() { c.refused, c.drained = true, false }

func (c *Conn) enqueueSome(b []byte) (n int) {
	n = min(len(b), max(c.limits.writeBytes-c.out.Bytes(), 0))
	c.enqueue(b[:n])
	return n
}

// Enqueue is Write without a limit, for layers that cannot take a part back, such as TLS. Who calls it keeps the limit,
// by Room or OnDrain: that comes as if Write had been refused when there is no room left.
//
//   - Errors: as Write, without ErrWouldBlock.
func (c *Conn) Enqueue(b []byte) error {
	if err := c.mayWrite(); err != nil {
		return err
	}
	c.enqueue(b)
	if c.out.Bytes() >= c.limits.writeBytes {
		c.oweDrain()
	}
	return nil
}

// Flush writes what is queued now, as far as the kernel takes it, until half a MiB has gone, instead of after the
// callback: for one that makes a lot, so that it need not wait in memory. What comes of it is told after the callback.
func (c *Conn) Flush() {
	if c.mayFlush() && !c.out.Empty() {
		c.flush()
	}
}

// Room is how many bytes Write would take now.
func (c *Conn) Room() int {
	if c.mayWrite() != nil {
		return 0
	}
	return max(c.limits.writeBytes-c.out.Bytes(), 0)
}

func (c *Conn) enqueue(b []byte) {
	if len(b) == 0 {
		return
	}
	begins := c.out.Empty()
	c.out.Push(&c.loop.chunks, b)
	if begins {
		c.touchWrite()
	}
	c.flushSoon()
}

// mayWrite is nil while writes are taken.
func (c *Conn) mayWrite() error {
	switch {
	case c.state >= connClosing:
		return ErrClosed
	case c.endWanted, c.broken != nil:
		return c.opError("send", syscall.EPIPE)
	}
	return nil
}

// flushSoon has what is queued go out: when the callback of the visit returns, or at the end of the turn.
func (c *Conn) flushSoon() {
	c.flushDue = !c.blocked && !c.resting && c.state != connDialling
	switch {
	case !c.flushDue:
		c.publish()
	case c.loop.visited != visitor(c):
		c.loop.turnEnd.add(c)
	}
}

// flushAfterCallback writes what the connection's own visit has queued.
func (c *Conn) flushAfterCallback() {
	if c.flushDue {
		c.flushDue = false
		c.flush()
	}
}

// directBytes is how much is worth a system call of its own, to save the copy.
const directBytes = 16 << 10

// flushBytesAtOnce is how much a flush writes before others have their turn.
const flushBytesAtOnce = 512 << 10

// startThrough tells whether what is written now can go out at once, without a copy, and then has the loop's vector
// hold what is queued before it.
func (c *Conn) startThrough() bool {
	if c.state != connOpen || c.blocked || c.resting || c.out.Items() > 0 || c.out.Bytes() >= directBytes {
		return false
	}
	v := c.loop.vector
	c.out.Next(v)
	return len(v.Bufs) < cap(v.Bufs)
}

// writeThrough writes the loop's vector, the queue and size bytes behind it, and returns how many of those have gone.
func (c *Conn) writeThrough(size int) (n int) {
	l := c.loop
	queued := c.out.Bytes()
	sent, err := l.kernel.Write(c.fd, l.vector, false)
	l.stats.streams.writeCalls.Add(1)
	if err != nil {
		c.writeFailed(err)
		return 0
	}
	c.wrote(sent, min(sent, queued))
	if sent < queued+size {
		c.blocked = true
		c.changed()
	}
	return max(sent-queued, 0)
}

// wrote takes note of bytes that the kernel has taken, some of them from the queue.
func (c *Conn) wrote(n, queued int) {
	c.writtenBytes += uint64(n)
	c.loop.stats.streams.writtenBytes.Add(uint64(n))
	c.touchWrite()
	if queued > 0 {
		sent := c.out.Wrote(&c.loop.chunks, queued)
		c.loop.stats.streams.filesSent.Add(uint64(len(sent)))
		c.closeFDs(sent)
	}
	c.roomAgain()
}

// roomAgain has OnDrain called where it is owed, and the Sender go on.
func (c *Conn) roomAgain() {
	if c.out.Bytes() > c.limits.writeBytes/2 || c.out.Items() > maxItems/2 {
		return
	}
	if c.refused {
		c.refused, c.drained = false, true
		c.loop.turnEnd.add(c)
	}
	if c.sender != nil {
		c.sender.roomAgain()
	}
}

// flush writes what is queued, as far as the kernel takes it. A lot of it goes out in pieces, between which others
// have their turn.
func (c *Conn) flush() {
	for done := 0; c.mayFlush() && !c.out.Empty(); {
		if done >= flushBytesAtOnce {
			c.flushDue = true
			c.loop.turnEnd.add(c)
			return
		}
		n, ok := c.flushPart()
		if !ok {
			break
		}
		done += n
	}
	c.afterFlush()
}

// mayFlush tells that the kernel may take something.
func (c *Conn) mayFlush() bool {
	return (c.state == connOpen || c.state == connClosing) && !c.blocked && !c.resting && c.broken == nil
}

// flushPart makes one call.
func (c *Conn) flushPart() (n int, ok bool) {
	l := c.loop
	part := c.out.Next(l.vector)
	if part.Kind == stream.FileBytes {
		return c.flushFile(part.File)
	}
	var err error
	if part.Kind == stream.Descriptors {
		n, err = l.kernel.WriteFiles(c.fd, l.vector, part.FDs)
	} else {
		n, err = l.kernel.Write(c.fd, l.vector, part.More)
	}
	l.stats.streams.writeCalls.Add(1)
	if err != nil {
		c.writeFailed(err)
		return 0, false
	}
	size := 0
	for _, b := range l.vector.Bufs {
		size += len(b)
	}
	c.wrote(n, n)
	if n < size {
		c.blocked = true
		c.changed()
		return n, false
	}
	return n, true
}

// afterFlush ends the writing direction where that was asked for and nothing is queued any more.
func (c *Conn) afterFlush() {
	c.publish()
	if !c.endWanted || c.endSent || !c.out.Empty() || c.state != connOpen || c.broken != nil {
		return
	}
	if c.shutDown() {
		c.finishEnds()
	}
}

// writeFailed handles the error of a write.
func (c *Conn) writeFailed(err error) {
	switch stream.WriteClass(err) {
	case stream.Wait:
		c.blocked = true
		c.changed()
	case stream.Memory:
		c.rest()
	default:
		c.breakOff(c.opError("send", err))
	}
}

// breakOff ends the writing direction: nobody takes what is queued. What the peer sent before is still read, and then
// the connection is closed.
func (c *Conn) breakOff(err error) {
	if c.state == connClosing || c.ended || c.paused && errors.Is(err, syscall.ECONNRESET) {
		c.close(err)
		return
	}
	c.broken = err
	c.giveUpQueue()
	c.endSender()
	c.refused, c.drained = false, false
	c.changed()
	c.goOn()
}

// CloseWrite ends the writing direction when what is queued, by the Sender, too, has gone out: the peer reads its end.
// Reading goes on. When the peer has ended, too, the connection is closed.
//
//   - Errors: ErrClosed after Close.
func (c *Conn) CloseWrite() error {
	if c.state >= connClosing {
		return ErrClosed
	}
	c.moveSender()
	c.endWanted = true
	if c.state == connOpen {
		c.flushDue = !c.blocked
		c.changed()
	}
	return nil
}
