package weir

import (
	"net/netip"
	"time"

	"github.com/weirnet/weir/internal/batch"
)

// recvFailed handles the error of a receive; the socket has no more for this visit.
func (u *UDP) recvFailed(err error) (more bool) {
	class := batch.RecvClass(err)
	if class != batch.Wait {
		u.loop.charge(1) // an error is a unit, like a datagram
	}
	switch class {
	case batch.Wait:
		u.loop.settle()
		u.foundEmpty()
		if u.hungUp {
			u.shutDown()
			return false
		}
		if u.failed {
			u.clearFailure()
		}
		if u.stopping == drainingReceives {
			u.finishStop()
		}
	case batch.Dead:
		u.close(u.opError("receive", netip.AddrPort{}, err))
	case batch.Stale:
		u.takeError(err)
		// While stopping, the poller may see nothing of what is behind the error.
		return u.receivingFails(longestStaleRest) && u.stopping == drainingReceives
	default:
		u.report(err)
		return u.receivingFails(longestRest)
	}
	return false
}

// A socket rests when this many receives in a row have failed, for longer and longer.
const (
	failuresBeforeRest = 8
	shortestRest       = 10 * time.Millisecond
	longestRest        = time.Second

	// What ICMP makes may be many reports of a peer that is about to come back. A filter that answers the same
	// errno to every call has to be survived, too.
	longestStaleRest = 40 * time.Millisecond
)

// failing counts receives of a socket that have failed in a row.
type failing struct {
	times int
	last  time.Duration
}

// again counts one more. One that is long after the last was another matter.
func (f *failing) again(now time.Duration) (times int) {
	if now-f.last > 2*longestRest {
		f.times = 0
	}
	f.last = now
	f.times++
	return f.times
}

// restAfter is how long to rest after n failures more than go without.
func restAfter(n int, longest time.Duration) time.Duration {
	return min(shortestRest<<min(n, 10), longest)
}

// receivingFails counts receives that fail. What is queued stays readable, so the poller would offer it again at
// once, for ever.
func (u *UDP) receivingFails(longest time.Duration) (more bool) {
	n := u.failing.again(u.loop.now) - failuresBeforeRest
	switch {
	case n < 0:
		return true
	case u.stopping == drainingReceives:
		u.finishStop()
		return false
	}
	u.rest(restAfter(n, longest))
	return false
}

// emptyBeforeRest is how often in a row a socket may be found readable and empty before it rests, and again before it
// rests twice as long.
const (
	emptyBeforeRest  = 64
	longestEmptyRest = 160 * time.Millisecond
)

// foundEmpty counts receives that find nothing where the poller saw something. A datagram with a wrong checksum is
// such a thing, and who shares a socket may come too late. But one that somebody who has it, too, has shut down
// (shutdown(2)) is readable and empty for ever.
func (u *UDP) foundEmpty() {
	if !u.readable {
		return
	}
	u.readable = false
	u.empty++
	if u.empty%emptyBeforeRest != 0 || u.stopping != notStopping || u.kernelDropsSome() {
		return
	}
	u.rest(min(shortestRest<<(u.empty/emptyBeforeRest-1), longestEmptyRest))
}

// kernelDropsSome tells that the kernel has dropped datagrams since it was last asked: those with a wrong checksum
// it takes out of the socket when they are to be received.
func (u *UDP) kernelDropsSome() bool {
	info, err := u.loop.kernel.MemInfo(u.fd)
	before := u.emptyDrops
	u.emptyDrops = info.Drops
	return err == nil && info.Drops != before
}

// rest receives nothing for a time.
func (u *UDP) rest(d time.Duration) {
	u.resting = true
	u.changed()
	if u.rested == nil {
		u.rested = u.loop.AfterFunc(d, u.endRest)
	} else {
		u.rested.Reset(d)
	}
}

// leavePoller takes a resting socket out of the poller, as errors cannot be masked there.
func (u *UDP) leavePoller() {
	if !u.outside {
		u.outside = u.loop.poller.Remove(u.fd) == nil
	}
}

// endRest receives again.
func (u *UDP) endRest() {
	if !u.resting {
		return
	}
	u.rested.Stop()
	u.resting = false
	if u.outside {
		u.outside = false
		if err := u.loop.poller.Add(u.fd, u.interest, u.token); err != nil {
			u.outside = true
			u.close(u.opError("poll", netip.AddrPort{}, err))
			return
		}
	}
	u.changed()
	if u.undelivered() {
		u.loop.ring.Ready(u.source)
	}
}
