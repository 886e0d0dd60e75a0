package main

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/weirnet/weir"
)

// period is the timer's.
const period = 20 * time.Millisecond

// receiver is the loop under test: a socket or a connection whose handler is slow, beside a timer.
type receiver struct {
	loop    *weir.Loop
	net     network
	socket  *weir.UDP      // nil over TCP
	target  netip.AddrPort // what is to be flooded
	handler time.Duration
	work    time.Duration

	// Loop only, until Run has returned.
	other   *weir.Timer // of other work
	timer   *weir.Timer // nil until something arrives
	firings []firing
	missed  uint64 // of the timer, at its last firing
	failed  error  // of the listener

	started chan struct{} // closed when something has arrived, and began is set
	began   time.Time     // of the timer's grid

	fired     atomic.Int64  // firings so far
	delivered atomic.Uint64 // datagrams, over TCP bytes
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
	f, err := startFlood(cfg, r.target, window+patience)
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
	if err := cmp.Or(err, r.failed, end.err); err != nil {
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
	r := &receiver{loop: loop, net: cfg.net, handler: cfg.handler, work: cfg.work, started: make(chan struct{})}
	if err := r.open(); err != nil {
		_ = loop.Close()
		return nil, err
	}
	if r.work > 0 {
		r.other = loop.AfterFunc(0, r.otherWork)
	}
	return r, nil
}

// open opens what is to be flooded.
func (r *receiver) open() (err error) {
	local := netip.AddrPortFrom(loopback4, 0)
	if r.net != overTCP {
		r.socket, err = r.loop.ListenUDP(local, weir.UDPConfig{NoGRO: true}, weir.UDPHandler{OnDatagram: r.onDatagram})
		if err == nil {
			r.target = r.socket.LocalAddr()
		}
		return err
	}
	ln, err := r.loop.ListenTCP(local, weir.ListenerConfig{MaxConns: 1}, weir.ListenerHandler{
		Conn: weir.ConnHandler{OnData: r.onData},
		OnError: func(_ *weir.Listener, err error) {
			r.failed = err
			_ = r.loop.Close()
		},
	})
	if err == nil {
		r.target = ln.Addr()
	}
	return err
}

func (r *receiver) onDatagram(*weir.UDP, *weir.Datagram) { r.take(1) }

func (r *receiver) onData(_ *weir.Conn, b []byte) { r.take(len(b)) }

// take works on what has arrived.
func (r *receiver) take(n int) {
	if r.timer == nil {
		r.startTimer()
	}
	spin(r.handler)
	r.delivered.Add(uint64(n))
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

// startTimer begins the grid of ticks, and with it the run: when something arrives, so that no tick is counted
// that came before the flood. The clock is read first, so that no lag is measured too short.
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
	speed       float64 // of what the handler was given, a second
	sent        uint64
	dropped     uint64 // by the kernel
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
	elapsed := e.receiver.elapsed()
	e.ended = min(elapsed, e.window)
	if elapsed > 0 {
		e.speed = float64(e.receiver.delivered.Load()) / elapsed.Seconds()
	}
	e.interrupted = e.ended < e.window && e.ctx.Err() != nil
	e.sent, e.err = e.flood.end()
	if e.ended < e.window && !e.interrupted && e.err == nil {
		e.err = errors.New("flood: it ended early, or nothing arrived")
	}
	if s := e.receiver.socket; s != nil {
		e.dropped = s.Stats().KernelDropped
	}
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
	r := row{
		Net: e.receiver.net, Bound: b.String(), TicksDue: due, TicksFired: ticks.fired, Lag: ticks.lag,
		Sent: e.sent, Delivered: e.receiver.delivered.Load(), KernelDropped: e.dropped,
		Interrupted: e.interrupted,
	}
	if r.Net == overTCP {
		mb := math.Round(e.speed/megabyte*1000) / 1000
		r.ReadSpeed = &mb
	}
	return r
}
