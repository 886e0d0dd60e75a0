package weir

import (
	"sync"
	"sync/atomic"
	"time"
)

// Stats is what a loop has done so far.
type Stats struct {
	Turns       uint64
	TimersFired uint64
	Overruns    uint64    // callbacks that took longer than Config.SlowCallback
	Posted      int       // functions that wait now
	TurnLength  Histogram // of turns, without the time waited
	TimerLag    Histogram // from when a timer was due to when it was called
	UDP         UDPStats  // sums over all UDP sockets, closed ones included
}

// loopStats is written by the loop and read by any goroutine.
type loopStats struct {
	turns       atomic.Uint64
	timersFired atomic.Uint64
	overruns    atomic.Uint64
	turnLength  recorder
	timerLag    recorder
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
		Posted:      int(l.posts.n.Load()),
		TurnLength:  l.stats.turnLength.snapshot(),
		TimerLag:    l.stats.timerLag.snapshot(),
	}
	l.stats.mu.Lock()
	defer l.stats.mu.Unlock()
	s.UDP = l.stats.closed
	for u := range l.stats.open {
		s.UDP.add(u.Stats())
	}
	return s
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
	last.RecvBufferBytes, last.SendBufferBytes = 0, 0
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, u)
	s.closed.add(last)
}
