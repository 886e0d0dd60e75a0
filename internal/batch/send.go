package batch

import (
	"github.com/weirnet/weir/internal/sys"
)

// Sent is what a flush did.
type Sent struct {
	Calls     int // of the kernel
	Datagrams int
	Bytes     int
	Failed    int
	Blocked   bool  // the kernel takes no more now; wait until the socket is writable
	Dead      error // the descriptor is no socket any more; what is queued cannot be sent
}

// Hooks hear of what a flush could not do. They must not touch the queue.
type Hooks struct {
	Lost  func(*Datagram, error) // the kernel refused the datagram, which is gone
	Stale func(error)            // the kernel reported an error of an earlier datagram; nothing is gone now
}

// Flush sends what q holds, until it is empty or the kernel takes no more. A datagram that the kernel
// refuses costs only itself: those behind it go out.
//
//   - Owner: scratch is the caller's and is overwritten.
func Flush(k sys.Datagram, fd int, scratch *sys.SendBatch, q *Queue, h *Hooks) (s Sent) {
	for q.Len() > 0 {
		n := min(q.Len(), len(scratch.Msgs))
		for i := range n {
			d := q.At(i)
			scratch.Msgs[i] = sys.Message{Buf: d.Payload, Addr: d.Addr}
		}
		if !s.flushBatch(k, fd, scratch, q, n, h) {
			return s
		}
	}
	return s
}

// flushBatch sends the first n datagrams of q and tells whether to go on.
func (s *Sent) flushBatch(k sys.Datagram, fd int, b *sys.SendBatch, q *Queue, n int, h *Hooks) bool {
	var stale error // what the first try at the next datagram was answered
	for from := 0; from < n; {
		sent, err := k.Send(fd, b, from, n)
		s.Calls++
		class := Class(0)
		if err != nil {
			class = SendClass(err)
		}
		if class == Stale && stale == nil {
			stale = err
			continue
		}
		if stale != nil && class != Stale {
			h.Stale(stale)
		}
		stale = nil
		switch {
		case err == nil:
			for i := range sent {
				s.Bytes += len(b.Msgs[from+i].Buf)
			}
			s.Datagrams += sent
		case class == Wait:
			s.Blocked = true
			return false
		case class == Dead:
			s.Dead = err
			return false
		default:
			h.Lost(q.At(0), err)
			s.Failed++
			sent = 1
		}
		from += sent
		q.Drop(sent)
	}
	return true
}
