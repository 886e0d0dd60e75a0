package weirtls

import "sync/atomic"

// Stats is what became of the handshakes of a loop.
type Stats struct {
	Begun   uint64        // had their first turn
	Done    uint64        // came to a connection
	Resumed uint64        // of Done: a session went on
	Failed  [Kinds]uint64 // by Kind, those that were never begun included
	GivenUp uint64        // by Close, Reset or the loop's end, those that were never begun included

	// What is so now.
	InProgress int // begun and not done
	Waiting    int // not begun: for their peer's first record, or for their turn
}

type counters struct {
	begun, done, resumed, givenUp atomic.Uint64
	failed                        [Kinds]atomic.Uint64
	inProgress, waiting           atomic.Int64
}

// Stats is how the handshakes stand; any goroutine.
func (q *Handshakes) Stats() Stats {
	c := &q.counts
	s := Stats{
		Begun: c.begun.Load(), Done: c.done.Load(), Resumed: c.resumed.Load(), GivenUp: c.givenUp.Load(),
		InProgress: int(c.inProgress.Load()), Waiting: int(c.waiting.Load()),
	}
	for k := range c.failed {
		s.Failed[k] = c.failed[k].Load()
	}
	return s
}

func (q *Handshakes) countDone(resumed bool) {
	q.counts.done.Add(1)
	if resumed {
		q.counts.resumed.Add(1)
	}
}
