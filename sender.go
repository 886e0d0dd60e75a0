package weir

import (
	"context"
	"net/netip"
	"sync"

	"github.com/weirnet/weir/internal/batch"
	"github.com/weirnet/weir/internal/sys"
)

// Sender sends on a UDP socket from any goroutine. What goroutines send before the loop comes to it goes out
// together.
type Sender struct {
	socket *UDP   // the loop's; here its limits alone may be looked at
	moveFn func() // move, bound once

	mu        sync.Mutex
	filling   *sendQueue    // guarded by mu
	scheduled bool          // guarded by mu: the loop is about to move what there is
	closed    bool          // guarded by mu
	room      chan struct{} // guarded by mu; closed when there is room, nil while nobody asked

	moving *sendQueue // loop only: what was taken and has not found room in the socket's queue
	inMove bool       // loop only
}

// sendQueue is a queue with the memory that it borrows from, so that the two can change hands.
type sendQueue struct {
	batch.Queue
	pool batch.Pool
}

func newSendQueue() *sendQueue {
	q := &sendQueue{}
	q.Queue = batch.NewQueue(&q.pool)
	return q
}

func newSender(u *UDP) *Sender {
	s := &Sender{socket: u, filling: newSendQueue(), moving: newSendQueue()}
	s.moveFn = s.drain
	return s
}

// Sender is the socket's only one, for other goroutines; any goroutine. What it is given goes out in that order, and
// in no order with what UDP.Send is given.
func (u *UDP) Sender() *Sender { return u.sender }

// Send is UDP.Send for any goroutine: b is copied, and goes out soon, in order with what else this Sender is
// given. What turns out on the loop to be impossible, as an address for a connected socket, goes to OnError.
//
//   - Errors: ErrWouldBlock when as many datagrams or bytes wait as UDPConfig allows; ErrClosed; *OpError:
//     EMSGSIZE, EINVAL (port 0, or a zone that is not a number).
func (s *Sender) Send(b []byte, to netip.AddrPort) error {
	_, err := s.add(b, to, false)
	return err
}

// SendContext is Send, but waits for room; any goroutine but the loop's.
//
//   - Errors: context.Cause(ctx); else as Send, without ErrWouldBlock.
func (s *Sender) SendContext(ctx context.Context, b []byte, to netip.AddrPort) error {
	for ctx.Err() == nil {
		room, err := s.add(b, to, true)
		if err != ErrWouldBlock {
			return err
		}
		select {
		case <-room:
		case <-ctx.Done():
		}
	}
	return context.Cause(ctx)
}

func (s *Sender) add(b []byte, to netip.AddrPort, wait bool) (room <-chan struct{}, err error) {
	err = checkSize(b, to.Addr())
	if err == nil && to.IsValid() {
		err = checkPeer(to)
	}
	if err != nil {
		return nil, &OpError{Op: "send", Net: "udp", Addr: to, Err: err}
	}
	schedule, room, err := s.push(b, to, wait)
	if schedule {
		_ = s.socket.loop.posts.addAlways(s.moveFn) // refused by a loop that has ended, which has closed the socket
	}
	return room, err
}

// push queues a datagram and tells whether the loop has to be told.
func (s *Sender) push(b []byte, to netip.AddrPort, wait bool) (schedule bool, room <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	limits, q := &s.socket.limits, &s.filling.Queue
	switch {
	case s.closed:
		return false, nil, ErrClosed
	case q.Len() >= limits.sends, q.Len() > 0 && q.Bytes()+len(b) > limits.sendBytes:
		if !wait {
			s.socket.counters.refused.Add(1)
		} else if s.room == nil {
			s.room = make(chan struct{})
		}
		return false, s.room, ErrWouldBlock
	}
	q.Push(&sys.Message{Buf: b, Addr: to})
	schedule = !s.scheduled
	s.scheduled = true
	return schedule, nil, nil
}

// take swaps the queues and tells whether there is something to move.
func (s *Sender) take() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.filling.Len() == 0 {
		s.scheduled = false
		return false
	}
	s.filling, s.moving = s.moving, s.filling
	s.signalRoomLocked()
	return true
}

func (s *Sender) signalRoomLocked() {
	if s.room != nil {
		close(s.room)
		s.room = nil
	}
}

// drain moves what is queued to the socket's queue, as far as that has room. It runs on the loop.
func (s *Sender) drain() {
	u := s.socket
	if s.inMove || u.fd < 0 {
		return
	}
	s.inMove = true
	defer func() { s.inMove = false }()
	for s.moving.Len() > 0 || s.take() {
		t := s.moving.At(0)
		if u.fd < 0 || !u.roomFor(len(t.Payload)) {
			return // roomAgain goes on
		}
		u.enqueueFor(t)
		s.moving.Drop(1)
		u.flushLong()
	}
}

// roomAgain goes on where drain had to stop.
func (s *Sender) roomAgain() {
	if s.moving.Len() > 0 {
		s.drain()
	}
}

// refuse takes nothing more.
func (s *Sender) refuse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.signalRoomLocked()
}

// giveUp drops what is queued and tells how much that is.
func (s *Sender) giveUp() (unsent int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	unsent = s.filling.Len() + s.moving.Len()
	s.filling.Clear()
	s.moving.Clear()
	return unsent
}

// enqueueFor queues what another goroutine sent.
func (u *UDP) enqueueFor(t *batch.Train) {
	dest, err := u.destination(t.Payload, t.Addr)
	if err != nil {
		u.counters.rejected()
		u.deferError(u.opError("send", t.Addr, err))
		return
	}
	u.enqueue(&sys.Message{Buf: t.Payload, Addr: dest})
}
