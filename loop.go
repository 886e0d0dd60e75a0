package weir

import (
	"context"
	"runtime"
	"time"

	"github.com/weirnet/weir/fault"
	"github.com/weirnet/weir/internal/batch"
	"github.com/weirnet/weir/internal/cycles"
	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/share"
	"github.com/weirnet/weir/internal/stream"
	"github.com/weirnet/weir/internal/sys"
)

// Loop is an event loop. New makes one, Run runs it.
type Loop struct {
	cfg    Config // set once
	kernel sys.Kernel
	poller poll.Poller
	faults *fault.Injector      // set once; nil: none
	start  time.Time            // the clock counts from here
	clock  func() time.Duration // since start

	// Loop only.
	now       time.Duration // the last reading of the clock
	turnSeq   uint64        // timers armed before this turn have a lower number
	waited    time.Duration // in this turn, for events or for other goroutines
	polled    time.Duration // when the poller was last asked
	pollCost  time.Duration // what that took, without a wait
	yielded   time.Duration // when other goroutines last had their chance, in a wait, too
	gaveWay   time.Duration // when the loop last yielded
	alone     bool          // there is one processor for all goroutines
	ran       bool          // a callback ran since then
	roundOver bool
	events    [maxEvents]poll.Event
	meter     meter
	uncharged int // units of the visited source that are not charged yet
	ring      *share.Ring
	visited   visitor // nil between visits
	timers    timerHeap
	table     sourceTable
	turnEnd   turnEnd
	nextTurn  nextTurn
	datagram  Datagram
	recv      *sys.RecvBatch
	inSlots   *UDP // whose batch is in recv
	send      *sys.SendBatch
	pool      batch.Pool
	reports   reporter
	fast      fastPaths
	icmp      *sys.ReportBatch
	sockets   map[uint64]*UDP // open ones by their cookie, where the kernel tells it
	watches   map[int]*Watch  // by descriptor; nil before the first
	gram      []byte          // for a unix datagram; nil before the first
	gramRead  UnixDatagram
	locals    map[any]any // of packages above; nil before the first

	// Of streams. Loop only, but for native.
	native   bool       // the kernel is this machine's, as nobody gave another; set once
	outgoing share.Lane // of connections without a listener
	readBuf  []byte     // where connections read to; nil before the first
	scratch  *[scratchBytes]byte
	vector   *sys.Vector // of the write that is being made
	chunks   stream.Pool
	files    *sys.Files  // of the read that is being made; nil before the first
	spare    int         // a descriptor to refuse connections with, when there are no more; -1: none
	resting  []*Listener // that wait for a descriptor
	dialers  dialers

	delivering int // connections that a Stop has deliver what they received

	posts posts
	end   ending
	stats loopStats
}

const (
	maxEvents    = 128                  // of one look at the poller
	recvSlots    = 32                   // datagrams of one receive call
	slotBytes    = 65_535               // the largest datagram there is
	sendBatch    = 64                   // messages of one send call
	writeBuffers = 64                   // buffers of one write
	flushBytes   = 224 << 10            // a queue of so much goes out with the train that is full then: the fourth large one
	pollEvery    = time.Millisecond     // how long visits go on without a look at the poller
	pollPart     = 32                   // of the time of visits that looks may take: one part in so many
	yieldEvery   = 5 * time.Millisecond // how long a busy loop goes on without yielding
	giveWayEvery = time.Millisecond     // and how long one that waits now and then, where it is not alone
)

