package weir

import (
	"syscall"
	"time"

	"github.com/weirnet/weir/internal/batch"
)

// Send sends b as one datagram to the socket of that name, or to the peer of a connected socket where the name is
// empty. It goes to the kernel at once, and is with its receiver when Send returns: there is no queue here.
//
//   - Errors: ErrWouldBlock when the receiver's queue, or the send buffer, is full (OnDrain follows), ErrClosed, else
//     *OpError: ENOENT, ECONNREFUSED (nobody has that name any more; a socket that was connected to it is no longer:
//     ENOTCONN), EPERM (the receiver is connected to another), EMSGSIZE, ENOTCONN (no peer and no name), EACCES.
//   - Source: unix(7), send(2).
func (u *Unixgram) Send(b []byte, to string) error {
	if u.fd < 0 {
		return ErrClosed
	}
	err := u.loop.kernel.SendUnix(u.fd, b, to)
	if err == syscall.ECONNRESET { // of the peer's end, not of this datagram: the kernel has not looked at that
		u.report(err)
		err = u.loop.kernel.SendUnix(u.fd, b, to)
	}
	switch err {
	case nil:
		u.refused = 0
		u.stats.Sent++
		u.stats.SentBytes += uint64(len(b))
		return nil
	case syscall.EAGAIN:
		u.stats.Refused++
		u.waitForRoom(to)
		return ErrWouldBlock
	}
	u.stats.Errors++
	failed := u.opError("send", u.receiver(to), err)
	if batch.SendClass(err, batch.Try{Again: true}) == batch.Dead {
		u.close(failed)
	}
	return failed
}

// receiver is whom a datagram is for.
func (u *Unixgram) receiver(to string) string {
	if to == "" {
		return u.peer
	}
	return to
}

const (
	retryFirst   = time.Millisecond
	retryLongest = 50 * time.Millisecond
)

// pollTries is how often in a row the poller may say that there is room where Send finds none, before it is believed
// no longer.
const pollTries = 8

// waitForRoom has OnDrain called for another try. Of a peer the poller tells that it has room. Of any other receiver
// it tells nothing: it speaks of the own buffer, which has room, so that waiting for that would be to try at once, for
// ever.
func (u *Unixgram) waitForRoom(to string) {
	if u.handler.OnDrain == nil {
		return
	}
	if u.receiver(to) == u.peer && u.refused < pollTries {
		if !u.blocked {
			u.refused++
			u.blocked = true
			u.changed()
		}
		return
	}
	if u.retry != nil && u.retry.index >= 0 {
		return
	}
	d := min(retryFirst<<min(u.refused, 10), retryLongest)
	u.refused++
	if u.retry == nil {
		u.retry = u.loop.AfterFunc(d, u.tryAgain)
	} else {
		u.retry.Reset(d)
	}
}

// tryAgain has OnDrain called at the end of the turn.
func (u *Unixgram) tryAgain() {
	u.drained = true
	u.changed()
}
