package weir

import "github.com/weirnet/weir/internal/poll"

// visitor is a member of the ring. visit works until the ring's credit or the work is used up, charging
// each callback, and tells whether work is left.
type visitor interface {
	visit() (more bool)
	named
}

// named is what a report of a slow callback can tell of.
type named interface{ name() string }

// pollable is a source with a descriptor in the poller.
type pollable interface {
	ready(poll.Ready)
	stop()           // finish what is queued and close: the loop stops
	close(err error) // now; OnClose is put off
}

// sourceTable gives sources their tokens. A token carries its slot's generation, so that an event that
// was in flight when its source closed finds nobody, even if the slot has a new tenant.
type sourceTable struct {
	slots []slot
	free  []uint32
}

type slot struct {
	source     pollable
	generation uint32
}

func (t *sourceTable) add(s pollable) (token uint64) {
	if len(t.free) == 0 {
		t.slots = append(t.slots, slot{})
		t.free = append(t.free, uint32(len(t.slots)-1))
	}
	i := t.free[len(t.free)-1]
	t.free = t.free[:len(t.free)-1]
	t.slots[i].source = s
	return uint64(t.slots[i].generation)<<32 | uint64(i)
}

func (t *sourceTable) remove(token uint64) {
	i := uint32(token)
	t.slots[i].source = nil
	t.slots[i].generation++
	t.free = append(t.free, i)
}

// lookup is nil for a token that was removed.
func (t *sourceTable) lookup(token uint64) pollable {
	s := &t.slots[uint32(token)]
	if s.generation != uint32(token>>32) {
		return nil
	}
	return s.source
}

func (t *sourceTable) len() int { return len(t.slots) - len(t.free) }

// closeAll closes every source.
func (t *sourceTable) closeAll(why error) {
	for _, s := range t.slots {
		if s.source != nil {
			s.source.close(why)
		}
	}
}
