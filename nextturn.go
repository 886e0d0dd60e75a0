package weir

import "github.com/weirnet/weir/internal/share"

// nextTurn is the queue of NextTurn's functions: one source of the ring.
type nextTurn struct {
	loop   *Loop
	lane   share.Lane
	source *share.Source
	queue  fifo[func()]
	due    int // those queued before this turn began
}

func (t *nextTurn) init(l *Loop) {
	t.loop = l
	t.source = t.lane.NewSource(t)
}

// NextTurn has the loop call fn in its next turn, after functions given earlier: what other loops call
// setImmediate. These functions are one source under the bound: while sockets are busy they get an equal
// share of the time, so one that takes longer than that has its next turn later.
// It panics if fn is nil.
func (l *Loop) NextTurn(fn func()) {
	mustFunc("NextTurn", fn != nil)
	l.nextTurn.queue.push(fn)
}

func (t *nextTurn) empty() bool { return t.queue.len() == 0 }

func (t *nextTurn) beginTurn() {
	t.due = t.queue.len()
	if t.due > 0 {
		t.loop.ring.Ready(t.source)
	}
}

func (t *nextTurn) visit() (more bool) {
	for t.due > 0 && t.loop.ring.Open() && t.loop.end.stage() != stageClosing {
		t.due--
		fn := t.queue.pop()
		fn()
		t.loop.charge(1)
	}
	return t.due > 0
}

func (t *nextTurn) name() string { return "next-turn function" }
