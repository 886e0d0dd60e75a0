package weirtls

import (
	"context"
	"errors"
	"sync"

	"github.com/weirnet/weir"
)

// Sender writes on a connection from any goroutine. What goroutines write before the loop comes to it goes out together.
type Sender struct {
	// Set once.
	conn   *Conn // the loop's
	loop   *weir.Loop
	limit  int // of held
	chunks *chunkPools
	moveFn func() // posted, bound once
	goOnFn func() // goOn, bound once

	mu          sync.Mutex
	first, last *chunk        // guarded by mu; taken, and not being moved
	held        int           // guarded by mu: bytes taken and not encrypted. The loop sees to them, if it has been told
	told        int           // guarded by mu: posts to come
	closed      bool          // guarded by mu
	room        chan struct{} // guarded by mu; closed when there is room, nil while nobody asked

	moving *chunk // loop only: what is encrypted next
	parked bool   // loop only: the connection has no room, or has not done its handshake
	later  bool   // loop only: it goes on in the next turn
}

// Sender is the connection's only one, for other goroutines. It is made by the first call, on the loop's. What it is
// given goes out in that order, and in no order with what Write is given; what it is given before the handshake is done
// goes out after. A Stop has it all go out before OnStop is called.
func (c *Conn) Sender() *Sender {
	if c.sender == nil {
		s := &Sender{
			conn: c, loop: c.Loop(), limit: c.set.senderBytes, chunks: chunkPoolsOf(c.Loop()),
			closed: c.phase >= phaseClosing || c.endSent || c.endWanted,
		}
		s.moveFn, s.goOnFn = s.posted, s.goOn
		c.sender = s
	}
	return c.sender
}

// Write takes b, or nothing of it; any goroutine. It is copied, and encrypted by the loop soon. An error that comes later
// is OnClose's.
//
//   - Errors: weir.ErrWouldBlock when Config.SenderBufferBytes would be exceeded, but an empty Sender takes any b, and
//     when it needs a Post for which the loop's queue has no room; weir.ErrClosed.
func (s *Sender) Write(b []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.addLocked(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// WriteContext is Write, but waits for room; any goroutine but the loop's.
//
//   - Errors: context.Cause(ctx), weir.ErrClosed.
func (s *Sender) WriteContext(ctx context.Context, b []byte) error {
	for posted := false; ctx.Err() == nil; {
		room, err := s.addOrWait(b, posted)
		if !errors.Is(err, weir.ErrWouldBlock) {
			return err
		}
		posted = false
		if room == nil {
			if err := s.loop.PostContext(ctx, s.moveFn); err != nil {
				return err
			}
			posted = true
			continue
		}
		select {
		case <-room:
		case <-ctx.Done():
		}
	}
	return context.Cause(ctx)
}

// addOrWait takes b, or tells what to wait for: room here, or, where that is nil, in the loop's queue. posted: the caller
// has posted meanwhile.
func (s *Sender) addOrWait(b []byte, posted bool) (room <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if posted {
		s.told++ // to 0 where that has run already
	}
	if err = s.addLocked(b); err == nil || s.fitsLocked(b) {
		return nil, err
	}
	if s.room == nil {
		s.room = make(chan struct{})
	}
	return s.room, err
}

func (s *Sender) fitsLocked(b []byte) bool { return s.held == 0 || len(b) <= s.limit-s.held }

// addLocked posts before it takes, so that there is nothing to take back where it cannot; what is posted waits for mu.
func (s *Sender) addLocked(b []byte) error {
	switch {
	case s.closed:
		return weir.ErrClosed
	case len(b) == 0:
		return nil
	case !s.fitsLocked(b):
		return weir.ErrWouldBlock
	}
	if s.held == 0 && s.told <= 0 {
		if err := s.loop.Post(s.moveFn); err != nil {
			return err
		}
		s.told++
	}
	s.pushLocked(b)
	return nil
}

func (s *Sender) pushLocked(b []byte) {
	s.held += len(b)
	for len(b) > 0 {
		if s.last == nil || s.last.full() {
			s.appendLocked(s.chunks.get(s.last != nil || len(b) > smallChunk))
		}
		b = b[s.last.add(b):]
	}
}

func (s *Sender) appendLocked(k *chunk) {
	if s.last == nil {
		s.first = k
	} else {
		s.last.next = k
	}
	s.last = k
}

// posted is what goroutines have the loop call.
func (s *Sender) posted() {
	s.mu.Lock()
	s.told--
	s.mu.Unlock()
	s.move()
}

// goOn goes on where move had to stop.
func (s *Sender) goOn() {
	s.later = false
	s.move()
}

// roomForSender is called when there is room again, or the handshake is done. OnDrain goes first, and, in a Stop, OnStop,
// which would have to wait for as long as others write here.
func (c *Conn) roomForSender() {
	if s := c.sender; s != nil && s.parked {
		s.parked = false
		s.nextTurn()
	}
}

func (s *Sender) nextTurn() {
	if !s.later {
		s.later = true
		s.loop.NextTurn(s.goOnFn)
	}
}

// move encrypts what there is, a record or so at a time, as long as there is room and credit.
func (s *Sender) move() {
	for c := s.conn; c.phase < phaseClosing && s.next(); {
		if c.phase == phaseHandshake || !c.room() {
			s.parked = true
			return
		}
		if !s.seal() {
			return
		}
		if s.loop.Expired() {
			s.nextTurn()
			return
		}
	}
}

// seal encrypts what next has taken. A connection that takes no more ends the Sender.
func (s *Sender) seal() (ok bool) {
	if _, err := s.conn.seal(s.moving.data); err != nil {
		s.end()
		return false
	}
	k := s.moving
	s.moving = nil
	s.mu.Lock()
	s.held -= len(k.data)
	if s.held <= s.limit/2 {
		s.signalRoomLocked()
	}
	s.mu.Unlock()
	s.chunks.put(k)
	return true
}

// next takes what is to be encrypted next, and tells whether there is something.
func (s *Sender) next() bool {
	if s.moving != nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.first
	if k == nil {
		return false
	}
	if s.first = k.next; s.first == nil {
		s.last = nil
	}
	k.next = nil
	s.moving = k
	return true
}

func (s *Sender) signalRoomLocked() {
	if s.room != nil {
		close(s.room)
		s.room = nil
	}
}

// moveSender has what the Sender took go out before the direction ends, whatever room there is, and the Sender take no
// more.
func (c *Conn) moveSender() {
	s := c.sender
	if s == nil || c.endSent {
		return
	}
	s.refuse()
	for c.phase == phaseOpen && s.next() && s.seal() {
	}
}

// endSender has the Sender take no more, and drops what it took.
func (c *Conn) endSender() {
	if c.sender != nil {
		c.sender.end()
	}
}

func (s *Sender) end() {
	s.refuse()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first, s.last, s.moving, s.held = nil, nil, nil, 0
}

// refuse takes nothing more.
func (s *Sender) refuse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.signalRoomLocked()
}
