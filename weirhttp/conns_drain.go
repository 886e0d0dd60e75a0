package weirhttp

import (
	"context"
	"sync"
	"time"
)

const (
	drainLook  = 10 * time.Millisecond // between two looks at the connections
	drainAtOne = 64                    // connections that are being closed at once
	drainTurns = 16                    // connections that can be at work at once, each as if it were alone
)

// watch has the connections that are open now looked at once, before they are told to end: what is heard later is heard
// because of that, or after it.
func (q *quicConns) watch() {
	for _, c := range q.all() {
		c.isQuiet(0)
	}
}

// drain closes each connection when it is quiet, until there are none; it returns false if ctx ends before.
func (q *quicConns) drain(ctx context.Context) bool {
	// Time stands still where this goroutine does not get its turn, and goes slowly where many connections are at work: those
	// that seem quiet then may have no turn yet, at the processor or at the socket.
	var clock time.Duration
	for {
		began := time.Now()
		conns := q.all()
		if len(conns) == 0 {
			return true
		}
		var done []*quicConn
		moved := 0
		for _, c := range conns {
			if c.isQuiet(clock) {
				done = append(done, c)
			}
			if c.quiet.moved {
				moved++
			}
		}
		closeEach(done)
		// A look at many takes long: no more than a fifth of the time goes there.
		wait := max(drainLook, 4*time.Since(began))
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false
		}
		clock += wait * drainTurns / time.Duration(max(moved, drainTurns))
	}
}

// closeAll closes those that are left.
func (q *quicConns) closeAll() { closeEach(q.all()) }

// closeEach returns when the client of each was told, a few at a time.
func closeEach(conns []*quicConn) {
	var wg sync.WaitGroup
	room := make(chan struct{}, drainAtOne)
	for _, c := range conns {
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			c.close()
		})
	}
	wg.Wait()
}

// glance is what is seen of a connection at a time.
type glance struct {
	now            time.Time
	clock          time.Duration // of drain
	sent, received uint64        // packets
	sample         time.Duration // the last round trip: another one where the peer has acknowledged something
	done           uint64        // handlers that are over
	busy           bool          // a handler is at work
	pto            time.Duration
}

// quiet watches a connection that is to be closed.
type quiet struct {
	last  glance
	since glance        // the last at which something had happened
	owed  bool          // it was sent, and nothing acknowledged since
	owes  time.Duration // since when: by the clock
	gap   time.Duration // the longest time between two that were sent so
	moved bool          // something had happened at the last look
}

// A peer that owes an answer has so long from the last that it was sent, and so long in all: it is gone then, whatever it
// lacks.
const (
	owedWait = time.Second
	owedMax  = 5 * time.Second
)

// look says whether nothing was sent or received for three probe timeouts, behind the end of the last of the handlers.
//
// A peer that acknowledges is sent again what it lacks within one of them. One that was sent to and does not may lack
// something, and is sent to again after twice as long each time: it has three times the last of these. Or it owes
// nothing, as an acknowledgement is not answered; that cannot be seen from here.
func (q *quiet) look(g glance) bool {
	was := q.last
	switch {
	case was.now.IsZero(), g.busy, g.done != was.done:
		q.since, q.owed, q.owes, q.gap = g, true, g.clock, 0
	case g.sample != was.sample:
		q.since, q.owed, q.gap = g, false, 0
	case g.sent != was.sent:
		if q.owed { // its timer does not know of a clock that stands still
			q.gap = max(q.gap, g.now.Sub(q.since.now))
		} else {
			q.owed, q.owes = true, g.clock
		}
		q.since = g
	case g.received != was.received:
		q.since = g
	}
	q.last, q.moved = g, q.since == g
	quiet := g.clock - q.since.clock
	if !q.owed {
		return quiet >= 3*g.pto
	}
	return quiet >= max(8*g.pto, 3*q.gap, owedWait) || !g.busy && g.clock-q.owes >= max(8*g.pto, owedMax)
}
