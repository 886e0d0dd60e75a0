package weir

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Stats is what a loop has done so far.
type Stats struct {
	Turns       uint64
	TimersFired uint64
	Overruns    uint64    // callbacks that took longer than Config.SlowCallback
	Waiting     int       // posted functions that wait now
	TurnLength  Histogram // of turns, without the time waited
	TimerLag    Histogram // from when a timer was due to when it was called
	VisitWait   Histogram // from when the poller told of a source to its visit
	UDP         UDPStats  // sums over all UDP sockets, closed ones included
	Streams     StreamStats
}

// loopStats is written by the loop and read by any goroutine.
type loopStats struct {
	turns       atomic.Uint64
	timersFired atomic.Uint64
	overruns    atomic.Uint64
	turnLength  recorder
	timerLag    recorder
	visitWait   recorder
	streams     streamCounters
	turnBegan   time.Duration // loop only

	mu     sync.Mutex
	open   map[*UDP]struct{} // guarded by mu
	closed UDPStats          // guarded by mu: sums over the sockets that are gone
}

// Stats is a snapshot; any goroutine.
func (l *Loop) Stats() Stats {
	s := Stats{
		Turns:       l.stats.turns.Load(),
		TimersFired: l.stats.timersFired.Load(),
		Overruns:    l.stats.overruns.Load(),
		Waiting:     int(l.posts.n.Load()),
		TurnLength:  l.stats.turnLength.snapshot(),
		TimerLag:    l.stats.timerLag.snapshot(),
		VisitWait:   l.stats.visitWait.snapshot(),
		Streams:     l.stats.streams.snapshot(),
	}
	l.stats.mu.Lock()
	s.UDP = l.stats.closed
	open := slices.Collect(maps.Keys(l.stats.open))
	l.stats.mu.Unlock()
	for _, u := range open { // without the lock: each asks the kernel, and the loop must not wait for that
		s.UDP.add(u.Stats())
	}
	return s
}

func (s *Stats) add(o *Stats) {
	s.Turns += o.Turns
	s.TimersFired += o.TimersFired
	s.Overruns += o.Overruns
	s.Waiting += o.Waiting
	s.TurnLength.add(&o.TurnLength)
	s.TimerLag.add(&o.TimerLag)
	s.VisitWait.add(&o.VisitWait)
	s.UDP.add(o.UDP)
	s.Streams.add(&o.Streams)
}

func (s *loopStats) opened(u *UDP) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = make(map[*UDP]struct{})
	}
	s.open[u] = struct{}{}
}

func (s *loopStats) closing(u *UDP) {
	last := u.Stats()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, u)
	s.closed.add(last)
}
