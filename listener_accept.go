package weir

import (
	"net/netip"
	"slices"
	"time"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sock"
	"github.com/weirnet/weir/internal/stream"
	"github.com/weirnet/weir/internal/sys"
)

// visit accepts while the bound allows and there is somebody.
func (ln *Listener) visit() (more bool) {
	most := ln.limits.bound.most()
	for most > 0 && ln.loop.ring.Open() && !ln.loop.stopDue() {
		if !ln.accepting() {
			break
		}
		fd, peer, err := ln.loop.kernel.Accept(ln.fd)
		if err != nil {
			if !ln.acceptFailed(err, most) {
				return false
			}
		} else {
			ln.failures, ln.rests = 0, 0
			ln.accepted(fd, peer)
			ln.countServed(1)
			ln.loop.charge(1)
		}
		most--
	}
	if !ln.accepting() {
		ln.changed() // the poller would tell of those above MaxConns for ever
		return false
	}
	ln.loop.stats.streams.boundStops.Add(1)
	return true
}

// accepting tells that connections may be accepted.
func (ln *Listener) accepting() bool {
	if ln.fd < 0 || ln.resting || ln.loop.end.stage() == stageClosing {
		return false
	}
	return ln.stopping || !ln.paused && (ln.maxConns == 0 || ln.open < ln.maxConns)
}

// accepted makes a connection of a descriptor.
func (ln *Listener) accepted(fd int, peer netip.AddrPort) {
	l := ln.loop
	l.stats.streams.accepted.Add(1)
	ln.open++
	c := l.newConn(ln.limits, ln.family, &ln.lane, &ln.handler.Conn)
	c.listener, c.remote = ln, sock.Unmap(peer)
	if ln.family == sys.UnixFamily {
		_ = ln.settings.Apply(l.kernel, fd, ln.family) // a buffer that is not as wished is no reason to hang up
	}
	if err := c.enter(fd, poll.Read); err != nil {
		_ = l.kernel.SetOption(fd, sys.Linger, 0) // after an end the client would think that its bytes were read
		c.forget()
		l.stats.streams.acceptErrors.Add(1)
		ln.report(err)
		return
	}
	c.opened()
	if ln.stopConns {
		c.stop()
	}
}

// left takes note of a connection that is closed.
func (ln *Listener) left() {
	ln.open--
	if ln.maxConns > 0 && ln.open == ln.maxConns-1 {
		ln.changed()
	}
}

// acceptFailed handles the error of an accept, and tells whether to go on, which is for most connections at most.
func (ln *Listener) acceptFailed(err error, most int) (more bool) {
	switch stream.AcceptClass(err) {
	case stream.Wait:
		ln.failures, ln.rests = 0, 0
		ln.nobodyWaits()
		return false
	case stream.Full:
		return ln.outOfDescriptors(err, most)
	case stream.Dead:
		ln.countFailed()
		ln.close(ln.opError("accept", err))
	case stream.Memory:
		ln.countFailed()
		ln.reportOnce(err)
		ln.rest()
	default:
		ln.countFailed()
		ln.report(ln.opError("accept", err))
		if ln.failures++; ln.failures >= failuresBeforeRest {
			ln.rest()
		}
	}
	return ln.accepting()
}

func (ln *Listener) countFailed() {
	ln.loop.stats.streams.acceptErrors.Add(1)
	ln.loop.charge(1)
}

// nobodyWaits ends a listener that was to be drained first.
func (ln *Listener) nobodyWaits() {
	ln.loop.settle()
	if ln.stopping {
		ln.close(nil)
	}
}

// countServed ends a stopping listener when as many are served as may have waited: those who come meanwhile could go on
// for ever.
func (ln *Listener) countServed(served int) {
	if !ln.stopping {
		return
	}
	if ln.waiting -= served; ln.waiting <= 0 {
		ln.close(nil)
	}
}

// outOfDescriptors refuses who waits, and then rests. Linux wants a descriptor before it looks whether somebody waits:
// where nobody does, the last one has just been used, and nothing has failed.
func (ln *Listener) outOfDescriptors(err error, most int) (more bool) {
	refused, empty := ln.refuseQueued(most)
	if empty && refused == 0 {
		ln.nobodyWaits()
		return false
	}
	ln.countFailed()
	ln.reportOnce(err)
	ln.countServed(refused)
	switch {
	case ln.stopping && empty:
		ln.nobodyWaits()
	case ln.stopping && refused > 0:
		// there is an end to those who wait
	case refused > 0 && !empty:
		ln.restFor(shortestRest) // many wait: they are let go soon, and still at their part of the processor
	default:
		ln.rest()
	}
	return ln.accepting()
}

