package share

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// "A share that follows the longest other activity of the last turn feeds on itself: one 30 ms hiccup
// with 3 busy sources makes every later turn 90 ms for ever. Do not build that."
//
// naive is that rule, built here as the control: each source is served for as long as the longest
// activity of the others was in the last turn, whether a visit or not.
type naive struct {
	now       time.Duration
	costs     []func() time.Duration // of each source's callbacks
	last      []time.Duration        // length of each source's visit in the last turn
	inelastic time.Duration          // in the last turn
	most      time.Duration          // of a share
}

func (n *naive) turn() {
	visits := make([]time.Duration, len(n.costs))
	for i, cost := range n.costs {
		longest := n.inelastic
		for j, d := range n.last {
			if j != i {
				longest = max(longest, d)
			}
		}
		share := min(max(longest, limits.MinShare), n.most)
		for visits[i] < share {
			visits[i] += cost()
		}
		n.now += visits[i]
	}
	n.last, n.inelastic = visits, 0
}

func TestHiccupDoesNotRatchet(t *testing.T) {
	t.Parallel()
	const hiccup = 30 * ms
	const before = 5 // turns
	for _, sources := range []int{3, 4, 10} {
		for _, inelastic := range []bool{true, false} {
			costs := func() (all []func() time.Duration) {
				for i := range sources {
					all = append(all, between(10*us, 40*us, uint64(i)))
				}
				if !inelastic { // a callback in one of the turns before
					all[1] = once(before+1, hiccup, all[1])
				}
				return all
			}
			what := "a callback"
			if inelastic {
				what = "inelastic"
			}
			name := fmt.Sprintf("%d sources, hiccup is %s", sources, what)

			// measure returns the lengths of the turns after the hiccup.
			measure := func(after int, now *time.Duration, turn func(), report func(time.Duration)) (turns []time.Duration) {
				var hit bool
				for range before {
					began := *now
					turn()
					hit = hit || *now-began >= hiccup
				}
				if inelastic {
					*now += hiccup
					report(hiccup)
					hit = true
				}
				if !hit {
					panic("no hiccup")
				}
				for range after {
					began := *now
					turn()
					turns = append(turns, *now-began)
				}
				return turns
			}

			t.Run(name, func(t *testing.T) {
				t.Parallel()
				m := newSim()
				for i, cost := range costs() {
					m.ready(m.add(new(Lane), fmt.Sprint(i), endless, cost))
				}
				turns := measure(1000, &m.now, func() { m.turn() }, m.ring.Inelastic)
				if d := slices.Max(turns[10:]); d >= ms {
					t.Errorf("a turn takes %v more than 10 turns after the hiccup; the first ten: %v", d, turns[:10])
				}
			})
			for _, most := range []time.Duration{time.Hour, limits.MaxShare} {
				t.Run(fmt.Sprintf("%s, control with shares up to %v", name, most), func(t *testing.T) {
					t.Parallel()
					n := &naive{costs: costs(), last: make([]time.Duration, sources), most: most}
					report := func(d time.Duration) { n.inelastic = d }
					turns := measure(60, &n.now, n.turn, report)
					if d := slices.Min(turns[10:]); d <= ms {
						t.Errorf("the naive rule came down to %v", d)
					}
					if d, least := turns[len(turns)-1], time.Duration(sources)*min(hiccup, most); d < least {
						t.Errorf("the naive rule's last turn took %v, want %v", d, least)
					}
				})
			}
		}
	}
}
