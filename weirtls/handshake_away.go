package weirtls

import (
	"context"
	"errors"
	"io"
	"time"
)

// away is a handshake on a goroutine of its own: Config.Blocking. It takes turns with the loop as a coroutine would, and
// while it runs the connection's wire is its alone; but the loop does not wait for it.
//
// It ends when its context does, which giving up the handshake does, and the loop's end with that; a callback that
// heeds neither is waited for by nobody.
type away struct {
	handshake *handshake
	ctx       context.Context
	cancel    context.CancelFunc
	turn      chan struct{} // buffered: the goroutine may go on
	flight    flight

	// The loop's: what was received meanwhile, and whether the goroutine is to end after the connection.
	early    []byte
	earlyEnd bool
	outlasts bool
}

var errExited = errors.New("a callback ended its goroutine")

// isAway tells that the wire is another goroutine's.
func (h *handshake) isAway() bool { return h.away != nil && h.state == stageRunning }

// stepAway has the goroutine begin or go on.
func (h *handshake) stepAway() {
	if h.away != nil {
		h.away.turn <- struct{}{}
		return
	}
	c := h.conn
	a := &away{handshake: h, turn: make(chan struct{}, 1)}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	a.flight.local, a.flight.remote = c.raw.LocalAddr(), c.raw.RemoteAddr()
	c.wire.await, c.wire.hold = a.await, &a.flight
	h.away = a
	go a.run()
}

// run is the goroutine.
func (a *away) run() {
	h := a.handshake
	defer func() { _ = h.conn.Loop().PostContext(context.Background(), a.finished) }() // a loop that has ended has given it up
	h.err, h.exited = errExited, true
	defer h.recoverPanic()
	h.err = h.conn.tls.HandshakeContext(a.ctx)
	h.exited = false
}

// await hands the wire over to the loop, and waits to have it back.
func (a *away) await() bool {
	if a.handshake.conn.Loop().PostContext(a.ctx, a.landed) != nil {
		return false
	}
	select {
	case <-a.turn:
		return true
	case <-a.ctx.Done():
		return false
	}
}

// finished is called on the loop when the goroutine has come to its end.
func (a *away) finished() {
	a.cancel()
	a.handshake.finished = true
	a.landed()
}

// landed is called on the loop, which has the wire again, unless the handshake has been given up: then the goroutine
// may still be busy with it.
func (a *away) landed() {
	h := a.handshake
	c := h.conn
	if c.phase == phaseClosed {
		if h.finished && a.outlasts {
			c.handshakes.free(h)
		}
		return
	}
	w := &c.wire
	_ = c.raw.Enqueue(a.flight.out) // what ended the connection below is told by it
	a.flight.out = a.flight.out[:0]
	if len(a.early) > 0 {
		w.put(a.early)
		w.keep()
		a.early = nil
	}
	w.ended = w.ended || a.earlyEnd
	if h.finished && a.earlyEnd && errors.Is(h.err, context.Canceled) {
		h.err, w.told = io.ErrUnexpectedEOF, true
	}
	if h.finished {
		w.hold = nil
	}
	h.stepped()
}

// hangUp is called when the peer has ended the connection below meanwhile. If it has sent nothing before that, it waits
// for nothing any more, and neither does a callback that blocks.
func (a *away) hangUp() {
	a.earlyEnd = true
	if len(a.early) == 0 {
		a.handshake.conn.Loop().AfterFunc(hangUpGrace, a.cancelAway)
	}
}

// hangUpGrace is what a handshake that does not block may take to work off what came before the end, such as an alert.
const hangUpGrace = 100 * time.Millisecond

func (a *away) cancelAway() {
	if a.handshake.isAway() {
		a.cancel()
	}
}