// reportOnce reports an error that lasts.
func (ln *Listener) reportOnce(err error) {
	if ln.rests == 0 {
		ln.report(ln.opError("accept", err))
	}
}

// report has OnError told of an error, unless there were too many lately.
func (ln *Listener) report(err error) {
	if ln.errors.len() == maxErrors || !ln.errorRate.allow(ln.loop.now) {
		return
	}
	ln.errors.push(err)
	ln.changed()
}

// refuseQueued gives clients that wait and cannot be served a clean end, with the descriptor that is kept for that:
// left in the backlog they would wait for something that may never come. empty tells that nobody is left.
func (ln *Listener) refuseQueued(most int) (refused int, empty bool) {
	l := ln.loop
	for l.spare >= 0 && refused < most && l.ring.Open() {
		_ = l.kernel.Close(l.spare)
		l.spare = -1
		fd, _, err := l.kernel.Accept(ln.fd)
		if err == nil {
			ln.refuse(fd)
			refused++
		}
		l.reserveDescriptor()
		if err != nil {
			return refused, stream.AcceptClass(err) == stream.Wait
		}
		l.charge(1)
	}
	return refused, false
}

// refuse ends a connection so that its client reads an end: a close with something unread would be a reset.
func (ln *Listener) refuse(fd int) {
	l := ln.loop
	l.stats.streams.acceptRefused.Add(1)
	_ = l.kernel.CloseWrite(fd)
	scratch := l.scratchBuffer()
	for range refuseReads {
		if n, err := l.kernel.Read(fd, scratch[:]); n == 0 || err != nil {
			break
		}
	}
	_ = l.kernel.Close(fd)
}

// refuseReads is how often something is read of who is refused; a client that has sent more is reset.
const refuseReads = 4

// reserveDescriptor keeps one for refuseQueued. Where there is none, the next trial may have more luck.
func (l *Loop) reserveDescriptor() {
	if l.spare >= 0 {
		return
	}
	if fd, err := l.kernel.Socket(sys.UnixFamily, sys.UnixStream); err == nil {
		l.spare = fd
	}
}

func (l *Loop) releaseReserve() {
	if l.spare >= 0 {
		_ = l.kernel.Close(l.spare)
		l.spare = -1
	}
}

// longestAcceptRest is how long a listener rests for want of descriptors: if one is freed elsewhere in the process,
// the loop does not hear of it.
const longestAcceptRest = 4 * shortestRest

// restsWhileStopping is how often a listener rests in a row that is to be closed when nobody waits any more.
const restsWhileStopping = 4

// rest accepts nothing for a time, each time for longer.
func (ln *Listener) rest() {
	ln.restFor(min(shortestRest<<min(ln.rests, 10), longestAcceptRest))
}

func (ln *Listener) restFor(d time.Duration) {
	switch {
	case ln.fd < 0:
		return
	case ln.stopping && ln.rests >= restsWhileStopping:
		ln.close(nil) // who still waits cannot be served
		return
	}
	l := ln.loop
	ln.resting = true
	ln.changed()
	ln.rests++
	if ln.rested == nil {
		ln.rested = l.AfterFunc(d, ln.endRest)
	} else {
		ln.rested.Reset(d)
	}
	l.resting = append(l.resting, ln)
}

// endRest accepts again.
func (ln *Listener) endRest() {
	if !ln.resting {
		return
	}
	l := ln.loop
	ln.rested.Stop()
	ln.resting = false
	l.resting = slices.DeleteFunc(l.resting, func(x *Listener) bool { return x == ln })
	l.reserveDescriptor()
	ln.changed()
	if ln.stopping {
		l.becameReady(ln.source) // that nobody waits the poller does not tell
	}
}

// descriptorFreed has listeners try again that rest for want of one.
func (l *Loop) descriptorFreed() {
	for len(l.resting) > 0 {
		l.resting[0].endRest()
	}
}
