package weir

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/weirnet/weir/internal/share"
)

var errNilFunc = errors.New("weir: the function is nil")

// posts is the queue of functions that other goroutines posted: one source of the ring.
type posts struct {
	loop   *Loop
	max    int
	lane   share.Lane
	source *share.Source

	n      atomic.Int64 // queued, and taken but not yet run
	asleep atomic.Bool  // the loop waits, or is about to: whoever clears it must wake it

	mu     sync.Mutex
	queue  []func()      // guarded by mu
	room   chan struct{} // guarded by mu; closed when there is room, nil while nobody asked
	closed bool          // guarded by mu

	taken   []func() // loop only: the part of the queue that is being run
	at      int      // loop only: the next of them
	overdue bool     // loop only: somebody waited for room while a whole queue was run
}

func (p *posts) init(l *Loop, max int) {
	p.loop, p.max = l, max
	p.source = p.lane.NewSource(p)
}

// Post has the loop call fn soon, after functions posted earlier; any goroutine. A function that was taken is
// called, unless Close, the context or the grace of a Stop ends the loop before: then what is queued is
// dropped.
//
//   - Errors: ErrWouldBlock when Config.MaxPosts functions wait; ErrClosed when the loop has ended, or a Stop
//     has done the rest of its work; an error that says so for a nil fn.
func (l *Loop) Post(fn func()) error {
	_, err := l.posts.add(fn, false)
	return err
}

// PostContext is Post, but waits for room in the queue; any goroutine but the loop's.
//
//   - Errors: context.Cause(ctx), ErrClosed.
func (l *Loop) PostContext(ctx context.Context, fn func()) error {
	for ctx.Err() == nil {
		room, err := l.posts.add(fn, true)
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

// add queues fn. When the queue is full and the caller wants to wait, room is closed as soon as there is
// some, or the loop has ended.
func (p *posts) add(fn func(), wait bool) (room <-chan struct{}, err error) {
	if fn == nil {
		return nil, errNilFunc
	}
	p.mu.Lock()
	switch {
	case p.closed:
		p.mu.Unlock()
		return nil, ErrClosed
	case p.n.Load() >= int64(p.max):
		if wait && p.room == nil {
			p.room = make(chan struct{})
		}
		room = p.room
		p.mu.Unlock()
		return room, ErrWouldBlock
	}
	p.queue = append(p.queue, fn)
	p.n.Add(1)
	p.mu.Unlock()
	p.wakeLoop()
	return nil, nil
}

// addAlways queues fn also where the queue is full: for what the loop's own parts post, one each at a time.
func (p *posts) addAlways(fn func()) error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return ErrClosed
	}
	p.queue = append(p.queue, fn)
	p.n.Add(1)
	p.mu.Unlock()
	p.wakeLoop()
	return nil
}

// wakeLoop ends the loop's wait, if it waits.
func (p *posts) wakeLoop() {
	if p.asleep.Load() && p.asleep.CompareAndSwap(true, false) {
		p.loop.wake()
	}
}

// fallAsleep announces that the loop is about to wait, and tells whether it may.
func (p *posts) fallAsleep() bool {
	p.asleep.Store(true)
	if p.empty() {
		return true
	}
	p.asleep.Store(false)
	return false
}

func (p *posts) awake() { p.asleep.Store(false) }

func (p *posts) empty() bool { return p.n.Load() == 0 }

// enterRing puts the queue in the ring if it holds something.
func (p *posts) enterRing() {
	if !p.empty() {
		p.loop.ring.Ready(p.source)
	}
}

func (p *posts) visit() (more bool) {
	for p.loop.ring.Open() && p.loop.end.stage() != stageClosing {
		fn := p.next()
		if fn == nil {
			return false
		}
		fn()
		p.loop.charge(1)
	}
	return !p.empty()
}

func (p *posts) name() string { return "posted function" }

// next takes the function whose turn it is, or nil.
func (p *posts) next() func() {
	if p.at == len(p.taken) {
		p.take()
	}
	if p.at == len(p.taken) {
		return nil
	}
	fn := p.taken[p.at]
	p.taken[p.at] = nil
	p.at++
	if p.n.Add(-1) == int64(p.max/2) || p.overdue {
		p.overdue = false
		p.signalRoom()
	}
	return fn
}

// take swaps the queue for the one that was run.
func (p *posts) take() {
	p.mu.Lock()
	p.queue, p.taken = p.taken[:0], p.queue
	p.overdue = p.room != nil
	p.mu.Unlock()
	p.at = 0
}

func (p *posts) signalRoom() {
	p.mu.Lock()
	if p.room != nil {
		close(p.room)
		p.room = nil
	}
	p.mu.Unlock()
}

// refuse takes no more functions from now on; with ifEmpty only if none is queued, which it tells.
func (p *posts) refuse(ifEmpty bool) bool {
	p.mu.Lock()
	empty := p.empty()
	if empty || !ifEmpty {
		p.closed = true
	}
	p.mu.Unlock()
	p.signalRoom()
	return empty
}

// close drops what is queued and refuses more.
func (p *posts) close() {
	p.mu.Lock()
	p.closed, p.queue, p.taken, p.at = true, nil, nil, 0
	p.n.Store(0)
	p.mu.Unlock()
	p.signalRoom()
}
