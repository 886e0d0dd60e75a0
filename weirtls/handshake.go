package weirtls

import (
	"crypto/tls"
	"fmt"
	"iter"
	"runtime/debug"
	"time"

	"github.com/weirnet/weir"
)

// handshake is a connection's while it lasts. crypto/tls cannot be asked to begin, wait and go on; so it runs as a
// coroutine, which is left where it wants to read what is not there, and resumed by the queue of the loop.
//
// A connection that is Closed or Reset by a callback within it only says so: a coroutine cannot be stopped from inside.
// Who has resumed it sees to that.
type handshake struct {
	conn     *Conn
	state    stage
	begun    bool
	finished bool
	deadline *weir.Timer
	answered bool       // the server has said something
	since    time.Time  // it did last, or was last paused
	lane     *weir.Lane // of the connection below, but for the handshake

	next func() (struct{}, bool) // resumes; false: it has finished. nil before the first step, and with Config.Blocking
	quit func()                  // has it end
	away *away                   // with Config.Blocking; nil before the first step

	// How it finished.
	err    error
	stack  []byte // where it panicked
	exited bool   // a callback ended its goroutine

	links [listKinds]link // its places in the queue's lists
}

type stage uint8

const (
	stageIdle    stage = iota // for the peer's first record
	stageQueued               // for its turn
	stageAside                // its turn came while it was paused
	stageRunning              // in crypto/tls
	stageWaiting              // for the peer
	stageOver
)

// begin has the handshake begin, in its turn.
func (c *Conn) begin() {
	c.tls = c.newTLS()
	h := &handshake{conn: c}
	c.handshake = h
	h.lane = c.raw.Lane()
	c.raw.SetLane(c.handshakes.lane)
	c.handshakes.add()
	h.limit()
	if c.set.role == AsClient || c.wire.whole() {
		h.enqueue()
	}
	c.sync()
}

func (c *Conn) newTLS() *tls.Conn {
	if c.set.role == AsClient {
		return tls.Client(&c.wire, c.set.tls)
	}
	return tls.Server(&c.wire, c.set.tls)
}

// limit begins the time that the handshake has.
func (h *handshake) limit() {
	if d := h.conn.set.handshakeTimeout; d > 0 {
		h.deadline = h.conn.Loop().AfterFunc(d, h.timedOut)
	}
}

// timedOut does not count for one that is paused: that is not the peer's doing.
func (h *handshake) timedOut() {
	if !h.conn.paused {
		h.fail(KindTimeout, fmt.Errorf("not done after %v: %w", h.conn.set.handshakeTimeout, weir.ErrTimeout))
	}
}

// wants tells that the handshake waits for bytes of the peer.
func (h *handshake) wants() bool { return h.state == stageIdle || h.state == stageWaiting }

// reads tells that the connection below is to be read: one that is away may wait long, and its peer hang up.
func (h *handshake) reads() bool { return h.wants() || h.isAway() && len(h.away.early) == 0 }

// received takes what was read of the connection below.
func (h *handshake) received(b []byte) {
	if h.isAway() {
		h.away.early = append(h.away.early, b...)
		h.conn.sync()
		return
	}
	w := &h.conn.wire
	w.put(b)
	w.keep()
	h.goOn()
}

// transportEnded is called when the peer has ended the connection below.
func (h *handshake) transportEnded() {
	if h.isAway() {
		h.away.hangUp()
		return
	}
	h.conn.wire.ended = true
	h.goOn()
}

// goOn queues a handshake that has what it waits for.
func (h *handshake) goOn() {
	if h.wants() && h.conn.wire.whole() {
		h.enqueue()
	}
	h.conn.sync()
}

func (h *handshake) enqueue() {
	h.state = stageQueued
	h.conn.handshakes.enqueue(h)
}

// resumed is called when the connection is no longer paused.
func (h *handshake) resumed() {
	if h.conn.phase == phaseClosed {
		return
	}
	if h.deadline != nil {
		h.deadline.Reset(h.conn.set.handshakeTimeout)
	}
	if h.state == stageAside {
		h.enqueue()
	}
}

// stepAside has the handshake wait for the program, and not for its peer.
func (h *handshake) stepAside() {
	h.leave(ofWaiting)
	h.state = stageAside
}

