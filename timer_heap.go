package weir

import "time"

// timerHeap keeps timers by time, then by order of arming. Four children a node: half the depth of a
// binary heap.
type timerHeap struct {
	timers []*Timer
	seq    uint64 // of the next timer armed
}

const heapArity = 4

func (h *timerHeap) len() int      { return len(h.timers) }
func (h *timerHeap) first() *Timer { return h.timers[0] }

// due tells whether a timer's time has come.
func (h *timerHeap) due(now time.Duration) bool {
	return len(h.timers) > 0 && h.timers[0].when <= now
}

// popDue takes out the first timer if it is due and was armed before the given number.
func (h *timerHeap) popDue(now time.Duration, before uint64) *Timer {
	if !h.due(now) || h.timers[0].seq >= before {
		return nil
	}
	t := h.timers[0]
	h.remove(t)
	return t
}

func (h *timerHeap) arm(t *Timer, when time.Duration) {
	t.when, t.seq = when, h.seq
	h.seq++
	t.index = len(h.timers)
	h.timers = append(h.timers, t)
	h.up(t.index)
}

func (h *timerHeap) remove(t *Timer) {
	i, last := t.index, len(h.timers)-1
	h.swap(i, last)
	h.timers[last] = nil
	h.timers = h.timers[:last]
	t.index = -1
	if i < last && !h.up(i) {
		h.down(i)
	}
}

// up moves the timer at i towards the root and tells whether it moved.
func (h *timerHeap) up(i int) (moved bool) {
	for i > 0 {
		parent := (i - 1) / heapArity
		if !h.less(i, parent) {
			break
		}
		h.swap(i, parent)
		i, moved = parent, true
	}
	return moved
}

func (h *timerHeap) down(i int) {
	for {
		least := i
		for c := heapArity*i + 1; c <= heapArity*i+heapArity && c < len(h.timers); c++ {
			if h.less(c, least) {
				least = c
			}
		}
		if least == i {
			return
		}
		h.swap(i, least)
		i = least
	}
}

func (h *timerHeap) less(i, j int) bool {
	a, b := h.timers[i], h.timers[j]
	return a.when < b.when || a.when == b.when && a.seq < b.seq
}

func (h *timerHeap) swap(i, j int) {
	h.timers[i], h.timers[j] = h.timers[j], h.timers[i]
	h.timers[i].index, h.timers[j].index = i, j
}
