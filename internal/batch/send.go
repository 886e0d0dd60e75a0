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

// Flush sends what q holds, until it is empty or the kernel takes no more. A datagram that the kernel
// refuses is dropped after fail has heard of it, and costs only itself: those behind it go out.
//
//   - Owner: scratch is the caller's and is overwritten. fail must not touch q.
func Flush(k sys.Datagram, fd int, scratch *sys.SendBatch, q *Queue, fail func(*Datagram, error)) (s Sent) {
	for q.Len() > 0 {
		n := min(q.Len(), len(scratch.Msgs))
		for i := range n {
			d := q.At(i)
			scratch.Msgs[i] = sys.Message{Buf: d.Payload, Addr: d.Addr}
		}
		if !s.flushBatch(k, fd, scratch, q, n, fail) {
			return s
		}
	}
	return s
}

// flushBatch sends the first n datagrams of q and tells whether to go on.
func (s *Sent) flushBatch(k sys.Datagram, fd int, b *sys.SendBatch, q *Queue, n int, fail func(*Datagram, error)) bool {
	for from := 0; from < n; {
		sent, err := k.Send(fd, b, from, n)
		s.Calls++
		if err == nil {
			for i := range sent {
				s.Bytes += len(b.Msgs[from+i].Buf)
			}
			s.Datagrams += sent
			from += sent
			q.Drop(sent)
			continue
		}
		switch SendClass(err) {
		case Wait:
			s.Blocked = true
			return false
		case Dead:
			s.Dead = err
			return false
		}
		fail(q.At(0), err)
		s.Failed++
		from++
		q.Drop(1)
	}
	return true
}
