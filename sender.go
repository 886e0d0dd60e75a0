package weir

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/weirnet/weir/internal/batch"
	"github.com/weirnet/weir/internal/sys"
)

// Sender sends on a UDP socket from any goroutine. What goroutines send before the loop comes to it goes out
// together.
type Sender struct {
	socket *UDP   // the loop's; here its limits alone may be looked at
	moveFn func() // move, bound once

	queued atomic.Int64 // datagrams that the socket's queue does not have yet

	mu        sync.Mutex
	filling   *sendQueue    // guarded by mu; nil before the first
	scheduled bool          // guarded by mu: the loop is about to move what there is, or waits for room
	closed    bool          // guarded by mu
	room      chan struct{} // guarded by mu; closed when there is room, nil while nobody asked

	moving *sendQueue // loop only: what was taken and is not in the socket's queue yet; nil before the first
	parked bool       // loop only: the socket's queue had no room
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
	s := &Sender{socket: u}
	s.moveFn = s.move
	return s
}

// Sender is the socket's only one, for other goroutines; any goroutine. What it is given goes out in that order, and
// in no order with what UDP.Send is given.
func (u *UDP) Sender() *Sender { return u.sender }

// Send is UDP.Send for any goroutine: b is copied, and goes out soon, to the peer that the socket has then where to
// is the zero AddrPort. What turns out on the loop to be impossible, as an address for a connected socket, goes to
// OnError.
//
//   - Errors: ErrWouldBlock when as many datagrams or bytes wait as UDPConfig allows; ErrClosed; *OpError:
//     EMSGSIZE, EINVAL (port 0, or a zone that is not a number).
func (s *Sender) Send(b []byte, to netip.AddrPort) error {
	_, err := s.add(b, to, SendOptions{}, false)
	return err
}

// SendWith is Send with options.
//
//   - Errors: as Send; what is wrong with the options goes to OnError.
func (s *Sender) SendWith(b []byte, to netip.AddrPort, o SendOptions) error {
	_, err := s.add(b, to, o, false)
	return err
}

// SendContext is Send, but waits for room; any goroutine but the loop's.
//
//   - Errors: context.Cause(ctx); else as Send, without ErrWouldBlock.
func (s *Sender) SendContext(ctx context.Context, b []byte, to netip.AddrPort) error {
	for ctx.Err() == nil {
		room, err := s.add(b, to, SendOptions{}, true)
		if !errors.Is(err, ErrWouldBlock) {
			return err
		}
		select {
		case <-room:
		case <-ctx.Done():
		}
	}
	return context.Cause(ctx)
}

func (s *Sender) add(b []byte, to netip.AddrPort, o SendOptions, wait bool) (room <-chan struct{}, err error) {
	err = checkSize(b, to.Addr())
	if err == nil && to.IsValid() {
		err = checkPeer(to)
	}
	if err != nil {
		return nil, &OpError{Op: "send", Net: "udp", Addr: to, Err: err}
	}
	// The options as they are: the loop makes of them what the kernel is told.
	m := sys.Message{Buf: b, Addr: to, Control: sys.Control{
		Local: o.Local, Interface: uint32(o.Interface), TrafficClass: uint8(o.ECN),
	}}
	schedule, room, err := s.push(&m, wait)
	if schedule {
		s.post()
	}
	return room, err
}

// post has the loop move what is queued. A loop that has ended refuses, and has closed the socket.
func (s *Sender) post() { _ = s.socket.loop.posts.addAlways(s.moveFn) }

// push queues a datagram and tells whether the loop has to be told.
func (s *Sender) push(m *sys.Message, wait bool) (schedule bool, room <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false, nil, ErrClosed
	}
	if s.filling == nil {
		s.filling = newSendQueue()
	}
	limits, q := &s.socket.limits, &s.filling.Queue
	if q.Len() >= limits.sends || q.Len() > 0 && q.Bytes()+len(m.Buf) > limits.sendBytes {
		if !wait {
			s.socket.counters.refused.Add(1)
		} else if s.room == nil {
			s.room = make(chan struct{})
		}
		return false, s.room, ErrWouldBlock
	}
	q.Push(m)
	s.queued.Add(1)
	schedule = !s.scheduled
	s.scheduled = true
	return schedule, nil, nil
}

// take swaps the queues and tells whether there is something to move.
func (s *Sender) take() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.filling == nil || s.filling.Len() == 0 {
		s.scheduled = false
		return false
	}
	if s.moving == nil {
		s.moving = newSendQueue()
	}
	s.moving.pool.Trim()
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

func (s *Sender) left() bool { return s.moving != nil && s.moving.Len() > 0 }

// expiredEvery is how many datagrams are moved between looks at the clock.
const expiredEvery = 16

// move puts what is queued into the socket's queue, once, as far as that has room and the posted functions have
// credit. It runs on the loop.
func (s *Sender) move() {
	u := s.socket
	if u.fd < 0 || !s.left() && !s.take() {
		return
	}
	for n := 1; s.left(); n++ {
		if !u.roomFor(len(s.moving.At(0).Payload)) {
			s.parked = true
			return
		}
		if !s.moveOne() {
			return
		}
		if n%expiredEvery == 0 && u.loop.Expired() {
			break
		}
	}
	s.post() // there may be more
}

// moveOne moves the first datagram and tells whether the socket is still there.
func (s *Sender) moveOne() bool {
	u, t := s.socket, s.moving.At(0)
	m := sys.Message{Buf: t.Payload, Addr: t.Addr}
	o := SendOptions{Local: t.Control.Local, Interface: int(t.Control.Interface), ECN: ECN(t.Control.TrafficClass)}
	err := u.prepare(&m, &o)
	if err != nil {
		u.counters.rejected()
		u.deferError(u.opError("send", t.Addr, err))
	} else {
		u.enqueue(&m)
	}
	s.moving.Drop(1)
	s.queued.Add(-1)
	if err == nil {
		u.flushLong()
	}
	return u.fd >= 0
}

// moveAll moves everything at once, whatever room there is.
func (s *Sender) moveAll() {
	for s.left() || s.take() {
		if !s.moveOne() {
			return
		}
	}
}

// roomAgain goes on where move had to stop.
func (s *Sender) roomAgain() {
	if s.parked {
		s.parked = false
		s.post()
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
	for _, q := range []*sendQueue{s.filling, s.moving} {
		if q != nil {
			unsent += q.Len()
			q.Clear()
		}
	}
	s.queued.Store(0)
	return unsent
}
