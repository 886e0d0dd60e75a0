package weir

import (
	"context"
	"errors"
	"sync"

	"github.com/weirnet/weir/internal/stream"
)

// ConnSender writes on a connection from any goroutine. What goroutines write before the loop comes to it goes out
// together.
type ConnSender struct {
	conn   *Conn  // the loop's; here its limits alone may be looked at
	moveFn func() // move, bound once

	mu        sync.Mutex
	filling   *writeQueue   // guarded by mu
	scheduled bool          // guarded by mu: the loop is about to move what there is, or waits for room
	closed    bool          // guarded by mu
	room      chan struct{} // guarded by mu; closed when there is room, nil while nobody asked

	moving *writeQueue // loop only: what was taken and is not in the connection's queue yet
	parked bool        // loop only: the connection's queue had no room
}

// writeQueue is a queue with the memory that it borrows from, so that two can change hands.
type writeQueue struct {
	stream.Queue
	pool stream.Pool
}

// Sender is the connection's only one, for other goroutines. It is made by the first call, on the loop's. What it is
// given goes out in that order, and in no order with what Write is given.
func (c *Conn) Sender() *ConnSender {
	if c.sender == nil {
		s := &ConnSender{conn: c, filling: &writeQueue{}, moving: &writeQueue{}, closed: c.mayWrite() != nil}
		s.moveFn = s.move
		c.sender = s
	}
	return c.sender
}

// Write takes b, or nothing of it; any goroutine. It is copied and goes out soon. An error that comes later is OnClose's.
//
//   - Errors: ErrWouldBlock when ConnConfig.WriteBufferBytes would be exceeded, but an empty queue takes any b;
//     ErrClosed.
func (s *ConnSender) Write(b []byte) (n int, err error) {
	_, err = s.add(b, false)
	if err != nil {
		return 0, err
	}
	return len(b), nil
}

// WriteContext is Write, but waits for room; any goroutine but the loop's.
//
//   - Errors: context.Cause(ctx), ErrClosed.
func (s *ConnSender) WriteContext(ctx context.Context, b []byte) error {
	for ctx.Err() == nil {
		room, err := s.add(b, true)
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

func (s *ConnSender) add(b []byte, wait bool) (room <-chan struct{}, err error) {
	schedule, room, err := s.push(b, wait)
	if schedule {
		s.post()
	}
	return room, err
}

// post has the loop move what is queued. A loop that has ended refuses, and has closed the connection.
func (s *ConnSender) post() { _ = s.conn.loop.posts.addAlways(s.moveFn) }

// push queues bytes and tells whether the loop has to be told.
func (s *ConnSender) push(b []byte, wait bool) (schedule bool, room <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false, nil, ErrClosed
	}
	if len(b) == 0 {
		return false, nil, nil
	}
	q := s.filling
	if q.Bytes() > 0 && q.Bytes()+len(b) > s.conn.limits.writeBytes {
		if wait && s.room == nil {
			s.room = make(chan struct{})
		}
		return false, s.room, ErrWouldBlock
	}
	q.Push(&q.pool, b)
	schedule = !s.scheduled
	s.scheduled = true
	return schedule, nil, nil
}

// take swaps the queues and tells whether there is something to move. Where there is nothing, the memory of what there
// was is given back.
func (s *ConnSender) take() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.filling.Empty() {
		s.scheduled = false
		s.filling.pool.Trim()
		s.moving.pool.Trim()
		return false
	}
	s.filling, s.moving = s.moving, s.filling
	s.signalRoomLocked()
	return true
}

func (s *ConnSender) signalRoomLocked() {
	if s.room != nil {
		close(s.room)
		s.room = nil
	}
}

// move puts what is queued into the connection's queue, as far as that has room. It runs on the loop.
func (s *ConnSender) move() {
	c := s.conn
	for c.mayWrite() == nil && (!s.moving.Empty() || s.take()) {
		if c.Room() == 0 {
			s.parked = true
			return
		}
		s.movePart(c.Room())
		if c.loop.Expired() {
			s.post()
			return
		}
	}
}

// movePart moves one vector of it at most.
func (s *ConnSender) movePart(most int) {
	c, v := s.conn, s.conn.loop.vector
	s.moving.Next(v)
	n := 0
	for _, b := range v.Bufs {
		b = b[:min(len(b), most-n)]
		c.enqueue(b)
		n += len(b)
	}
	s.moving.Wrote(&s.moving.pool, n)
}

// moveSender has what the Sender took go out before the direction ends, and the Sender take no more.
func (c *Conn) moveSender() {
	if c.sender != nil && c.mayWrite() == nil {
		c.sender.refuse()
		c.sender.moveAll()
	}
}

// endSender has the Sender take no more, drops what it took, and tells how much that was.
func (c *Conn) endSender() (lost int) {
	if c.sender != nil {
		c.sender.refuse()
		lost = c.sender.giveUp()
		c.loop.stats.streams.unsentBytes.Add(uint64(lost))
	}
	return lost
}

// moveAll moves everything at once, whatever room there is.
func (s *ConnSender) moveAll() {
	for !s.moving.Empty() || s.take() {
		s.movePart(s.moving.Bytes())
	}
}

// roomAgain goes on where move had to stop.
func (s *ConnSender) roomAgain() {
	if s.parked {
		s.parked = false
		s.post()
	}
}

// refuse takes nothing more.
func (s *ConnSender) refuse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.signalRoomLocked()
}

// giveUp drops what is queued and tells how many bytes that is.
func (s *ConnSender) giveUp() (unsent int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range []*writeQueue{s.filling, s.moving} {
		unsent += q.Bytes()
		q.Clear(&q.pool, nil, nil)
	}
	return unsent
}
