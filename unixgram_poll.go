package weir

import (
	"syscall"

	"github.com/weirnet/weir/internal/poll"
)

// ready is called with what the poller saw.
func (u *Unixgram) ready(r poll.Ready) {
	if r&poll.Writable != 0 && u.blocked {
		u.blocked = false
		u.tryAgain()
	}
	if r&poll.HungUp != 0 {
		// Somebody who has it, too, has ended both directions: the poller would tell of it for ever.
		u.close(u.opError("receive", u.peer, syscall.ESHUTDOWN))
		return
	}
	if r&poll.Failed != 0 {
		u.failed = true
		switch {
		case u.resting:
			u.leavePoller()
			return
		case u.paused:
			u.clearFailure() // it cannot be masked, and who receives nothing has nothing that would clear it
			return
		}
	}
	if r&(poll.Readable|poll.Failed) != 0 && !u.paused && !u.resting {
		u.loop.becameReady(u.source)
	}
}

// leavePoller takes a resting socket out of the poller, as errors cannot be masked there.
func (u *Unixgram) leavePoller() {
	if !u.outside {
		u.outside = u.loop.poller.Remove(u.fd) == nil
	}
}

// changed puts what the socket asks of the poller in order at the end of the turn.
func (u *Unixgram) changed() {
	if u.fd >= 0 {
		u.loop.turnEnd.add(u)
	}
}

// endTurn tells the poller what changed, then runs one callback that was put off.
func (u *Unixgram) endTurn() (more bool) {
	if u.fd >= 0 {
		u.syncInterest()
	}
	switch {
	case u.errors.len() > 0:
		u.call(u.handler.OnError, u.errors.pop())
	case u.drained:
		u.drained = false
		if u.handler.OnDrain != nil {
			u.handler.OnDrain(u)
		}
	case u.closeDue:
		u.closeDue = false
		u.call(u.handler.OnClose, u.closeErr)
	}
	return u.errors.len() > 0 || u.drained || u.closeDue
}

func (u *Unixgram) call(fn func(*Unixgram, error), err error) {
	if fn != nil {
		fn(u, err)
	}
}

func (u *Unixgram) wanted() (want poll.Interest) {
	if !u.paused && !u.resting {
		want |= poll.Read
	}
	if u.blocked {
		want |= poll.Write
	}
	return want
}

// syncInterest tells the poller what changed since it was last told.
func (u *Unixgram) syncInterest() {
	want := u.wanted()
	if want == u.interest || u.outside {
		u.interest = want
		return
	}
	if err := u.loop.poller.Modify(u.fd, want, u.token); err != nil {
		u.close(u.opError("poll", u.peer, err))
		return
	}
	u.interest = want
}

// deferError has OnError told of an error, unless there were too many lately.
func (u *Unixgram) deferError(err error) {
	if u.errors.len() == maxErrors || !u.errorRate.allow(u.loop.now) {
		return
	}
	u.errors.push(err)
	u.loop.turnEnd.add(u)
}
