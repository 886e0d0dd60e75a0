package weir

import (
	"net/netip"
	"time"

	"github.com/weirnet/weir/internal/batch"
	"github.com/weirnet/weir/internal/sock"
	"github.com/weirnet/weir/internal/sys"
)

// visit delivers datagrams while the bound allows and there are any. Reports of the error queue are taken out
// before, as they take room from datagrams, for half of the credit at most; they are told at the end of the
// turn.
//
// It ends in one of three ways. The socket is empty. It failed. Or it stopped on its bound, and then it has
// seen neither: it stays ready, and nothing is to be concluded.
func (u *UDP) visit() (more bool) {
	reportsLeft := u.reports.on && u.failed && u.takeReports()
	if u.reports.skip = reportsLeft && !u.loop.ring.Open(); u.reports.skip {
		return true // they were dearer than expected: the next visit is the datagrams'
	}
	return u.receive() || reportsLeft
}

func (u *UDP) receive() (more bool) {
	most := u.limits.bound.most()
	stale := false
	for most > 0 && u.loop.ring.Open() && !u.loop.stopDue() {
		if !u.receiving() {
			return false
		}
		if u.kept.Len() > 0 {
			u.deliverKept()
			most--
			if u.kept.Len() == 0 {
				u.flushAfterBatch()
			}
			continue
		}
		if u.stopping == drainingReceives && u.left <= 0 {
			u.finishStop()
			return false
		}
		asked := u.mostMessages(most)
		got, err := u.loop.kernel.Recv(u.fd, u.loop.recv, asked)
		u.counters.recvCalls.Add(1)
		if err != nil && !stale && batch.RecvClass(err) == batch.Stale {
			stale = true // what is behind the error is not: it comes with the next call
			u.takeError(err)
			u.loop.charge(1) // an error is a unit, like a datagram
			continue
		}
		if err != nil {
			return u.recvFailed(err)
		}
		most -= u.deliverBatch(got, most)
		u.flushAfterBatch()
		if u.drainedBy(got, asked) {
			return u.receiving() && u.kept.Len() > 0
		}
	}
	if !u.receiving() {
		return false
	}
	u.counters.boundStops.Add(1)
	return true
}

// mostMessages is how many messages to ask for, of the datagrams that the bound still allows. Who shares a
// socket takes one, so that what is left behind is there for the others.
func (u *UDP) mostMessages(most int) int {
	if u.shared {
		return 1
	}
	return u.loop.ring.Batch(min(most, recvSlots), u.cost.perMessage)
}

// receiving tells that datagrams may be delivered.
func (u *UDP) receiving() bool {
	return u.fd >= 0 && !u.paused && !u.resting && u.stopping != drainingSends && u.loop.end.stage() != stageClosing
}

// drainedBy tells whether a batch showed that the socket is empty. Under Share a short one is enough: what
// comes later makes the socket ready again, and a receive that would only answer EAGAIN is saved. The other
// bounds go on to the EAGAIN, as the loops do that they stand for.
func (u *UDP) drainedBy(got, asked int) bool {
	short := got < asked && u.limits.bound.kind == boundShare
	if u.stopping == drainingReceives {
		if u.left -= got; short || u.left <= 0 {
			u.finishStop()
			return true
		}
	}
	return short
}

// deliverBatch delivers the messages that were just received, until the bound stops it or as many datagrams
// as most were, and keeps the rest. It returns the number of datagrams delivered.
func (u *UDP) deliverBatch(got, most int) (delivered int) {
	l := u.loop
	u.batch = l.recv.Msgs[:got]
	u.failures, u.empty = 0, 0
	u.countReceived(u.batch)
	began := l.now
	for len(u.batch) > 0 {
		m := &u.batch[0]
		u.deliver(u.next(), m.Addr, m.Flags, &m.Control)
		l.charge(1)
		delivered++
		if !u.receiving() || !l.ring.Open() || delivered == most {
			break
		}
	}
	if l.uncharged > 0 {
		l.settle()
	}
	u.cost.learn(l.now-began, got-len(u.batch))
	if u.keep(); u.fd < 0 || u.kept.Bytes() >= dearCopyBytes {
		l.settle() // a close, or the copy, is not for the next source to pay
	}
	return delivered
}

