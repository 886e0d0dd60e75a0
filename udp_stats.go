package weir

import (
	"sync/atomic"

	"github.com/weirnet/weir/internal/sys"
)

// UDPStats is what a UDP socket has done so far, in datagrams unless said otherwise.
type UDPStats struct {
	Received      uint64 // by the program from the kernel
	ReceivedBytes uint64
	ReceiveCalls  uint64 // system calls
	ReceiveErrors uint64 // errors that the kernel had for the socket
	BoundStops    uint64 // visits that ended because the socket's share was used up
	Truncated     uint64 // longer than UDPConfig.MaxDatagramBytes
	Discarded     uint64 // received, but not delivered when the socket was closed
	KernelDropped uint64 // dropped by the kernel, as the receive buffer was full or a checksum wrong

	Sent      uint64 // taken by the kernel
	SentBytes uint64
	SendCalls uint64 // system calls
	SendLost  uint64 // taken by Send, but refused by the kernel; OnError tells, as long as few wait for it
	Unsent    uint64 // taken by Send, and still queued when the socket was closed
	Refused   uint64 // calls of Send that answered ErrWouldBlock

	RecvBufferBytes int // the kernel's limit, as it counts; 0 once closed
	SendBufferBytes int
}

func (s *UDPStats) add(o UDPStats) {
	s.Received += o.Received
	s.ReceivedBytes += o.ReceivedBytes
	s.ReceiveCalls += o.ReceiveCalls
	s.ReceiveErrors += o.ReceiveErrors
	s.BoundStops += o.BoundStops
	s.Truncated += o.Truncated
	s.Discarded += o.Discarded
	s.KernelDropped += o.KernelDropped
	s.Sent += o.Sent
	s.SentBytes += o.SentBytes
	s.SendCalls += o.SendCalls
	s.SendLost += o.SendLost
	s.Unsent += o.Unsent
	s.Refused += o.Refused
	s.RecvBufferBytes += o.RecvBufferBytes
	s.SendBufferBytes += o.SendBufferBytes
}

// udpCounters are written by the loop and read by any goroutine.
type udpCounters struct {
	received, recvBytes, recvCalls, recvErrors atomic.Uint64
	boundStops, truncated, discarded           atomic.Uint64
	sent, sentBytes, sendCalls, lost, unsent   atomic.Uint64
	refused                                    atomic.Uint64
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
		Received: c.received.Load(), ReceivedBytes: c.recvBytes.Load(), ReceiveCalls: c.recvCalls.Load(),
		ReceiveErrors: c.recvErrors.Load(), BoundStops: c.boundStops.Load(), Truncated: c.truncated.Load(),
		Discarded: c.discarded.Load(),
		Sent:      c.sent.Load(), SentBytes: c.sentBytes.Load(), SendCalls: c.sendCalls.Load(),
		SendLost: c.lost.Load(), Unsent: c.unsent.Load(), Refused: c.refused.Load(),
	}
	u.fdMu.Lock()
	defer u.fdMu.Unlock()
	if u.fd >= 0 {
		if info, err := u.loop.kernel.MemInfo(u.fd); err == nil {
			u.memory.count(info)
			s.RecvBufferBytes, s.SendBufferBytes = info.RecvLimit, info.SendLimit
		}
	}
	s.KernelDropped = u.memory.drops
	return s
}
