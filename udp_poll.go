package weir

import (
	"net/netip"
	"syscall"

	"github.com/weirnet/weir/internal/poll"
)

// ready is called with what the poller saw.
func (u *UDP) ready(r poll.Ready) {
	if r&poll.Writable != 0 && u.blocked {
		u.blocked, u.flushDue = false, true
		u.changed()
	}
	if r&(poll.Failed|poll.HungUp) != 0 {
		u.failed = true
		if u.hungUp = r&poll.HungUp != 0; u.hungUp && !u.receiving() {
			u.shutDown()
			return
		}
		switch {
		case u.resting:
			u.leavePoller()
			return
		case u.reports.on:
			u.loop.ring.Ready(u.source) // a paused socket takes reports, too: they cannot be masked
		case u.paused, u.stopping == drainingSends:
			u.clearFailure() // nor can this, and who receives nothing has nothing that would clear it
			return
		}
	}
	u.readable = u.readable || r&poll.Readable != 0
	if r&(poll.Readable|poll.Failed|poll.HungUp) != 0 && !u.paused && !u.resting {
		u.loop.becameReady(u.source)
	}
}

// shutDown ends a socket of which somebody who has it, too, has ended both directions by shutdown(2): nothing can
// be sent or received any more, and the poller would tell of it for ever.
func (u *UDP) shutDown() {
	u.close(u.opError("receive", netip.AddrPort{}, syscall.ESHUTDOWN))
}

// changed puts what the socket asks of the poller in order at the end of the turn.
func (u *UDP) changed() {
	if u.fd >= 0 {
		u.loop.turnEnd.add(u)
	}
}

// endTurn flushes what is queued, then runs one callback that was put off.
func (u *UDP) endTurn() (more bool) {
	if u.fd >= 0 && u.flushDue {
		u.flush()
	}
	u.publish()
	if u.stopping == drainingSends && u.sends.Len() == 0 {
		u.close(nil)
	}
	if u.fd >= 0 {
		u.syncInterest()
	}
	switch {
	case u.errors.len() > 0:
		call(u.handler.OnError, u, u.errors.pop())
	case u.reports.waiting.len() > 0:
		call(u.handler.OnError, u, u.reports.waiting.pop())
	case u.drained:
		u.drained = false
		if u.handler.OnDrain != nil {
			u.handler.OnDrain(u)
		}
	case u.closeDue:
		u.closeDue = false
		call(u.handler.OnClose, u, u.closeErr)
	}
	return u.errors.len() > 0 || u.reports.waiting.len() > 0 || u.drained || u.closeDue
}

func call(fn func(*UDP, error), u *UDP, err error) {
	if fn != nil {
		fn(u, err)
	}
}

// syncInterest tells the poller what changed since it was last told.
func (u *UDP) syncInterest() {
	var want poll.Interest
	if !u.paused && !u.resting && u.stopping != drainingSends {
		want |= poll.Read
	}
	if u.blocked {
		want |= poll.Write
	}
	if want == u.interest || u.outside {
		u.interest = want
		return
	}
	if err := u.loop.poller.Modify(u.fd, want, u.token); err != nil {
		u.close(u.opError("poll", netip.AddrPort{}, err))
		return
	}
	u.interest = want
}

func (u *UDP) inTurnEnd() *bool { return &u.atTurnEnd }
func (u *UDP) name() string     { return "udp " + u.local.String() }

// maxErrors is how many errors wait for OnError; more are counted only.
const maxErrors = 16

// deferError has OnError told of an error, unless there were too many lately.
func (u *UDP) deferError(err error) {
	if u.errors.len() == maxErrors || !u.errorRate.allow(u.loop.now) {
		u.counters.unreported.Add(1)
		return
	}
	u.errors.push(err)
	u.loop.turnEnd.add(u)
}

func (u *UDP) opError(op string, addr netip.AddrPort, err error) error {
	if err == ErrClosed {
		return err
	}
	return &OpError{Op: op, Net: "udp", Source: u.local, Addr: addr, Err: err}
}
