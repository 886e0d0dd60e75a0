package share

import (
	"slices"
	"testing"
)

// "Leave is Remove, and tells whether the source had work, as far as is known: one that is being visited may." One row
// for each state that it can be in.
func TestLeave(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		put  func(r *Ring, s, sibling, other *Source) // into the state
		want bool
		left int // ready sources afterwards, once no visit is in progress
	}{
		{"idle", func(r *Ring, s, sibling, other *Source) {}, false, 0},
		{"idle, and its lane is ready", func(r *Ring, s, sibling, other *Source) { r.Ready(sibling) }, false, 1},
		{"idle, and its lane is in progress", func(r *Ring, s, sibling, other *Source) {
			r.Ready(sibling)
			visit(r, sibling, us, true)
		}, false, 1},
		{"idle after a visit", func(r *Ring, s, sibling, other *Source) {
			r.Ready(s)
			visit(r, s, us, false)
		}, false, 0},
		{"newly ready", func(r *Ring, s, sibling, other *Source) { r.Ready(s) }, true, 0},
		{"waits for the next round", func(r *Ring, s, sibling, other *Source) {
			r.Ready(s)
			r.Ready(other)
			visit(r, s, 60*us, true)
		}, true, 1},
		{"held", func(r *Ring, s, sibling, other *Source) { hold(r, s, sibling) }, true, 1},
		{"held, the only one of its lane", func(r *Ring, s, sibling, other *Source) {
			hold(r, s, sibling)
			r.Remove(sibling)
		}, true, 0},
		{"its lane has another that is held", func(r *Ring, s, sibling, other *Source) {
			hold(r, sibling, s)
		}, true, 1},
		{"visited", func(r *Ring, s, sibling, other *Source) {
			r.Ready(s)
			r.Next(0)
		}, true, 0},
		{"visited, in debt, and beside others", func(r *Ring, s, sibling, other *Source) {
			r.Ready(s)
			r.Ready(sibling)
			r.Ready(other)
			r.Next(0)
			r.Charge(ms, 1)
		}, true, 2},
		{"visited, and became ready", func(r *Ring, s, sibling, other *Source) {
			r.Ready(s)
			r.Next(0)
			r.Ready(s)
		}, true, 0},
		{"a sibling is visited", func(r *Ring, s, sibling, other *Source) {
			r.Ready(sibling)
			r.Ready(s)
			r.Next(0)
		}, true, 1},
		{"removed", func(r *Ring, s, sibling, other *Source) {
			r.Ready(s)
			r.Remove(s)
		}, false, 0},
		{"removed in its visit", func(r *Ring, s, sibling, other *Source) {
			r.Ready(s)
			r.Next(0)
			r.Remove(s)
		}, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := NewRing(limits)
			var own, others, to Lane
			s, sibling, other := own.NewSource("s"), own.NewSource("sibling"), others.NewSource("other")
			c.put(r, s, sibling, other)
			equal(t, "Leave", r.Leave(s), c.want)
			equal(t, "Leave, again", r.Leave(s), false)

			moved := to.NewSource("moved")
			equal(t, "the lane", moved.Lane(), &to)
			r.Made(moved)
			equal(t, "moved came in", r.Ready(moved), true)
			r.Ready(s) // a late event
			verify(t, r, s, sibling, other, moved)
			if r.source != nil {
				r.Charge(ms, 1)
				r.End(true)
			}
			equal(t, "ready sources", r.Len(), c.left+1)

			var visits []any
			for now, looks := ms, 0; r.Len() > 0; looks++ {
				if looks > 50 {
					t.Fatalf("%d are never visited", r.Len())
				}
				if n := r.Next(now); n != nil {
					visits = append(visits, n.Owner)
					now += us
					r.Charge(now, 1)
					r.End(false)
				}
				verify(t, r, s, sibling, other, moved)
			}
			if len(visits) != c.left+1 || slices.Contains(visits, any("s")) || !slices.Contains(visits, any("moved")) {
				t.Errorf("visits of %v", visits)
			}
		})
	}
}

// A source that moves in each of its visits, to new lanes or to and fro, does not make a round endless, and has no more
// than the lanes that it moves through: one that is left keeps its debt.
func TestMovesAtEachVisit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		lanes int // that they move through; 0: always a new one
		parts int // of the time, the quiet one's included
	}{
		{"through new lanes", 0, 2},
		{"to and fro", 2, 3},
		{"through four", 4, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := newSim()
			lanes := make([]Lane, c.lanes)
			next := 0
			to := func() *Lane {
				if c.lanes == 0 {
					return new(Lane)
				}
				next++
				return &lanes[next%c.lanes]
			}
			mover := m.add(to(), "mover", endless, always(90*us))
			other := m.add(new(Lane), "other", endless, always(30*us))
			mover.callback = func() {
				if !m.ring.Leave(mover.Source) {
					t.Fatal("Leave tells of no work")
				}
				mover.Source = to().NewSource(mover)
				m.ring.Made(mover.Source)
				m.ring.Ready(mover.Source)
			}
			m.ready(mover, other)
			for range 3000 {
				if visits := m.turn(); visits > max(2, c.lanes+1) {
					t.Fatalf("a round of %d visits", visits)
				}
			}
			most := float64(c.parts-1) / float64(c.parts)
			if c.lanes == 0 {
				most = 90.0 / (90 + 50) // a callback a round, as no lane is there to pay its debt
			}
			if got := float64(mover.time) / float64(m.now); got > most+0.01 {
				t.Errorf("the mover has %.3f of the time, want %.3f at most", got, most)
			}
		})
	}
}
