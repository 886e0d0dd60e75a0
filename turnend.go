package weir

import (
	"time"

	"github.com/weirnet/weir/internal/share"
)

// turnEnder is a source with something for the end of the turn: sends to flush, callbacks that were put
// off. endTurn runs one callback at most and tells whether it has more.
type turnEnder interface {
	endTurn() (more bool)
	inTurnEnd() *bool
	named
}

// turnEnd is the work of the end of a turn, first come first served. What is more than MaxShare of it
// becomes a source of the ring.
type turnEnd struct {
	loop   *Loop
	lane   share.Lane
	source *share.Source
	queue  fifo[turnEnder]
	inRing bool
	stepFn func() // step, bound once: a method value is an allocation
}

func (e *turnEnd) init(l *Loop) {
	e.loop = l
	e.source = e.lane.NewSource(e)
	e.stepFn = e.step
}

// add queues a source, once.
func (e *turnEnd) add(s turnEnder) {
	if in := s.inTurnEnd(); !*in {
		*in = true
		e.queue.push(s)
	}
}

func (e *turnEnd) waiting() bool { return e.queue.len() > 0 }

// run works through the queue for MaxShare. A step counts minCost at least, like any unit.
func (e *turnEnd) run() {
	if e.inRing || e.queue.len() == 0 {
		return
	}
	l := e.loop
	began := l.now
	for least := time.Duration(0); e.queue.len() > 0 && l.end.stage() != stageClosing; least += minCost {
		if max(l.now-began, least) >= l.cfg.MaxShare {
			e.inRing = true
			l.ring.Ready(e.source)
			return
		}
		l.callback(e.queue.first(), e.stepFn)
	}
}

// step does one source's next piece. Where its callback panics or ends the goroutine, the source stays: it
// may have an OnClose to come.
func (e *turnEnd) step() {
	s := e.queue.pop()
	*s.inTurnEnd() = false
	more := true
	defer func() {
		if more {
			e.add(s)
		}
	}()
	more = s.endTurn()
}

func (e *turnEnd) visit() (more bool) {
	for e.queue.len() > 0 && e.loop.ring.Open() && e.loop.end.stage() != stageClosing {
		e.step()
		e.loop.charge(1)
	}
	e.inRing = e.queue.len() > 0
	return e.inRing
}

func (e *turnEnd) name() string { return "end of turn" }