// New makes a loop. It belongs to the calling goroutine until Run.
//
//   - Errors: a Config that makes no sense; ErrUnsupported; what the system answers when descriptors are
//     short.
func New(cfg Config) (*Loop, error) {
	native := cfg.Kernel == nil
	cfg, err := cfg.resolve()
	if err != nil {
		return nil, err
	}
	backend, faults, err := cfg.backend()
	if err != nil {
		return nil, err
	}
	poller, err := backend.NewPoller()
	if err != nil {
		return nil, &OpError{Op: "open", Net: "poller", Err: err}
	}
	l := &Loop{
		cfg:    cfg,
		kernel: backend.Kernel,
		poller: poller,
		faults: faults,
		start:  time.Now(),
		ring:   share.NewRing(cfg.limits()),
		recv:   sys.NewRecvBatch(recvSlots, slotBytes),
		send:   sys.NewSendBatch(sendBatch),
		icmp:   sys.NewReportBatch(reportSlots),
		vector: sys.NewVector(writeBuffers),
		native: native,
		spare:  -1,

		sockets: make(map[uint64]*UDP),
	}
	l.clock = func() time.Duration { return time.Since(l.start) }
	if backend.RealTime {
		l.meter.first = cycles.Now()
	}
	l.roundOver = true // none has begun
	l.posts.init(l, cfg.MaxPosts)
	l.nextTurn.init(l)
	l.turnEnd.init(l)
	l.end.done = make(chan struct{})
	return l, nil
}

// Run runs the loop on the calling goroutine until the context is done, which ends it as Close does, Close or
// Stop is called, or, with Config.StopWhenIdle, nothing is left to do. It can be called once.
//
// Whatever ends it, every source is closed and its OnClose has run when Run is left. A callback's panic
// passes through with its own stack, and so does runtime.Goexit.
//
//   - Errors: context.Cause(ctx) when the context ended it, nil when Close or Stop did, ErrClosed when the
//     loop has run already; *OpError when the poller fails.
func (l *Loop) Run(ctx context.Context) error {
	first, closed := l.end.begin()
	switch {
	case !first:
		return ErrClosed
	case closed:
		l.end.left = stageClosing
		l.closeSources()
		return nil
	}
	defer l.finish()
	stopWatching := context.AfterFunc(ctx, func() {
		l.end.request(stageClosing, byContext)
		l.wake()
	})
	defer stopWatching()

	if ctx.Err() != nil {
		l.end.request(stageClosing, byContext)
	}
	l.alone = runtime.GOMAXPROCS(0) == 1
	l.now = l.clock()
	for !l.ended() {
		if err := l.turn(); err != nil {
			return err
		}
	}
	if l.end.cause() == byContext {
		return context.Cause(ctx)
	}
	return nil
}

// turn is one iteration: see the package's text for its phases.
func (l *Loop) turn() error {
	l.beginTurn()
	l.runTimers()
	if err := l.poll(); err != nil {
		return err
	}
	l.visitRing()
	l.endTurn()
	return nil
}

func (l *Loop) beginTurn() {
	l.stats.turns.Add(1)
	l.turnSeq = l.timers.seq
	l.waited = 0
	l.stats.turnBegan = l.now
	l.ring.BeginTurn()
	l.nextTurn.beginTurn()
	if l.end.stage() == stageStopping {
		l.beginStop()
	}
}

// poll asks which sources are ready, and waits if there is nothing else to do.
func (l *Loop) poll() error {
	l.posts.enterRing()
	if l.ring.Len() == 0 && l.nextTurn.empty() {
		l.turnEnd.run() // what timers have queued goes out before a wait, not after a look and a turn more
	}
	if l.busy() {
		if l.now-l.polled < l.pollGap() {
			return nil
		}
		return l.collect(0)
	}
	return l.wait()
}

// pollGap is how long there is no look at the poller while there is other work: to the end of the round, and where many
// are ready, who all are looked at, so long that looking does not take more than its part of the time.
func (l *Loop) pollGap() time.Duration {
	if !l.roundOver {
		return pollEvery
	}
	return min(pollPart*l.pollCost, pollEvery)
}

// busy tells that there is work which does not depend on the poller.
func (l *Loop) busy() bool {
	return l.ring.Len() > 0 || !l.nextTurn.empty() || l.turnEnd.waiting()
}

