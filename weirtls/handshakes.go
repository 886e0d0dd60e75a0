package weirtls

import (
	"slices"

	"github.com/weirnet/weir"
)

// Handshakes are those of a loop: one lane under its bound, worked off first come first served, where those that were
// begun go before those that were not. One that waits for its peer waits for nothing else, and holds nobody up.
type Handshakes struct {
	loop *weir.Loop
	lane *weir.Lane
	task *weir.Task
	max  int

	going   list // begun, and able to go on
	fresh   list // able to begin
	waiting list // begun, and waiting for the peer, longest first
	begun   int
	late    []*Conn // to be read on, though weir has nothing more to say of them
	plain   []byte  // where records are decrypted to, of all connections; nil before the first
	counts  counters
}

type key struct{}

// defaultMax of them, with a stack, the messages of the peer and the keys each, take some 100 MB.
const defaultMax = 4096

// HandshakesOf are the handshakes of the loop, always the same. It is for the loop's goroutine, as is what can be done
// with it, but for Stats.
func HandshakesOf(l *weir.Loop) *Handshakes {
	return l.Local(key{}, func() any { return newHandshakes(l) }).(*Handshakes)
}

func newHandshakes(l *weir.Loop) *Handshakes {
	q := &Handshakes{loop: l, lane: l.NewLane(), max: defaultMax}
	q.task = q.lane.Work(q.step)
	return q
}

// SetMax is how many handshakes may be begun and not done; those beyond wait for their turn, with next to no memory. When
// there are so many, the one that has waited longest for its peer gives way to the next, with ErrCrowded: one that stalls
// costs nobody else the handshake. Default: 4,096. n < 1 is 1.
func (q *Handshakes) SetMax(n int) {
	q.max = max(n, 1)
	q.task.Again()
}

// add takes note of a handshake that is to come.
func (q *Handshakes) add() { q.counts.waiting.Add(1) }

// enqueue has a handshake take its next step in its turn.
func (q *Handshakes) enqueue(h *handshake) {
	if h.begun {
		q.going.push(h)
	} else {
		q.fresh.push(h)
	}
	q.task.Again()
}

// over takes a handshake out.
func (q *Handshakes) over(h *handshake) {
	h.leaveList()
	if h.begun {
		q.counts.inProgress.Add(-1)
	} else {
		q.counts.waiting.Add(-1)
	}
}

// free gives its place to another one.
func (q *Handshakes) free(h *handshake) {
	if !h.begun {
		return
	}
	if q.begun--; q.fresh.first != nil {
		q.task.Again()
	}
}

// later has a connection read on.
func (q *Handshakes) later(c *Conn) {
	q.late = append(q.late, c)
	q.task.Again()
}

// step does the next piece of work, and tells whether there is more.
func (q *Handshakes) step() (more bool) {
	if len(q.late) > 0 {
		c := q.late[0]
		q.late = slices.Delete(q.late, 0, 1)
		c.read()
		c.wire.keep()
	} else if h := q.next(); h != nil {
		h.step()
	}
	return len(q.late) > 0 || q.going.first != nil || q.fresh.first != nil && (q.begun < q.max || q.waiting.first != nil)
}

// next is the handshake whose turn it is, or nil. One that is paused steps aside until it is resumed.
func (q *Handshakes) next() *handshake {
	h := q.going.first
	if h == nil {
		h = q.fresh.first
	}
	switch {
	case h == nil:
		return nil
	case h.conn.paused:
		h.leaveList()
		h.state = stageAside
		return nil
	case !h.begun && !q.admit(h):
		return nil
	}
	h.leaveList()
	return h
}

// admit has a handshake begin, if there is room, or some can be made.
func (q *Handshakes) admit(h *handshake) bool {
	if oldest := q.waiting.first; q.begun >= q.max && oldest != nil {
		oldest.fail(KindCrowded, ErrCrowded)
	}
	if q.begun >= q.max {
		return false
	}
	h.begun = true
	q.begun++
	q.counts.begun.Add(1)
	q.counts.waiting.Add(-1)
	q.counts.inProgress.Add(1)
	return true
}

func (q *Handshakes) plainBuffer() []byte {
	if q.plain == nil {
		q.plain = make([]byte, plainBytes)
	}
	return q.plain
}

// list is a queue of handshakes, linked through them, so that any can be taken out.
type list struct{ first, last *handshake }

func (l *list) push(h *handshake) {
	h.leaveList()
	h.in, h.prev = l, l.last
	if l.last != nil {
		l.last.more = h
	} else {
		l.first = h
	}
	l.last = h
}

// leaveList takes the handshake out of the list that it is in, if any.
func (h *handshake) leaveList() {
	l := h.in
	if l == nil {
		return
	}
	if h.prev != nil {
		h.prev.more = h.more
	} else {
		l.first = h.more
	}
	if h.more != nil {
		h.more.prev = h.prev
	} else {
		l.last = h.prev
	}
	h.in, h.prev, h.more = nil, nil, nil
}
