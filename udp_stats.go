package weir

import (
	"sync/atomic"

	"github.com/weirnet/weir/internal/batch"
	"github.com/weirnet/weir/internal/sys"
)

// UDPStats is what a UDP socket has done so far, in datagrams unless said otherwise.
//
// Sent says that the kernel took a datagram, not that it arrived. KernelDropped is what the kernel counts, and
// with GRO it counts a train of up to 64 datagrams as one: it is exact with UDPConfig.NoGRO, and else the least
// that was dropped. Reports are likewise one for a train that was sent.
type UDPStats struct {
	Received       uint64 // by the program from the kernel
	ReceivedBytes  uint64
	ReceivedJoined uint64 // of Received: came as part of a train (GRO)
	ReceiveCalls   uint64 // system calls
	ReceiveBatches uint64 // of ReceiveCalls: brought datagrams
	ReceiveErrors  uint64 // errors that the kernel had for the socket
	Injected       uint64 // given by Inject
	BoundStops     uint64 // visits that ended because the socket's share was used up
	Truncated      uint64 // longer than UDPConfig.MaxDatagramBytes
	Exported       uint64 // received, but handed over by Export instead of being delivered
	Discarded      uint64 // received, but not delivered when the socket was closed
	KernelDropped  uint64 // dropped by the kernel, as the receive buffer was full or a checksum wrong; see below

	Sent       uint64 // taken by the kernel
	SentBytes  uint64
	SentJoined uint64 // of Sent: went as part of a train (GSO)
	SendCalls  uint64 // system calls
	SendLost   uint64 // taken by Send, but refused by the kernel; OnError tells of some
	Unsent     uint64 // taken by Send, and still queued when the socket was closed
	Refused    uint64 // sends that were answered ErrWouldBlock
	SendErrors SendErrors

	Reports        uint64 // entries taken from the error queue
	ReportsDropped uint64 // of Reports: of a kind too many for OnError to be told of
	Unreported     uint64 // errors that OnError was not told of, as there were too many

	// What is so now. All are 0 or false once closed, and sums or false in Stats of a loop.
	Undelivered     int // received, and not delivered yet
	Queued          int // taken by Send or a Sender, and not by the kernel yet
	QueuedBytes     int // without those that only the Sender has
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

// FastPaths are what makes a socket fast, where it is on.
type FastPaths struct {
	BatchedReceives bool // recvmmsg, and the socket is not shared
	BatchedSends    bool // sendmmsg
	GSO             bool // one send for many datagrams
	GRO             bool // one receive for many
}

func (s *UDPStats) add(o UDPStats) {
	s.Received += o.Received
	s.ReceivedBytes += o.ReceivedBytes
	s.ReceivedJoined += o.ReceivedJoined
	s.ReceiveCalls += o.ReceiveCalls
	s.ReceiveBatches += o.ReceiveBatches
	s.ReceiveErrors += o.ReceiveErrors
	s.Injected += o.Injected
	s.BoundStops += o.BoundStops
	s.Truncated += o.Truncated
	s.Exported += o.Exported
	s.Discarded += o.Discarded
	s.KernelDropped += o.KernelDropped
	s.Sent += o.Sent
	s.SentBytes += o.SentBytes
	s.SentJoined += o.SentJoined
	s.SendCalls += o.SendCalls
	s.SendLost += o.SendLost
	s.Unsent += o.Unsent
	s.Refused += o.Refused
	s.SendErrors.add(o.SendErrors)
	s.Reports += o.Reports
	s.ReportsDropped += o.ReportsDropped
	s.Unreported += o.Unreported
	s.Undelivered += o.Undelivered
	s.Queued += o.Queued
	s.QueuedBytes += o.QueuedBytes
	s.RecvQueuedBytes += o.RecvQueuedBytes
	s.RecvBufferBytes += o.RecvBufferBytes
	s.SendBufferBytes += o.SendBufferBytes
}

func (s *SendErrors) add(o SendErrors) {
	s.Wait += o.Wait
	s.Stale += o.Stale
	s.Offload += o.Offload
	s.Size += o.Size
	s.Lost += o.Lost
	s.Caller += o.Caller
	s.Dead += o.Dead
}

// udpCounters are written by the loop, Refused by Senders, too, and read by any goroutine.
type udpCounters struct {
	received, recvBytes, recvJoined                      atomic.Uint64
	recvCalls, recvBatches, recvErrors                   atomic.Uint64
	injected, boundStops, truncated, discarded, exported atomic.Uint64

	sent, sentBytes, sentJoined, sendCalls, lost, unsent, refused atomic.Uint64
	wait, stale, offload, size, lostOther, caller, dead           atomic.Uint64

	reports, reportsDropped, unreported atomic.Uint64

	undelivered, queued, queuedBytes atomic.Int64
	shared, gso, gro                 atomic.Bool
}

// countSent adds what a flush did.
func (c *udpCounters) countSent(s *batch.Sent) {
	c.sendCalls.Add(uint64(s.Calls))
	c.sent.Add(uint64(s.Datagrams))
	c.sentBytes.Add(uint64(s.Bytes))
	c.sentJoined.Add(uint64(s.Joined))
	if s.Answers == (batch.Sent{}).Answers {
		return
	}
	c.lost.Add(uint64(s.Refused()))
	c.wait.Add(uint64(s.Answers[batch.Wait]))
	c.stale.Add(uint64(s.Answers[batch.Stale]))
	c.offload.Add(uint64(s.Answers[batch.Offload]))
	c.size.Add(uint64(s.Failed[batch.Size]))
	c.lostOther.Add(uint64(s.Failed[batch.Lost]))
	c.caller.Add(uint64(s.Failed[batch.Caller]))
	c.dead.Add(uint64(s.Answers[batch.Dead]))
}

// rejected counts a datagram that a Sender took and the loop found impossible.
func (c *udpCounters) rejected() {
	c.lost.Add(1)
	c.caller.Add(1)
}

// publish shows other goroutines how the socket stands.
func (u *UDP) publish() {
	c := &u.counters
	c.undelivered.Store(int64(u.kept.Len() + countDatagrams(u.batch)))
	c.queued.Store(int64(u.sends.Len()))
	c.queuedBytes.Store(int64(u.sends.Bytes()))
	c.shared.Store(u.shared)
	c.gso.Store(u.segment)
	c.gro.Store(u.joins)
}

// memory follows what the kernel says of the socket's buffers.
type memory struct {
	lastDrops uint32
	drops     uint64
}

// count adds what was dropped since the last look; the kernel's count has 32 bits and wraps.
func (m *memory) count(info sys.MemInfo) {
	m.drops += uint64(info.Drops - m.lastDrops)
	m.lastDrops = info.Drops
}

// Stats is a snapshot; any goroutine. What the kernel dropped is asked for at once.
func (u *UDP) Stats() UDPStats {
	c := &u.counters
	s := UDPStats{
		Received: c.received.Load(), ReceivedBytes: c.recvBytes.Load(), ReceivedJoined: c.recvJoined.Load(),
		ReceiveCalls: c.recvCalls.Load(), ReceiveBatches: c.recvBatches.Load(), ReceiveErrors: c.recvErrors.Load(),
		Injected: c.injected.Load(), BoundStops: c.boundStops.Load(), Truncated: c.truncated.Load(),
		Exported: c.exported.Load(), Discarded: c.discarded.Load(),
		Sent: c.sent.Load(), SentBytes: c.sentBytes.Load(), SentJoined: c.sentJoined.Load(),
		SendCalls: c.sendCalls.Load(), SendLost: c.lost.Load(), Unsent: c.unsent.Load(), Refused: c.refused.Load(),
		SendErrors: SendErrors{
			Wait: c.wait.Load(), Stale: c.stale.Load(), Offload: c.offload.Load(), Size: c.size.Load(),
			Lost: c.lostOther.Load(), Caller: c.caller.Load(), Dead: c.dead.Load(),
		},
		Reports: c.reports.Load(), ReportsDropped: c.reportsDropped.Load(), Unreported: c.unreported.Load(),
	}
	u.fdMu.Lock()
	defer u.fdMu.Unlock()
	if u.fd >= 0 {
		if info, err := u.loop.kernel.MemInfo(u.fd); err == nil {
			u.memory.count(info)
			s.RecvQueuedBytes, s.RecvBufferBytes, s.SendBufferBytes = info.RecvQueued, info.RecvLimit, info.SendLimit
		}
		s.Undelivered, s.QueuedBytes = int(c.undelivered.Load()), int(c.queuedBytes.Load())
		s.Queued = int(c.queued.Load() + u.sender.queued.Load())
		recv, send := u.loop.kernel.Unbatched()
		s.Paths = FastPaths{
			BatchedReceives: recv == nil && !c.shared.Load(), BatchedSends: send == nil,
			GSO: c.gso.Load(), GRO: c.gro.Load(),
		}
	}
	s.KernelDropped = u.memory.drops
	return s
}