// wait blocks until a source is ready, a timer is due, or somebody wakes the loop.
func (l *Loop) wait() error {
	if l.nothingLeft() {
		return nil // a timer's callback was the last there was to do, or a Stop found nothing to wait for
	}
	if l.ran && l.untilTimer() != 0 && (l.alone || l.now-l.gaveWay >= giveWayEvery) {
		// A goroutine that a callback woke would otherwise wait for the processor that the blocking
		// call holds: with GOMAXPROCS=1 for as long as it takes the runtime's monitor to notice. With more, an idle one
		// takes the goroutine over, and each yield wakes one for nothing.
		l.yield()
	}
	timeout := l.untilTimer() // only now: the others may have taken their time
	if timeout == 0 || !l.posts.fallAsleep() {
		return l.collect(0)
	}
	err := l.collect(timeout)
	l.posts.awake()
	return err
}

// collect takes what the poller has and puts it in the ring.
func (l *Loop) collect(timeout time.Duration) error {
	n, err := l.poller.Wait(l.events[:], timeout)
	if err != nil {
		return &OpError{Op: "wait", Net: "poller", Err: err}
	}
	before := l.now
	l.now = l.clock()
	l.polled = l.now
	l.meter.calibrate(l.now)
	l.tellLostPaths()
	if timeout != 0 {
		l.waited += l.now - before
		l.yielded = l.now // the others had their chance
	} else {
		l.pollCost += (min(l.now-before, 4*max(l.pollCost, time.Microsecond)) - l.pollCost) / 4 // a hiccup moves it little
	}
	for _, ev := range l.events[:n] {
		if s := l.table.lookup(ev.Token); s != nil {
			s.ready(ev.Ready)
		}
	}
	l.posts.enterRing()
	return nil
}

// visitRing visits ready sources until each had its visit or a timer falls due. One visit there always is,
// so that timers cannot starve the ring either.
func (l *Loop) visitRing() {
	for {
		s := l.ring.Next(l.now)
		l.roundOver = s == nil
		if s == nil {
			return
		}
		l.visit(s)
		if l.timers.due(l.now) || l.end.stage() == stageClosing || l.stopDue() {
			return
		}
		if l.now-l.polled >= pollEvery && !l.betweenVisits() {
			return
		}
	}
}

// becameReady puts a source in the ring that the poller has found ready, or that was asked to go on.
func (l *Loop) becameReady(s *share.Source) {
	if l.ring.Ready(s) {
		s.Since = l.now
	}
}

func (l *Loop) visit(s *share.Source) {
	if s.Since >= 0 {
		l.stats.visitWait.record(l.now - s.Since)
		s.Since = -1
	}
	l.visited = s.Owner.(visitor)
	more := l.visited.visit()
	if l.uncharged > 0 {
		l.settle()
	}
	l.visited = nil
	l.ring.End(more)
}

// betweenVisits does in a long round what else the end of the turn would do: who became ready in the meantime
// need not wait for the round, nor queued sends for its end. It tells whether the round may go on.
func (l *Loop) betweenVisits() bool {
	l.turnEnd.run()
	if l.now-l.yielded >= yieldEvery {
		l.yield()
	}
	if l.end.stage() == stageClosing || l.timers.due(l.now) {
		return false
	}
	return l.collect(0) == nil // a poller that fails does so again in the next turn, which ends the loop
}

func (l *Loop) endTurn() {
	l.turnEnd.run()
	l.stats.turnLength.record(l.now - l.stats.turnBegan - l.waited)
	if l.now-l.yielded >= yieldEvery && l.busy() {
		// The runtime's monitor takes the processor from a goroutine that never yields, every 10 ms, and
		// stays awake for it.
		l.yield()
	}
}

// yield lets other goroutines run; that time is not the turn's.
func (l *Loop) yield() {
	before := l.now
	runtime.Gosched()
	l.ran = false
	l.now = l.clock()
	l.waited += l.now - before
	l.yielded, l.gaveWay = l.now, l.now
	l.alone = runtime.GOMAXPROCS(0) == 1 // which may change, as with the limits of a container
}