// step runs the handshake up to where it waits for the peer, or to its end.
func (h *handshake) step() {
	switch {
	case h.finished: // and was paused then
		h.finish()
		return
	case h.conn.set.blocking:
		h.state = stageRunning
		h.stepAway()
		h.conn.sync()
		return
	case h.next == nil:
		h.next, h.quit = iter.Pull(h.coroutine)
	}
	h.state = stageRunning
	_, more := h.next()
	h.finished = !more
	h.stepped()
}

// coroutine is the handshake. A panic of a callback is this connection's alone; Goexit cannot be kept from the loop.
func (h *handshake) coroutine(yield func(struct{}) bool) {
	w := &h.conn.wire
	w.await = func() bool { return yield(struct{}{}) }
	defer func() { h.finished = true }() // Goexit returns to nobody who could see to that
	defer h.recoverPanic()
	h.err = h.conn.tls.Handshake()
}

func (h *handshake) recoverPanic() {
	switch r := recover(); {
	case r != nil:
		h.err = fmt.Errorf("a callback panicked: %v", r)
		if err, ok := r.(error); ok {
			h.err = fmt.Errorf("a callback panicked: %w", err)
		}
		fallthrough
	case h.exited:
		h.stack = debug.Stack()
	}
}

// stepped is called after each step.
func (h *handshake) stepped() {
	c := h.conn
	h.state = stageWaiting
	switch {
	case c.phase == phaseClosed: // by a callback
		h.giveUp()
	case !h.finished:
		c.handshakes.wait(h)
		h.goOn()
	case c.paused:
		h.stepAside()
	default:
		h.finish()
	}
}

// finish is called when crypto/tls has come to an end.
func (h *handshake) finish() {
	c := h.conn
	switch {
	case h.stack != nil, h.exited:
		h.fail(KindPanic, h.err)
		return
	case h.err != nil && c.wire.refused:
		h.over()
		_ = c.raw.Close() // OnClose has the reason
		return
	case h.err != nil:
		h.fail(c.kindOf(h.err))
		return
	}
	h.over()
	c.handshake, c.phase = nil, phaseOpen
	c.wire.await = nil
	c.raw.SetLane(h.lane)
	state := c.tls.ConnectionState()
	c.handshakes.countDone(state.DidResume)
	refused := c.refused
	c.refused = false
	if c.handler.OnHandshake != nil {
		c.handler.OnHandshake(c, state)
	}
	if c.phase == phaseOpen && c.endWanted {
		_ = c.CloseWrite()
	}
	c.roomForSender()
	if refused && !c.refused && !c.endSent { // one that OnHandshake was refused is told when there is room
		c.refused = true
		c.drained()
	}
	c.wire.keep()
	c.sync()
	c.goOn()
}

// fail ends the connection. An alert goes out before, as does, to a client that speaks HTTP, what is wrong in HTTP.
func (h *handshake) fail(k Kind, why error) {
	c := h.conn
	err := c.handshakeError(k, why)
	if k == KindNotTLS {
		c.answerHTTP(err)
	}
	if (k == KindTimeout || k == KindCrowded) && c.raw.Stats().Queued > 0 {
		c.reset(err) // it takes nothing: there is no use in waiting longer
		return
	}
	c.finish(err)
}

// giveUp ends the handshake from outside. Where it runs, that is left to who has resumed it.
func (h *handshake) giveUp() {
	if h.deadline != nil {
		h.deadline.Stop() // a callback on a goroutine may go on
	}
	switch {
	case h.away != nil:
		h.away.cancel()
	case h.state == stageRunning && !h.finished:
		return
	case h.quit != nil:
		h.quit()
	}
	h.over()
}

// over takes the handshake out of the queue. Where a goroutine still has it, its place is free when that has ended.
func (h *handshake) over() {
	if h.state == stageOver {
		return
	}
	if h.isAway() {
		h.away.outlasts = true
	}
	h.state = stageOver
	if h.deadline != nil {
		h.deadline.Stop()
	}
	h.conn.handshakes.remove(h)
	if h.away == nil || !h.away.outlasts {
		h.conn.handshakes.free(h)
	}
}
