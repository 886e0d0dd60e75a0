package weir

import (
	"syscall"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
)

// ready is called with what the poller saw.
func (c *Conn) ready(r poll.Ready) {
	if c.state == connDialling {
		c.loop.becameReady(c.source)
		return
	}
	if r&poll.Writable != 0 && c.blocked {
		c.blocked, c.flushDue = false, true
		c.changed()
	}
	if r&(poll.Failed|poll.HungUp) != 0 && !c.reading() {
		c.ailing(r)
		return
	}
	c.failed = c.failed || r&poll.Failed != 0
	if r&(poll.Readable|poll.Failed|poll.HungUp) != 0 {
		c.goOn()
	}
}

// ailing sees to a connection that nobody reads, and that is broken or over: the poller would tell of it for ever.
func (c *Conn) ailing(r poll.Ready) {
	if r&poll.Failed != 0 {
		if errno, err := c.loop.kernel.GetOption(c.fd, sys.SocketError); err == nil && errno != 0 {
			c.close(c.opError("receive", syscall.Errno(errno)))
			return
		}
		if r&poll.HungUp == 0 && c.dropReports() {
			return
		}
	}
	if !c.out.Empty() {
		c.blocked, c.flushDue = false, true // nobody takes it any more, which the kernel will say
		c.changed()
	}
	c.leavePoller()
}

// clearFailure sees to an error of which no read has told anything, and which the poller would tell of for ever.
func (c *Conn) clearFailure() {
	if c.failed = false; !c.dropReports() {
		c.rest()
	}
}

// dropReports empties the error queue of a socket whose opener has asked for time stamps or ICMP errors (IP_RECVERR,
// SO_TIMESTAMPING), and tells whether there was anything in it.
func (c *Conn) dropReports() (any bool) {
	for range reportDrops {
		if _, err := c.loop.kernel.RecvErrors(c.fd, c.loop.icmp, reportSlots); err != nil {
			break
		}
		any = true
	}
	return any
}

// reportDrops is how many calls empty an error queue at a time; the poller tells if there is more.
const reportDrops = 16

// leavePoller takes the connection out of the poller until it reads again, as neither errors nor a hang-up can be
// masked there.
func (c *Conn) leavePoller() {
	if !c.outside {
		c.outside = c.loop.poller.Remove(c.fd) == nil
	}
}

// changed puts what the connection asks of the poller in order at the end of the turn.
func (c *Conn) changed() {
	if c.state != connClosed {
		c.loop.turnEnd.add(c)
	}
}

// endTurn writes what is queued, then runs one callback that was put off.
func (c *Conn) endTurn() (more bool) {
	if c.flushDue {
		c.flushDue = false
		c.flush()
	}
	c.closeStopped()
	if c.state == connClosing && c.out.Empty() {
		c.finishClose()
	}
	c.publish()
	c.syncInterest()
	switch {
	case len(c.filesDone) > 0:
		f := c.filesDone[0]
		c.filesDone = c.filesDone[1:]
		f.done(f.err)
	case c.drained:
		c.drained = false
		if c.handler.OnDrain != nil {
			c.handler.OnDrain(c)
		}
		if c.stopping {
			c.changed()
		}
	case c.stopDue:
		c.stopDue = false
		c.tellStop()
	case c.closeDue:
		c.closeDue = false
		if c.handler.OnClose != nil {
			c.handler.OnClose(c, c.closeErr)
		}
	}
	return c.flushDue || len(c.filesDone) > 0 || c.drained || c.stopDue || c.closeDue
}

// syncInterest tells the poller what changed since it was last told.
func (c *Conn) syncInterest() {
	if c.fd < 0 || c.state == connDialling {
		return
	}
	var want poll.Interest
	if c.reading() {
		want |= poll.Read
	}
	if c.blocked && !c.resting {
		want |= poll.Write
	}
	var err error
	switch {
	case c.outside && want&poll.Read != 0:
		err = c.loop.poller.Add(c.fd, want, c.token)
		c.outside = err != nil
	case want == c.interest || c.outside:
	default:
		err = c.loop.poller.Modify(c.fd, want, c.token)
	}
	if err != nil {
		c.abort(c.opError("poll", err)) // an end would tell the peer that it has all
		return
	}
	c.interest = want
}

// publish adds to the loop's Stats what changed in the queue.
func (c *Conn) publish() {
	if n := c.out.Bytes(); n != c.published {
		c.loop.stats.streams.queuedBytes.Add(int64(n - c.published))
		c.published = n
	}
}
