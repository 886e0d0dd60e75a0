package dgram

import (
	"sync/atomic"

	"github.com/weirnet/weir/internal/batch"
	"github.com/weirnet/weir/internal/sys"
)

// Stats is what a Conn has done so far, in datagrams unless said otherwise.
//
// Sent says that the kernel took a datagram, not that it arrived. KernelDropped is what the kernel counts, and
// with GRO it counts a train of up to 64 datagrams as one: it is exact with Config.NoGRO, and else the least
// that was dropped.
type Stats struct {
	Received       uint64 // by the program from the kernel
	ReceivedBytes  uint64
	ReceivedJoined uint64 // of Received: came as part of a train (GRO)
	ReceiveCalls   uint64 // system calls
	ReceiveBatches uint64 // of ReceiveCalls: brought datagrams
	ReceiveErrors  uint64 // errors that the kernel had for the socket, passed over
	Filtered       uint64 // refused by the filter
	Truncated      uint64 // longer than the caller's buffer
	Discarded      uint64 // received, but not read when the Conn was closed
	KernelDropped  uint64 // dropped by the kernel, as the receive buffer was full or a checksum wrong; with GRO the least that was

	Sent       uint64 // taken by the kernel
	SentBytes  uint64
	SentJoined uint64 // of Sent: went as part of a train (GSO)
	SendCalls  uint64 // system calls
	SendLost   uint64 // refused by the kernel; but for EMSGSIZE the caller was answered success
	SendErrors SendErrors

	// What is so now. All are 0 or false once closed.
	Undelivered     int // received, and not read yet
	RecvQueuedBytes int // in the kernel's receive buffer, as it counts
	RecvBufferBytes int // the kernel's limit, as it counts
	SendBufferBytes int
	Paths           FastPaths // in the end SentJoined and ReceivedJoined tell what was used
}

// SendErrors counts the answers of the kernel to sends, by what they mean.
type SendErrors struct {
	Wait    uint64 // the send buffer was full (EAGAIN)
	Stale   uint64 // the error of an earlier datagram, or perhaps so; the datagram was tried again
	Offload uint64 // a train or traffic class was refused; the datagrams were sent without
	Size    uint64 // datagrams larger than their path takes (EMSGSIZE)
	Lost    uint64 // datagrams that the system refused: a firewall (EPERM), no memory (ENOBUFS), no route, …
	Caller  uint64 // datagrams that could not be sent as asked
	Dead    uint64 // the descriptor was no socket any more
}

// FastPaths are what makes a Conn fast, where it is on.
type FastPaths struct {
	BatchedReceives bool // recvmmsg, and the socket is not shared
	BatchedSends    bool // sendmmsg
	GSO             bool // one send for many datagrams, but to destinations that refused that
	GRO             bool // one receive for many
}

// Stats tells what the Conn has done so far.
func (c *Conn) Stats() Stats {
	n := &c.counters
	s := Stats{
		Received:       n.received.Load(),
		ReceivedBytes:  n.recvBytes.Load(),
		ReceivedJoined: n.recvJoined.Load(),
		ReceiveCalls:   n.recvCalls.Load(),
		ReceiveBatches: n.recvBatches.Load(),
		ReceiveErrors:  n.recvErrors.Load(),
		Filtered:       n.filtered.Load(),
		Truncated:      n.truncated.Load(),
		Discarded:      n.discarded.Load(),
		Sent:           n.sent.Load(),
		SentBytes:      n.sentBytes.Load(),
		SentJoined:     n.sentJoined.Load(),
		SendCalls:      n.sendCalls.Load(),
		SendLost:       n.lost.Load(),
		SendErrors: SendErrors{
			Wait:    n.wait.Load(),
			Stale:   n.stale.Load(),
			Offload: n.offload.Load(),
			Size:    n.size.Load(),
			Lost:    n.lostOther.Load(),
			Caller:  n.caller.Load(),
			Dead:    n.dead.Load(),
		},
		Undelivered: int(n.undelivered.Load()),
	}
	m, known, open := c.memory()
	s.KernelDropped = n.drops(m.Drops, known)
	if !open {
		s.Undelivered = 0
		return s
	}
	s.RecvQueuedBytes, s.RecvBufferBytes, s.SendBufferBytes = m.RecvQueued, m.RecvLimit, m.SendLimit
	recv, send := c.kernel.Unbatched()
	s.Paths = FastPaths{
		BatchedReceives: recv == nil && !c.shared,
		BatchedSends:    send == nil,
		GSO:             c.segments,
		GRO:             c.recv.joined.Load(),
	}
	return s
}

