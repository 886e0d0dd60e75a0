package weir

import (
	"net/netip"
	"syscall"
	"time"

	"github.com/weirnet/weir/internal/batch"
	"github.com/weirnet/weir/internal/sock"
	"github.com/weirnet/weir/internal/sys"
)

// visit delivers datagrams while the bound allows and there are any.
//
// It ends in one of three ways. The socket is empty. It failed. Or it stopped on its bound, and then it has
// seen neither: it stays ready, and nothing is to be concluded.
func (u *UDP) visit() (more bool) {
	most := u.limits.bound.most()
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
		asked := u.loop.ring.Batch(min(most, recvSlots), u.cost.perDatagram)
		got, err := u.loop.kernel.Recv(u.fd, u.loop.recv, asked)
		u.counters.recvCalls.Add(1)
		if err != nil {
			return u.recvFailed(err)
		}
		u.deliverBatch(got)
		most -= got
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

// deliverBatch delivers the batch that was just received, until the bound stops it, and keeps the rest.
func (u *UDP) deliverBatch(got int) {
	l := u.loop
	msgs := l.recv.Msgs[:got]
	u.failures = 0
	bytes := 0
	for i := range msgs {
		bytes += len(msgs[i].Buf)
	}
	u.counters.received.Add(uint64(got))
	u.counters.recvBytes.Add(uint64(bytes))

	began := l.now
	for len(msgs) > 0 {
		m := &msgs[0]
		msgs = msgs[1:]
		u.undelivered = len(msgs)
		u.deliver(m.Buf, m.Addr, m.Flags)
		l.charge(1)
		if !u.receiving() || !l.ring.Open() {
			break
		}
	}
	u.cost.learn(l.now-began, got-len(msgs))
	if u.keep(msgs); u.fd < 0 || u.kept.Bytes() >= dearCopyBytes {
		l.charge(0) // a close, or the copy, is not for the next source to pay
	}
}

// dearCopyBytes take about a microsecond to copy; what is less is not worth a look at the clock.
const dearCopyBytes = 16 << 10

// keep saves what a visit leaves of a batch, which is no more than the kernel's buffer held; a socket that was
// closed has discarded it.
func (u *UDP) keep(msgs []sys.Message) {
	u.undelivered = 0
	if u.fd < 0 {
		return
	}
	for i := range msgs {
		u.kept.Push(msgs[i].Buf, msgs[i].Addr, msgs[i].Flags)
	}
}

func (u *UDP) deliverKept() {
	d := u.kept.At(0)
	u.lent = true
	u.deliver(d.Payload, d.Addr, d.Flags)
	u.lent = false
	u.loop.charge(1)
	if u.fd >= 0 {
		u.kept.Drop(1)
	} else {
		u.kept.Drop(u.kept.Len())
	}
}

func (u *UDP) deliver(payload []byte, source netip.AddrPort, flags sys.Flags) {
	d := &u.loop.datagram
	*d = Datagram{Payload: payload, Source: sock.Unmap(source), Truncated: flags&sys.Truncated != 0}
	if len(payload) > u.limits.datagramBytes {
		d.Payload, d.Truncated = payload[:u.limits.datagramBytes], true
	}
	if d.Truncated {
		u.counters.truncated.Add(1)
	}
	if u.handler.OnDatagram != nil {
		u.handler.OnDatagram(u, d)
	}
}

// recvFailed handles the error of a receive; the socket has no more for this visit.
func (u *UDP) recvFailed(err error) (more bool) {
	class := batch.RecvClass(err)
	if class != batch.Wait {
		u.loop.charge(1) // an error is a unit, like a datagram
	}
	switch class {
	case batch.Wait:
		u.loop.charge(0)
		if u.failed {
			u.clearFailure()
		}
		if u.stopping == drainingReceives {
			u.finishStop()
		}
	case batch.Dead:
		u.close(u.opError("receive", netip.AddrPort{}, err))
	case batch.Stale:
		u.report(err)
		return u.stopping == drainingReceives // the poller may see nothing of what is behind the error
	default:
		u.report(err)
		return u.receivingFails()
	}
	return false
}

// report tells of an error that the kernel had for the socket.
func (u *UDP) report(err error) {
	u.failed = false
	u.counters.recvErrors.Add(1)
	u.deferError(u.opError("receive", u.peer, err))
}

// A socket rests when this many receives in a row have failed, for longer and longer.
const (
	failuresBeforeRest = 8
	shortestRest       = 10 * time.Millisecond
	longestRest        = time.Second
)

// receivingFails counts receives that fail for other reasons than a report. What is queued stays readable, so
// the poller would offer it again at once, for ever.
func (u *UDP) receivingFails() (more bool) {
	u.failures++
	n := u.failures - failuresBeforeRest
	switch {
	case n < 0:
		return true
	case u.stopping == drainingReceives:
		u.finishStop()
		return false
	}
	u.resting = true
	u.changed()
	u.loop.AfterFunc(min(shortestRest<<min(n, 10), longestRest), func() {
		u.resting = false
		u.changed()
	})
	return false
}

// clearFailure reads the error that the poller saw where no receive has returned it: it would make the
// socket ready for ever.
func (u *UDP) clearFailure() {
	u.failed = false
	pending, err := u.loop.kernel.GetOption(u.fd, sys.SocketError)
	if err == nil && pending != 0 {
		u.report(syscall.Errno(pending))
	}
}
