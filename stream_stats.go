package weir

import "sync/atomic"

// StreamStats is what the listeners and connections of a loop have done so far.
type StreamStats struct {
	Accepted      uint64 // connections
	AcceptRefused uint64 // closed at once, as there were no descriptors for more
	AcceptErrors  uint64 // accepts that failed
	Dialled       uint64 // connections that came about
	DialErrors    uint64 // and that did not
	Closed        uint64 // connections, without those that did not come about
	Broken        uint64 // of Closed: by an error, a time limit included
	Timeouts      uint64 // time limits that were over

	ReadBytes     uint64
	Discarded     uint64 // of ReadBytes: not delivered, as the connection was closed
	ReadCalls     uint64 // system calls
	WrittenBytes  uint64 // taken by the kernel
	WriteCalls    uint64
	UnsentBytes   uint64 // taken by Write or a ConnSender, and still queued when the connection was closed
	Refused       uint64 // writes that were answered ErrWouldBlock
	BoundStops    uint64 // visits that ended because the share was used up
	FilesReceived uint64 // descriptors
	FilesSent     uint64

	// What is so now.
	Open        int // connections, those on their way included
	QueuedBytes int // taken by Write, and not by the kernel yet
}

// streamCounters are written by the loop, and read by any goroutine.
type streamCounters struct {
	accepted, acceptRefused, acceptErrors atomic.Uint64
	dialled, dialErrors                   atomic.Uint64
	closed, broken, timeouts              atomic.Uint64

	readBytes, discarded, readCalls  atomic.Uint64
	writtenBytes, writeCalls         atomic.Uint64
	unsentBytes, refused, boundStops atomic.Uint64
	filesReceived, filesSent         atomic.Uint64

	open, queuedBytes atomic.Int64
}

func (c *streamCounters) snapshot() StreamStats {
	return StreamStats{
		Accepted: c.accepted.Load(), AcceptRefused: c.acceptRefused.Load(), AcceptErrors: c.acceptErrors.Load(),
		Dialled: c.dialled.Load(), DialErrors: c.dialErrors.Load(),
		Closed: c.closed.Load(), Broken: c.broken.Load(), Timeouts: c.timeouts.Load(),
		ReadBytes: c.readBytes.Load(), Discarded: c.discarded.Load(), ReadCalls: c.readCalls.Load(),
		WrittenBytes: c.writtenBytes.Load(), WriteCalls: c.writeCalls.Load(),
		UnsentBytes: c.unsentBytes.Load(), Refused: c.refused.Load(), BoundStops: c.boundStops.Load(),
		FilesReceived: c.filesReceived.Load(), FilesSent: c.filesSent.Load(),
		Open: int(c.open.Load()), QueuedBytes: int(c.queuedBytes.Load()),
	}
}

func (s *StreamStats) add(o *StreamStats) {
	s.Accepted += o.Accepted
	s.AcceptRefused += o.AcceptRefused
	s.AcceptErrors += o.AcceptErrors
	s.Dialled += o.Dialled
	s.DialErrors += o.DialErrors
	s.Closed += o.Closed
	s.Broken += o.Broken
	s.Timeouts += o.Timeouts
	s.ReadBytes += o.ReadBytes
	s.Discarded += o.Discarded
	s.ReadCalls += o.ReadCalls
	s.WrittenBytes += o.WrittenBytes
	s.WriteCalls += o.WriteCalls
	s.UnsentBytes += o.UnsentBytes
	s.Refused += o.Refused
	s.BoundStops += o.BoundStops
	s.FilesReceived += o.FilesReceived
	s.FilesSent += o.FilesSent
	s.Open += o.Open
	s.QueuedBytes += o.QueuedBytes
}

// countClosed counts a connection that is over.
func (c *Conn) countClosed(came bool, why error) {
	s := &c.loop.stats.streams
	s.open.Add(-1)
	if !came {
		return
	}
	s.closed.Add(1)
	if why != nil && why != ErrClosed {
		s.broken.Add(1)
	}
}
