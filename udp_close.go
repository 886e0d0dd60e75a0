package weir

import (
	"github.com/weirnet/weir/internal/batch"
	"github.com/weirnet/weir/internal/sys"
)

// stopping is how far a socket is on the way to its end by a Stop.
type stopping uint8

const (
	notStopping      stopping = iota
	drainingReceives          // what the kernel has queued is being delivered
	drainingSends             // it was; what is queued here waits for the kernel
)

// Close closes the socket. What was sent before goes out first, as far as the kernel takes it at once.
// The descriptor is closed and its port free when Close returns. OnClose follows, after OnError for what the
// kernel refused; what it did not take at once is counted in Stats as Unsent.
//
//   - Errors: ErrClosed when it is closed already.
func (u *UDP) Close() error {
	if u.fd < 0 {
		return ErrClosed
	}
	u.close(nil)
	return nil
}

func (u *UDP) close(why error) {
	if u.fd < 0 {
		return
	}
	l := u.loop
	u.sender.refuse()
	u.sender.moveAll()
	u.flushAtOnce()
	if u.fd < 0 {
		return // the flush found the socket dead and closed it
	}
	u.discardKept()
	u.counters.unsent.Add(uint64(u.sends.Len() + u.sender.giveUp()))
	u.sends.Clear()
	u.publish()
	delete(l.sockets, u.cookie)
	if u.rested != nil {
		u.rested.Stop()
	}
	l.table.remove(u.token)
	l.ring.Remove(u.source)
	if !u.outside {
		_ = l.poller.Remove(u.fd) // before close: a duplicate of the descriptor would keep it registered
	}
	fd := u.forgetDescriptor()
	l.stats.closing(u)
	_ = l.kernel.Close(fd)
	l.descriptorFreed()
	u.closeErr, u.closeDue = why, true
	u.flushDue, u.drained = false, false
	l.turnEnd.add(u)
}

// forgetDescriptor takes a last look at what the kernel knows of the socket.
func (u *UDP) forgetDescriptor() (fd int) {
	u.fdMu.Lock()
	defer u.fdMu.Unlock()
	if info, err := u.loop.kernel.MemInfo(u.fd); err == nil {
		u.memory.count(info)
	}
	fd = u.fd
	u.fd = -1
	return fd
}

// discardKept gives up what was not delivered. The datagram that a callback holds now was; its memory stays
// until the callback returns.
func (u *UDP) discardKept() {
	discarded := countDatagrams(u.batch) + u.kept.Len()
	if u.lent {
		discarded--
	} else {
		u.kept.Clear()
	}
	u.batch = nil
	u.counters.discarded.Add(uint64(discarded))
}

func countDatagrams(msgs []sys.Message) (n int) {
	for i := range msgs {
		n += batch.Segments(len(msgs[i].Buf), msgs[i].Control.Segment)
	}
	return n
}

// stop is Close, once what the kernel holds for the socket has been delivered.
func (u *UDP) stop() {
	u.stopping = drainingReceives
	u.endRest()
	u.left = u.queuedAtMost()
	u.Resume()
}

// finishStop closes a socket that a Stop waited for, or stops reading it where sends still wait for the
// kernel.
func (u *UDP) finishStop() {
	if u.undelivered() {
		return
	}
	u.sender.refuse()
	u.sender.moveAll()
	if u.fd < 0 {
		return
	}
	u.flush()
	if u.fd >= 0 && u.sends.Len() > 0 {
		u.stopping = drainingSends
		u.changed()
		return
	}
	u.close(nil)
}

// minTruesize is less than the kernel charges for any datagram it queues (Linux: 768 and more).
const minTruesize = 512

// queuedAtMost is a number of messages that the kernel cannot hold more of.
func (u *UDP) queuedAtMost() int {
	limit, err := u.loop.kernel.GetOption(u.fd, sys.RecvBuffer)
	if err != nil {
		return 0
	}
	return limit/minTruesize + 1
}