// next cuts the first datagram off the batch.
func (u *UDP) next() []byte {
	m := &u.batch[0]
	payload, segment := m.Buf, int(m.Control.Segment)
	if segment == 0 || segment >= len(payload) {
		u.batch = u.batch[1:]
		return payload
	}
	m.Buf = payload[segment:]
	return payload[:segment:segment]
}

func (u *UDP) countReceived(msgs []sys.Message) {
	datagrams, bytes, joined := 0, 0, 0
	for i := range msgs {
		n := batch.Segments(len(msgs[i].Buf), msgs[i].Control.Segment)
		datagrams += n
		bytes += len(msgs[i].Buf)
		if n > 1 {
			joined += n
		}
	}
	u.counters.received.Add(uint64(datagrams))
	u.counters.recvBytes.Add(uint64(bytes))
	u.counters.recvBatches.Add(1)
	if joined > 0 {
		u.counters.recvJoined.Add(uint64(joined))
	}
}

// dearCopyBytes take about a microsecond to copy; what is less is not worth a look at the clock.
const dearCopyBytes = 16 << 10

// keep saves what a visit leaves of a batch, which is no more than the kernel's buffer held; a socket that was
// closed has discarded it, and one that was exported handed it over.
func (u *UDP) keep() {
	for i := range u.batch {
		u.kept.Push(&u.batch[i])
	}
	u.batch = nil
}

func (u *UDP) deliverKept() {
	t := u.kept.At(0)
	u.lent = true
	u.deliver(t.First(), t.Addr, t.Flags, &t.Control)
	u.loop.charge(1)
	u.lent = false
	if u.fd >= 0 {
		u.kept.Drop(1)
	} else {
		u.kept.Clear()
	}
}

func (u *UDP) deliver(payload []byte, source netip.AddrPort, flags sys.Flags, c *sys.Control) {
	d := &u.loop.datagram
	*d = u.datagram(payload, source, flags, c)
	if d.Truncated {
		u.counters.truncated.Add(1)
	}
	if u.handler.OnDatagram != nil {
		u.handler.OnDatagram(u, d)
	}
}

// datagram is a received payload as the user sees it.
func (u *UDP) datagram(payload []byte, source netip.AddrPort, flags sys.Flags, c *sys.Control) Datagram {
	d := Datagram{
		Payload: payload, Source: sock.Unmap(source), Truncated: flags&sys.Truncated != 0,
		Local: c.Local.Unmap(), Interface: int(c.Interface), ECN: ECN(c.TrafficClass & ecnMask), Time: c.Time,
	}
	if len(payload) > u.limits.datagramBytes {
		d.Payload, d.Truncated = payload[:u.limits.datagramBytes], true
	}
	return d
}

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
	longestStaleRest = 20 * time.Millisecond
)

// emptyBeforeRest is how often in a row a socket may be found ready and empty before it rests.
const emptyBeforeRest = 64

// foundEmpty counts receives that find nothing. A datagram with a wrong checksum makes a socket ready and is
// then not there, and who shares a socket may come too late. But one that somebody who has it, too, has shut down
// (shutdown(2)) is ready and empty for ever.
func (u *UDP) foundEmpty() {
	u.empty++
	if u.empty >= emptyBeforeRest && u.stopping == notStopping {
		u.empty = 0
		u.rest(shortestRest)
	}
}

// receivingFails counts receives that fail. What is queued stays readable, so the poller would offer it again at
// once, for ever.
func (u *UDP) receivingFails(longest time.Duration) (more bool) {
	if u.loop.now-u.failedAt > 2*longestRest {
		u.failures = 0 // the last one was another matter
	}
	u.failedAt = u.loop.now
	u.failures++
	n := u.failures - failuresBeforeRest
	switch {
	case n < 0:
		return true
	case u.stopping == drainingReceives:
		u.finishStop()
		return false
	}
	u.rest(min(shortestRest<<min(n, 10), longest))
	return false
}

// rest receives nothing for a time.
func (u *UDP) rest(d time.Duration) {
	u.resting = true
	u.changed()
	u.loop.AfterFunc(d, func() {
		u.resting = false
		u.changed()
	})
}
