package main

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/weirnet/weir"
)

// period is the timer's.
const period = 20 * time.Millisecond

// receiver is the loop under test: a socket whose handler is slow, beside a timer.
type receiver struct {
	loop    *weir.Loop
	socket  *weir.UDP
	handler time.Duration
	work    time.Duration

	// Loop only, until Run has returned.
	other   *weir.Timer // of other work
	timer   *weir.Timer // nil until the first datagram
	firings []firing
	missed  uint64 // of the timer, at its last firing

	started chan struct{} // closed when the first datagram is there, and began is set
	began   time.Time     // of the timer's grid

	fired     atomic.Int64 // firings so far
	delivered atomic.Uint64
}

// runOne floods a receiver that is under the bound.
func runOne(ctx context.Context, cfg demoConfig, b weir.Bound, p *progress) (row, error) {
	r, err := newReceiver(cfg, b)
	if err != nil {
		return row{}, err
	}
	defer r.loop.Close() // if the flood does not start; else it has ended
	window := windowOf(cfg.duration)
	// The run ends the flood; left alone, it ends itself.
	f, err := startFlood(r.socket.LocalAddr(), cfg.rate, window+patience)
	if err != nil {
		return row{}, err
	}
	defer f.kill()

	p.start(b, r)
	defer p.stop()
	f.begin()

	running, stop := context.WithCancel(context.Background())
	end := &ending{ctx: ctx, window: window, receiver: r, flood: f, stop: stop, done: make(chan struct{})}
	go end.wait()
	err = r.loop.Run(running)
	if running.Err() != nil {
		err = nil
	}
	<-end.done
	if err := cmp.Or(err, end.err); err != nil {
		return row{}, err
	}
	return end.row(b, int(cfg.duration/period)), nil
}

// windowOf is how long a run goes on: half a period more than it must, so that the last tick has time to
// fire.
func windowOf(duration time.Duration) time.Duration {
	return max(duration, duration.Truncate(period)+period/2)
}

func newReceiver(cfg demoConfig, b weir.Bound) (*receiver, error) {
	loop, err := weir.New(weir.Config{Bound: b})
	if err != nil {
		return nil, err
	}
	r := &receiver{loop: loop, handler: cfg.handler, work: cfg.work, started: make(chan struct{})}
	local := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 0)
	r.socket, err = loop.ListenUDP(local, weir.UDPConfig{NoGRO: true}, weir.UDPHandler{OnDatagram: r.onDatagram})
	if err != nil {
		_ = loop.Close()
		return nil, err
	}
	if r.work > 0 {
		r.other = loop.AfterFunc(0, r.otherWork)
	}
	return r, nil
}

func (r *receiver) onDatagram(*weir.UDP, *weir.Datagram) {
	if r.timer == nil {
		r.startTimer()
	}
	spin(r.handler)
	r.delivered.Add(1)
}

// otherWork runs once a turn, under every bound, as a timer that is always due. A function of NextTurn would
// not do: beside a socket that is not charged it would wait for as many turns as pay for its last call.
func (r *receiver) otherWork() {
	spin(r.work)
	r.other.Reset(0)
}

// spin keeps the processor busy, as work does.
func spin(d time.Duration) {
	if d <= 0 {
		return
	}
	for began := time.Now(); time.Since(began) < d; {
	}
}

// startTimer begins the grid of ticks, and with it the run: with the first datagram, so that no tick is
// counted that came before the flood. The clock is read first, so that no lag is measured too short.
func (r *receiver) startTimer() {
	r.began = time.Now()
	r.timer = r.loop.Every(period, r.onTick)
	close(r.started)
}

// elapsed is how long the run has gone on; any goroutine.
func (r *receiver) elapsed() time.Duration {
	select {
	case <-r.started:
		return time.Since(r.began)
	default:
		return 0
	}
}

// onTick notes for how many ticks the timer fires, and when.
func (r *receiver) onTick() {
	ticks := 1 + int(r.timer.Missed()-r.missed)
	r.missed = r.timer.Missed()
	r.firings = append(r.firings, firing{ticks: ticks, at: time.Since(r.began)})
	r.fired.Add(1)
}

// ending ends a run from outside the loop, which may have no time for timers.
type ending struct {
	ctx      context.Context
	window   time.Duration
	receiver *receiver
	flood    *flood
	stop     func() // ends the loop
	done     chan struct{}

	// Written by wait, read when done is closed.
	ended       time.Duration // what happened later does not count for the timer
	interrupted bool
	sent        uint64
	stats       weir.UDPStats
	err         error
}

// wait sees the run through to its end. The socket is read for a little longer, until the flood has ended, so
// that all that was sent is delivered, dropped, or left in a buffer.
func (e *ending) wait() {
	defer close(e.done)
	defer e.stop()
	arrived := e.waitFor(e.receiver.started, patience)
	if arrived {
		e.waitFor(nil, e.window-e.receiver.elapsed())
	}
	e.ended = min(e.receiver.elapsed(), e.window)
	e.interrupted = e.ended < e.window && e.ctx.Err() != nil
	e.sent, e.err = e.flood.end()
	if e.ended < e.window && !e.interrupted && e.err == nil {
		e.err = errors.New("flood: it ended early, or no datagram arrived")
	}
	e.stats = e.receiver.socket.Stats()
}

// waitFor tells whether the event came before the time was over, or the run had to end.
func (e *ending) waitFor(event <-chan struct{}, d time.Duration) bool {
	over := time.NewTimer(d)
	defer over.Stop()
	select {
	case <-event:
		return true
	case <-over.C:
	case <-e.ctx.Done():
	case <-e.flood.ended:
	case <-e.receiver.loop.Done():
	}
	return false
}

// row is what was measured, of at most so many ticks; the loop has ended.
func (e *ending) row(b weir.Bound, most int) row {
	due := min(most, int(e.ended/period))
	ticks := judge(e.receiver.firings, due, e.ended)
	return row{
		Bound: b.String(), TicksDue: due, TicksFired: ticks.fired, Lag: ticks.lag,
		Sent: e.sent, Delivered: e.receiver.delivered.Load(), KernelDropped: e.stats.KernelDropped,
		Interrupted: e.interrupted,
	}
}