// charge ends a callback of the visited source, or other units of its work. It costs it the time that has gone
// by, once that is enough to be worth a look at the clock.
func (l *Loop) charge(units int) {
	l.ran = true
	l.uncharged += units
	if l.uncharged >= maxUncharged || l.meter.passed() {
		l.settle()
	}
}

// settle charges the visited source the time since the last charge.
func (l *Loop) settle() {
	units := l.uncharged
	l.uncharged = 0
	l.now = l.clock()
	l.meter.read()
	if took := l.ring.Charge(l.now, units); took > l.cfg.SlowCallback {
		l.reportSlow(l.visited, took)
		l.ring.Charge(l.now, 0) // nobody else pays for the report
	}
}

// callback runs fn, which is not charged to a source, on behalf of whom, and returns how long it took.
func (l *Loop) callback(whom named, fn func()) time.Duration {
	before := l.now
	fn()
	l.now = l.clock()
	l.ran = true
	took := l.now - before
	if took > l.cfg.SlowCallback {
		l.reportSlow(whom, took)
	}
	return took
}

// ended tells that the loop is over. Once there is nothing left to do, no function is taken any more that could
// change that; those of before a Stop's end are run first.
func (l *Loop) ended() bool {
	if !l.nothingLeft() {
		return false
	}
	switch l.end.stage() {
	case stageRunning:
		return l.posts.refuse(true)
	case stageStopping:
		l.posts.refuse(false)
		return l.posts.empty()
	default:
		return true
	}
}

// nothingLeft tells that an end was asked for and has nothing to wait for but posted functions.
func (l *Loop) nothingLeft() bool {
	switch l.end.stage() {
	case stageRunning:
		return l.cfg.StopWhenIdle && l.idle()
	case stageStopping:
		return l.end.begun && l.table.len() == 0 && !l.turnEnd.waiting()
	default:
		return true
	}
}

// idle tells that nothing can happen any more, unless from outside.
func (l *Loop) idle() bool {
	return l.table.len() == 0 && l.timers.len() == 0 && l.ring.Len() == 0 && l.nextTurn.empty() &&
		l.posts.empty() && !l.turnEnd.waiting()
}

// Turn is the number of the turn that runs now or ran last, counted from 1; any goroutine.
func (l *Loop) Turn() uint64 { return l.stats.turns.Load() }

// Faults tells what became of Config.Faults: which rules hit how often, and how many datagrams were lost; any
// goroutine. It is nil, which is a valid *fault.Injector that has hit nothing, without them.
func (l *Loop) Faults() *fault.Injector { return l.faults }

// Now is the time as the loop last read it, after a wait or callback; after callbacks of less than a microsecond
// it may be 2 µs behind. It stands still while a callback runs. It carries a monotonic reading.
func (l *Loop) Now() time.Time { return l.start.Add(l.now) }

// Expired tells a callback, and only that, whether it has used up its source's credit. A callback with much to
// do can stop then and go on in another, with NextTurn or a Work step; nothing is enforced. In a
// testing/synctest bubble, whose clock stands still, it stays false.
func (l *Loop) Expired() bool {
	now := l.clock()
	if l.visited != nil && !l.ring.Exempt() {
		return l.ring.Spent(now) >= l.ring.Credit()
	}
	return now-l.now >= l.ring.Q()
}

// wakeTries are made, as a wake that is lost is a loop that hangs.
const wakeTries = 3

// wake makes a wait end; any goroutine, also after the loop has ended.
func (l *Loop) wake() {
	l.end.mu.Lock()
	defer l.end.mu.Unlock()
	if l.end.finished {
		return
	}
	for range wakeTries {
		if l.poller.Wake() == nil { // that it cannot be has no meaning for the caller
			return
		}
	}
}
