package share

import (
	"testing"
	"time"
)

// "Remove takes a source out of the ring for good, also in the middle of its visit." One row for each
// state that it can be in; busy sources of its lane and of another are served as before.
func TestRemove(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		put  func(r *Ring, s, sibling, other *Source) // into the state, and removes it
		left int                                      // ready sources afterwards
	}{
		{"idle", func(r *Ring, s, sibling, other *Source) {
			r.Ready(other)
			r.Remove(s)
		}, 1},
		{"idle, and lane in progress", func(r *Ring, s, sibling, other *Source) {
			r.Ready(sibling)
			visit(r, sibling, us, true)
			r.Remove(s)
		}, 1},
		{"newly ready", func(r *Ring, s, sibling, other *Source) {
			r.Ready(s)
			r.Remove(s)
		}, 0},
		{"newly ready, one of three", func(r *Ring, s, sibling, other *Source) {
			r.Ready(sibling)
			r.Ready(s)
			r.Ready(other)
			r.Remove(s)
		}, 2},
		{"waits for the next round", func(r *Ring, s, sibling, other *Source) {
			r.Ready(s)
			r.Ready(other)
			visit(r, s, 60*us, true)
			r.Remove(s)
		}, 1},
		{"waits for its turn in this round", func(r *Ring, s, sibling, other *Source) {
			r.Ready(other)
			r.Ready(s)
			visit(r, other, 60*us, true)
			visit(r, s, 60*us, true)
			visit(r, nil, 0, false)
			visit(r, other, 60*us, true)
			r.Remove(s)
		}, 1},
		{"between two of its lane", func(r *Ring, s, sibling, other *Source) {
			third := s.lane.NewSource(nil)
			r.Ready(sibling)
			r.Ready(s)
			r.Ready(third)
			r.Remove(s)
			r.Remove(third)
		}, 1},
		{"held", func(r *Ring, s, sibling, other *Source) {
			hold(r, s, sibling)
			r.Remove(s)
		}, 1},
		{"held, the only one of its lane", func(r *Ring, s, sibling, other *Source) {
			hold(r, s, sibling)
			r.Remove(sibling)
			r.Ready(other)
			r.Remove(s)
		}, 1},
		{"its lane has another that is held", func(r *Ring, s, sibling, other *Source) {
			hold(r, sibling, s)
			r.Remove(s)
		}, 1},
		{"visited", func(r *Ring, s, sibling, other *Source) {
			r.Ready(s)
			r.Ready(sibling)
			r.Next(0)
			r.Remove(s)
			r.Charge(us, 1)
			r.End(true)
		}, 1},
		{"visited, and became ready", func(r *Ring, s, sibling, other *Source) {
			r.Ready(s)
			r.Next(0)
			r.Ready(s)
			r.Charge(us, 1)
			r.Remove(s)
			r.Ready(s)
			r.End(true)
		}, 0},
		{"visited, in debt", func(r *Ring, s, sibling, other *Source) {
			r.Ready(s)
			r.Ready(other)
			r.Next(0)
			r.Charge(ms, 1)
			r.Remove(s)
			r.End(true)
		}, 1},
		{"visited, and the lane's credit ended first", func(r *Ring, s, sibling, other *Source) {
			r.Ready(sibling)
			r.Ready(s)
			visit(r, sibling, 30*us, true)
			r.Next(0)
			r.Charge(25*us, 1)
			r.Remove(s)
			r.End(true)
		}, 1},
		{"visited, twice", func(r *Ring, s, sibling, other *Source) {
			r.Ready(s)
			r.Next(0)
			r.Remove(s)
			r.Remove(s)
			r.End(false)
			r.Remove(s)
		}, 0},
		{"by a sibling's visit", func(r *Ring, s, sibling, other *Source) {
			r.Ready(sibling)
			r.Ready(s)
			r.Next(0)
			r.Remove(s)
			r.Charge(us, 1)
			r.End(true)
		}, 1},
		{"last of its lane, by a sibling's last visit", func(r *Ring, s, sibling, other *Source) {
			r.Ready(sibling)
			r.Ready(s)
			r.Next(0)
			r.Remove(s)
			r.Charge(us, 1)
			r.End(false)
		}, 0},
		{"last of its lane while the lane is in progress", func(r *Ring, s, sibling, other *Source) {
			r.Ready(sibling)
			r.Ready(s)
			r.Ready(other)
			visit(r, sibling, us, false)
			r.Remove(s)
		}, 1},
		{"last of all while its lane is in progress", func(r *Ring, s, sibling, other *Source) {
			r.Ready(sibling)
			r.Ready(s)
			visit(r, sibling, us, false)
			r.Remove(s)
		}, 0},
		{"twice", func(r *Ring, s, sibling, other *Source) {
			r.Ready(s)
			r.Ready(other)
			r.Remove(s)
			r.Remove(s)
		}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := newSim()
			var own, others Lane
			removed := m.add(&own, "removed", endless, always(30*us))
			sibling := m.add(&own, "sibling", endless, always(30*us))
			other := m.add(&others, "other", endless, always(30*us))
			r := m.ring
			c.put(r, removed.Source, sibling.Source, other.Source)
			equal(t, "ready sources", r.Len(), c.left)
			verify(t, r, removed.Source, sibling.Source, other.Source)

			// A late event makes it ready: it is out for good.
			r.Ready(removed.Source)
			equal(t, "ready sources after a late event", r.Len(), c.left)

			for range 50 {
				m.turn()
				verify(t, r, removed.Source, sibling.Source, other.Source)
			}
			m.ready(sibling, other)
			if sibling.removed { // it stands for the last of its lane
				m.ready(m.add(&own, "new", endless, always(30*us)))
				equal(t, "ready sources", r.Len(), 2)
			}
			began := m.now
			before := other.time
			for range 500 {
				m.turn()
			}
			equal(t, "visits of the removed", removed.visits, 0)
			share := float64(other.time-before) / float64(m.now-began)
			if share < 0.49 || share > 0.51 {
				t.Errorf("the other lane has %.3f of the time", share)
			}
		})
	}
}

// visit is one visit of the source that is expected, which takes a time.
func visit(r *Ring, want *Source, took time.Duration, more bool) {
	if got := r.Next(0); got != want {
		panic("visit of another source")
	}
	if want != nil {
		r.Charge(took, 1)
		r.End(more)
	}
}

// hold makes s held and its sibling wait.
func hold(r *Ring, s, sibling *Source) {
	r.Ready(sibling)
	r.Ready(s)
	visit(r, sibling, 30*us, true)
	visit(r, s, 25*us, true)
	if s.lane.held != s {
		panic("not held")
	}
}

// A lane whose last source was removed keeps its debt, not its credit.
func TestRemoveEndsTheLanesCredit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		took time.Duration
		want time.Duration
	}{
		{"credit", us, 50 * us},
		{"debt", 70 * us, 30 * us},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := NewRing(limits)
			var l, others Lane
			first, last := l.NewSource(nil), l.NewSource(nil)
			other := others.NewSource(nil)
			r.Ready(first)
			r.Ready(last)
			r.Ready(other)
			visit(r, first, c.took, false)
			r.Remove(last)
			visit(r, other, 60*us, true)
			equal(t, "credit of the lane", l.account.credit, c.want-50*us)

			s := l.NewSource(nil)
			r.Ready(s)
			for got := r.Next(0); got != s; got = r.Next(0) {
				if got == other {
					r.Charge(60*us, 1)
					r.End(true)
				}
			}
			equal(t, "credit of its next visit", r.Credit(), c.want)
			r.End(false)
			verify(t, r, first, last, other, s)
		})
	}
}
