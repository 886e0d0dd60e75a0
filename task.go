package weir

import "github.com/weirnet/weir/internal/share"

// Task is work of the program's own that the loop runs in steps, under the bound like a socket.
type Task struct {
	loop   *Loop
	source *share.Source
	step   func() (more bool)
	closed bool
}

// Work has the loop call step again and again while it returns true, as one source with its share of
// time: for work that would otherwise hold the loop. A step should be short; Expired tells one with much
// to do when its credit is used up. A Stop does not wait for tasks.
// It panics if step is nil.
func (l *Loop) Work(step func() (more bool)) *Task {
	return l.NewLane().Work(step)
}

// Work is Loop.Work, as a source of this lane.
func (lane *Lane) Work(step func() (more bool)) *Task {
	mustFunc("Work", step != nil)
	l := lane.loop
	t := &Task{loop: l, step: step}
	t.source = lane.lane.NewSource(t)
	l.ring.Made(t.source)
	l.ring.Ready(t.source)
	return t
}

// Again has step called again after it returned false.
func (t *Task) Again() {
	if !t.closed {
		t.loop.ring.Ready(t.source)
	}
}

// Close ends the task; step is not called any more.
func (t *Task) Close() {
	t.closed = true
	t.loop.ring.Remove(t.source)
}

func (t *Task) visit() (more bool) {
	more = true
	for more && !t.closed && t.loop.ring.Open() && t.loop.end.stage() != stageClosing {
		more = t.step()
		t.loop.charge(1)
	}
	return more
}

func (t *Task) name() string { return "task" }