// memory asks the kernel, which may not know, of a Conn that is open.
func (c *Conn) memory() (m sys.MemInfo, known, open bool) {
	err := control(c.raw, func(fd int) (err error) {
		open = true
		m, err = c.kernel.MemInfo(fd)
		return err
	})
	return m, open && err == nil, open
}

// counters are written by whoever reads and writes.
type counters struct {
	received, recvBytes, recvJoined    atomic.Uint64
	recvCalls, recvBatches, recvErrors atomic.Uint64
	filtered, truncated, discarded     atomic.Uint64

	sent, sentBytes, sentJoined, sendCalls, lost        atomic.Uint64
	wait, stale, offload, size, lostOther, caller, dead atomic.Uint64

	undelivered atomic.Int64
	dropped     dropCounter
}

func (n *counters) arrived(datagrams, bytes, joined int) {
	n.recvBatches.Add(1)
	n.received.Add(uint64(datagrams))
	n.recvBytes.Add(uint64(bytes))
	n.undelivered.Add(int64(datagrams))
	if joined > 0 {
		n.recvJoined.Add(uint64(joined))
	}
}

// sentMessages counts what the kernel took.
func (n *counters) sentMessages(ms []sys.Message) {
	datagrams, bytes, joined := 0, 0, 0
	for i := range ms {
		m := &ms[i]
		k := batch.Segments(len(m.Buf), m.Control.Segment)
		datagrams += k
		bytes += len(m.Buf)
		if k > 1 {
			joined += k
		}
	}
	n.sent.Add(uint64(datagrams))
	n.sentBytes.Add(uint64(bytes))
	if joined > 0 {
		n.sentJoined.Add(uint64(joined))
	}
}

// countSent adds what a flush did.
func (n *counters) countSent(s *batch.Sent) {
	n.sendCalls.Add(uint64(s.Calls))
	n.sent.Add(uint64(s.Datagrams))
	n.sentBytes.Add(uint64(s.Bytes))
	n.sentJoined.Add(uint64(s.Joined))
	n.lost.Add(uint64(s.Refused()))
	n.wait.Add(uint64(s.Answers[batch.Wait]))
	n.stale.Add(uint64(s.Answers[batch.Stale]))
	n.offload.Add(uint64(s.Answers[batch.Offload]))
	n.dead.Add(uint64(s.Answers[batch.Dead]))
	n.size.Add(uint64(s.Failed[batch.Size]))
	n.lostOther.Add(uint64(s.Failed[batch.Lost]))
	n.caller.Add(uint64(s.Failed[batch.Caller]))
}

// answered counts an error after which the datagrams were tried again.
func (n *counters) answered(class batch.Class) {
	switch class {
	case batch.Stale:
		n.stale.Add(1)
	case batch.Offload:
		n.offload.Add(1)
	}
}

// gaveUp counts datagrams that were not tried again.
func (n *counters) gaveUp(class batch.Class, datagrams int) {
	if class == batch.Dead {
		n.dead.Add(1)
		return
	}
	n.lost.Add(uint64(datagrams))
	switch class {
	case batch.Size:
		n.size.Add(uint64(datagrams))
	case batch.Caller:
		n.caller.Add(uint64(datagrams))
	default:
		n.lostOther.Add(uint64(datagrams))
	}
}
