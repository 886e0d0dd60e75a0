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
		if len(u.batch) > 0 {
			most -= u.deliverBatch(most)
			u.leaveBatch()
			u.flushAfterBatch()
			continue
		}
		if u.stopping == drainingReceives && u.left <= 0 {
			u.finishStop()
			return false
		}
		u.loop.freeSlots()
		asked := u.mostMessages(most)
		began := u.loop.now
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
		u.received(got)
		most -= u.deliverBatch(most)
		u.cost.learn(u.loop.now-began, got-len(u.batch))
		u.leaveBatch()
		u.flushAfterBatch()
		if u.drainedBy(got, asked) {
			return u.receiving() && u.undelivered()
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
	slots := min(most, recvSlots)
	if u.cost.bytes > cacheBytes/recvSlots {
		slots = min(slots, cacheBytes/u.cost.bytes)
	}
	return u.loop.ring.Batch(slots, u.cost.perMessage)
}

// cacheBytes is about what a batch should have, so that its payloads are in a processor's cache when they are
// delivered and their slots when the next comes.
const cacheBytes = 256 << 10

// receiving tells that datagrams may be delivered.
func (u *UDP) receiving() bool {
	return u.fd >= 0 && !u.paused && !u.resting && u.stopping != drainingSends && u.loop.end.stage() != stageClosing
}

// drainedBy tells whether a batch showed that the socket is empty. Under Share a short one is enough: what
// comes later makes the socket ready again, and a receive that would only answer EAGAIN is saved. Where receives
// are single calls, an error may be behind it of which the poller does not know. The other bounds go on to the
// EAGAIN, as the loops do that they stand for.
func (u *UDP) drainedBy(got, asked int) bool {
	short := got < asked && u.limits.bound.kind == boundShare && !u.loop.fast.single
	if u.stopping == drainingReceives {
		if u.left -= got; short || u.left <= 0 {
			u.finishStop()
			return true
		}
	}
	return short
}

// received takes note of a batch that has arrived in the loop's slots.
func (u *UDP) received(got int) {
	u.loop.inSlots = u
	u.batch = u.loop.recv.Msgs[:got]
	u.failing.times, u.empty = 0, 0
	u.countReceived(u.batch)
}

// undelivered tells that there is something to deliver without a receive.
func (u *UDP) undelivered() bool { return u.kept.Len() > 0 || len(u.batch) > 0 }

// deliverBatch delivers the batch, until the bound stops it or as many datagrams as most were. It returns their
// number.
func (u *UDP) deliverBatch(most int) (delivered int) {
	l := u.loop
	for len(u.batch) > 0 && delivered < most {
		n, ok := u.deliverMessage(most - delivered)
		delivered += n
		if !ok {
			break
		}
	}
	if l.uncharged > 0 || u.fd < 0 {
		l.settle() // a close is not for the next source to pay
	}
	return delivered
}

// leaveBatch sees to what a visit leaves of a batch, if others wait who may need the slots.
func (u *UDP) leaveBatch() {
	if len(u.batch) == 0 || u.loop.ring.Len() == 1 {
		return
	}
	if u.keep(); u.kept.Bytes() >= dearCopyBytes {
		u.loop.settle() // nor is the copy
	}
}

// deliverMessage delivers the datagrams of the batch's first message, most of them at most, and tells whether to
// go on.
func (u *UDP) deliverMessage(most int) (delivered int, ok bool) {
	l := u.loop
	m := &u.batch[0]
	all := u.datagram(m.Addr, m.Flags, &m.Control)
	for {
		payload, more := u.next(m)
		u.deliver(&all, payload)
		l.charge(1)
		delivered++
		switch {
		case !u.receiving(), more && len(u.batch) == 0: // it was exported
			return delivered, false
		case !more || delivered == most:
			return delivered, l.ring.Open()
		case !l.ring.Open() && l.ring.Credit() < -overdraft:
			return delivered, false
		}
	}
}

// overdraft is how far a visit may go into debt to finish a train whose datagrams are cheap: keeping the rest
// would cost as much.
const overdraft = minShare / 4

// next cuts the first datagram off the message that is first in the batch, and tells whether it has more.
func (u *UDP) next(m *sys.Message) (payload []byte, more bool) {
	payload, segment := m.Buf, int(m.Control.Segment)
	if segment == 0 || segment >= len(payload) {
		u.batch = u.batch[1:]
		return payload, false
	}
	m.Buf = payload[segment:]
	return payload[:segment:segment], true
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
	u.cost.bytes = bytes / len(msgs)
	u.counters.received.Add(uint64(datagrams))
	u.counters.recvBytes.Add(uint64(bytes))
	u.counters.recvBatches.Add(1)
	if joined > 0 {
		u.counters.recvJoined.Add(uint64(joined))
	}
}

// dearCopyBytes take about a microsecond to copy; what is less is not worth a look at the clock.
const dearCopyBytes = 16 << 10

// freeSlots has the socket whose batch lies in the slots keep what is left of it elsewhere.
func (l *Loop) freeSlots() {
	if l.inSlots != nil {
		l.inSlots.keep()
		l.inSlots = nil
	}
}

// keep saves what a visit leaves of a batch, which is no more than the kernel's buffer held. As long as nobody else
// receives it stays in the slots: the copy costs about as much as the receive.
func (u *UDP) keep() {
	for i := range u.batch {
		u.kept.Push(&u.batch[i])
	}
	u.batch = nil
}

func (u *UDP) deliverKept() {
	t := u.kept.At(0)
	u.lent = true
	d := u.datagram(t.Addr, t.Flags, &t.Control)
	u.deliver(&d, t.First())
	u.loop.charge(1)
	u.lent = false
	if u.fd >= 0 {
		u.kept.Drop(1)
	} else {
		u.kept.Clear()
	}
}

// deliver calls OnDatagram with a payload and what its message says besides.
func (u *UDP) deliver(m *Datagram, payload []byte) {
	d := &u.loop.datagram
	*d = *m
	u.cut(d, payload)
	if d.Truncated {
		u.counters.truncated.Add(1)
	}
	if u.handler.OnDatagram != nil {
		u.handler.OnDatagram(u, d)
	}
}

// cut gives a datagram as much of its payload as is to be delivered.
func (u *UDP) cut(d *Datagram, payload []byte) {
	if len(payload) > u.limits.datagramBytes {
		payload, d.Truncated = payload[:u.limits.datagramBytes], true
	}
	d.Payload = payload
}

func timeOf(unixNano int64) (t time.Time) {
	if unixNano != 0 {
		t = time.Unix(0, unixNano)
	}
	return t
}

// datagram is what a message says of its datagrams, as the user sees it.
func (u *UDP) datagram(source netip.AddrPort, flags sys.Flags, c *sys.Control) Datagram {
	return Datagram{
		Source: sock.Unmap(source), Truncated: flags&sys.Truncated != 0,
		Local: c.Local.Unmap(), Interface: int(c.Interface), ECN: ECN(c.TrafficClass & ecnMask), Time: timeOf(c.Time),
		notOwn: c.NotOwn,
	}
}
