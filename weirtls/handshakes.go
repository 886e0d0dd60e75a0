package weirtls

import (
	"slices"
	"time"

	"github.com/weirnet/weir"
)

// Handshakes are those of a loop: one lane under its bound, worked off first come first served, where those that were
// begun go before those that were not. One that waits for its peer waits for nothing else, and holds nobody up.
type Handshakes struct {
	loop *weir.Loop
	lane *weir.Lane
	task *weir.Task
	max  int

	going list // begun, and able to go on
	fresh list // able to begin
	begun int  // as the server

	// Of those, who wait for their peer, longest first. One that was answered stays in waiting until its next answer,
	// though it may go on meanwhile: who says nothing, a record at a time, does not keep its place by that.
	unanswered list
	waiting    list

	room   *weir.Timer // when the longest in waiting has to give way; nil before the first time
	late   []*Conn     // to be read on, though weir has nothing more to say of them
	plain  []byte      // where records are decrypted to, of all connections; nil before the first
	spares spares      // for what they have not decrypted yet
	counts counters
}

type key struct{}

// defaultMax is more than an honest load needs: what a processor can sign, times the longest way round the earth.
const defaultMax = 4096

// HandshakesOf are the handshakes of the loop, always the same. It is for the loop's goroutine, as is what can be done
// with it, but for Stats.
func HandshakesOf(l *weir.Loop) *Handshakes {
	return l.Local(key{}, func() any { return newHandshakes(l) }).(*Handshakes)
}

func newHandshakes(l *weir.Loop) *Handshakes {
	q := &Handshakes{loop: l, lane: l.NewLane(), max: defaultMax, waiting: list{kind: ofWaiting}}
	q.task = q.lane.Work(q.step)
	return q
}

// SetMax is how many handshakes may be begun as the server and not done; those beyond wait for their turn, and hold what
// one read of them brought, 64 KiB at most. When there are so many, the one that has waited longest for its peer gives way
// to the next, with ErrCrowded, after a second at least, or at once if its peer has not said enough for an answer: who
// stalls costs nobody else the handshake. Honest ones take some 25 KB each, those with the largest ClientHello that
// crypto/tls takes, of 64 KiB, 310 KB. Those as the client are as many as the program begins. Default: 4,096. n < 1
// is 1.
func (q *Handshakes) SetMax(n int) {
	q.max = max(n, 1)
	q.task.Again()
}

// add takes note of a handshake that is to come.
func (q *Handshakes) add() { q.counts.waiting.Add(1) }

// enqueue has a handshake take its next step in its turn. Those as the client do not wait for room: a flood of others
// is not to keep the program from its own servers.
func (q *Handshakes) enqueue(h *handshake) {
	if h.begun || h.conn.set.role == AsClient {
		q.going.push(h)
	} else {
		q.fresh.push(h)
	}
	q.task.Again()
}

// wait takes note that a handshake waits for its peer, and may have to give way where another can begin.
func (q *Handshakes) wait(h *handshake) {
	switch {
	case h.conn.set.role != AsServer:
		return
	case h.conn.wire.answered, h.answered && h.links[ofWaiting].in == nil:
		h.answered, h.conn.wire.answered = true, false
		h.since = q.loop.Now()
		q.waiting.push(h)
	case !h.answered:
		q.unanswered.push(h)
	}
	if q.fresh.first != nil {
		q.task.Again()
	}
}

// remove takes a handshake out.
func (q *Handshakes) remove(h *handshake) {
	h.leave(ofTurn)
	h.leave(ofWaiting)
	if h.begun {
		q.counts.inProgress.Add(-1)
	} else {
		q.counts.waiting.Add(-1)
	}
}

// free gives its place to another one.
func (q *Handshakes) free(h *handshake) {
	if !h.begun || h.conn.set.role != AsServer {
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

// step does the next piece of work, and tells whether there was one.
func (q *Handshakes) step() (more bool) {
	if len(q.late) > 0 {
		c := q.late[0]
		q.late = slices.Delete(q.late, 0, 1)
		c.read()
		c.wire.keep()
		return true
	}
	h := q.next()
	if h == nil {
		return false
	}
	h.step()
	return true
}

// next is the handshake whose turn it is, or nil. Those that are paused step aside until they are resumed.
func (q *Handshakes) next() *handshake {
	for {
		h := q.going.first
		if h == nil {
			h = q.fresh.first
		}
		switch {
		case h == nil:
			return nil
		case h.conn.paused:
			h.leave(ofTurn)
			h.stepAside()
		case h.begun || q.admit(h):
			h.leave(ofTurn)
			return h
		default:
			return nil
		}
	}
}

// admit has a handshake begin, if there is room.
func (q *Handshakes) admit(h *handshake) bool {
	if h.conn.set.role == AsServer {
		if q.begun >= q.max && !q.makeRoom() {
			return false
		}
		q.begun++
	}
	h.begun = true
	q.counts.begun.Add(1)
	q.counts.waiting.Add(-1)
	q.counts.inProgress.Add(1)
	return true
}

// leastWait is how long a handshake may wait for its peer though others wait for its place: several times what the longest
// way round the earth takes, by satellite.
const leastWait = time.Second

// makeRoom has one give way: who was not answered anything, and so has cost next to nothing, at once, of the others the
// one that has waited longest, if that was long enough. Otherwise it has the queue look again when it will have been.
func (q *Handshakes) makeRoom() bool {
	oldest := q.unanswered.first
	if oldest == nil {
		if oldest = q.longest(); oldest == nil {
			return false
		}
		if left := leastWait - q.loop.Now().Sub(oldest.since); left > 0 {
			q.wakeIn(left)
			return false
		}
	}
	oldest.fail(KindCrowded, ErrCrowded)
	return q.begun < q.max
}

// longest is the handshake that was answered and has waited longest for its peer. It is asked for when none can go on;
// those that run do so on goroutines of their own.
func (q *Handshakes) longest() *handshake {
	h := q.waiting.first
	for h != nil && h.state == stageRunning {
		h = h.links[ofWaiting].more
	}
	return h
}

// wakeIn has the task look again.
func (q *Handshakes) wakeIn(d time.Duration) {
	if q.room == nil {
		q.room = q.loop.AfterFunc(d, q.task.Again)
	} else {
		q.room.Reset(d)
	}
}

func (q *Handshakes) plainBuffer() []byte {
	if q.plain == nil {
		q.plain = make([]byte, plainBytes)
	}
	return q.plain
}

// list is a queue of handshakes, linked through them, so that any can be taken out.
type list struct {
	kind        listKind
	first, last *handshake
}

// listKind is a kind of list. A handshake is in one of each kind at most.
type listKind uint8

const (
	ofTurn listKind = iota
	ofWaiting
	listKinds
)

// link is a handshake's place in a list.
type link struct {
	in         *list
	prev, more *handshake
}

func (l *list) push(h *handshake) {
	h.leave(l.kind)
	h.links[l.kind] = link{in: l, prev: l.last}
	if l.last != nil {
		l.last.links[l.kind].more = h
	} else {
		l.first = h
	}
	l.last = h
}

// leave takes the handshake out of the list of a kind that it is in, if any.
func (h *handshake) leave(kind listKind) {
	k := h.links[kind]
	if k.in == nil {
		return
	}
	if k.prev != nil {
		k.prev.links[kind].more = k.more
	} else {
		k.in.first = k.more
	}
	if k.more != nil {
		k.more.links[kind].prev = k.prev
	} else {
		k.in.last = k.prev
	}
	h.links[kind] = link{}
}
