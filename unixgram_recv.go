package weir

import (
	"syscall"

	"github.com/weirnet/weir/internal/batch"
	"github.com/weirnet/weir/internal/sys"
)

// receiving tells whether datagrams are to be delivered now.
func (u *Unixgram) receiving() bool {
	return u.fd >= 0 && !u.paused && !u.resting && u.loop.end.stage() != stageClosing
}

// visit delivers datagrams while the bound allows and there are any, one system call each.
func (u *Unixgram) visit() (more bool) {
	l := u.loop
	for most := u.bound.most(); most > 0 && l.ring.Open() && !l.stopDue(); most-- {
		if !u.receiving() {
			return false
		}
		if u.stopping && u.left == 0 {
			u.close(nil)
			return false
		}
		n, from, flags, err := l.kernel.RecvUnix(u.fd, l.gramBuffer(u.most))
		if err != nil {
			return u.recvFailed(err)
		}
		u.deliver(l.gram[:n:n], from, flags&sys.Truncated != 0)
		l.charge(1)
	}
	return u.receiving()
}

// gramBuffer is the loop's buffer for a unix datagram: it is lent to one callback at a time.
func (l *Loop) gramBuffer(bytes int) []byte {
	if len(l.gram) < bytes {
		l.gram = make([]byte, bytes)
	}
	return l.gram[:bytes]
}

func (u *Unixgram) deliver(payload []byte, from string, truncated bool) {
	u.failing.times = 0
	u.left = max(u.left-1, 0)
	u.stats.Received++
	u.stats.ReceivedBytes += uint64(len(payload))
	if truncated {
		u.stats.Truncated++
	}
	if u.handler.OnDatagram != nil {
		d := &u.loop.gramRead
		*d = UnixDatagram{Payload: payload, Source: from, Truncated: truncated}
		u.handler.OnDatagram(u, d)
	}
}

// recvFailed handles the error of a receive; the socket has no more for this visit.
func (u *Unixgram) recvFailed(err error) (more bool) {
	switch batch.RecvClass(err) {
	case batch.Wait:
		u.loop.settle()
		if u.failed {
			u.clearFailure()
		}
		if u.stopping {
			u.close(nil)
		}
		return false
	case batch.Dead:
		u.loop.charge(1)
		u.close(u.opError("receive", u.peer, err))
		return false
	default:
		u.loop.charge(1) // an error is a unit, like a datagram
		u.report(err)
		return u.receivingFails()
	}
}

// report tells of an error that the kernel had for the socket.
func (u *Unixgram) report(err error) {
	u.failed = false
	u.stats.Errors++
	u.deferError(u.opError("receive", u.peer, err))
}

// clearFailure reads the error that the poller saw where no call has returned it: it would make the socket ready for
// ever.
func (u *Unixgram) clearFailure() {
	u.failed = false
	pending, err := u.loop.kernel.GetOption(u.fd, sys.SocketError)
	if err == nil && pending != 0 {
		u.report(syscall.Errno(pending))
	}
}

// receivingFails counts receives that fail, and rests after some: what is queued stays readable, so the poller would
// offer it again at once, for ever.
func (u *Unixgram) receivingFails() (more bool) {
	n := u.failing.again(u.loop.now) - failuresBeforeRest
	switch {
	case n < 0:
		return true
	case u.stopping:
		u.close(nil)
		return false
	}
	u.resting = true
	u.changed()
	d := restAfter(n, longestRest)
	if u.rested == nil {
		u.rested = u.loop.AfterFunc(d, u.endRest)
	} else {
		u.rested.Reset(d)
	}
	return false
}

// endRest receives again.
func (u *Unixgram) endRest() {
	if !u.resting {
		return
	}
	u.rested.Stop()
	u.resting = false
	if u.outside {
		u.outside = false
		if err := u.loop.poller.Add(u.fd, u.interest, u.token); err != nil {
			u.outside = true
			u.close(u.opError("poll", u.peer, err))
			return
		}
	}
	u.changed()
}
