package share

import (
	"fmt"
	"testing"
	"time"
)

// crowd is a ring with n ready sources, in one lane or each in its own.
func crowd(n int, own bool) (*Ring, []*Source) {
	r := NewRing(limits)
	shared := new(Lane)
	var all []*Source
	for range n {
		l := shared
		if own {
			l = new(Lane)
		}
		all = append(all, l.NewSource(nil))
		r.Ready(all[len(all)-1])
	}
	return r, all
}

// BenchmarkVisit is Next, Charge and End of sources that always have more, one callback a visit.
func BenchmarkVisit(b *testing.B) {
	for _, n := range []int{1, 1000} {
		for _, own := range []bool{false, true} {
			for _, took := range []time.Duration{25 * us, 60 * us, 500 * us} {
				b.Run(fmt.Sprintf("sources=%d/own_lanes=%v/took=%v", n, own, took), func(b *testing.B) {
					r, _ := crowd(n, own)
					now := time.Duration(0)
					b.ReportAllocs()
					for b.Loop() {
						for r.Next(now) == nil {
							r.BeginTurn()
						}
						now += took
						r.Charge(now, 1)
						r.End(true)
					}
				})
			}
		}
	}
}

// Not parallel: allocations of other tests would count.
func TestNothingIsAllocated(t *testing.T) {
	for _, own := range []bool{false, true} {
		r, all := crowd(100, own)
		now, n := time.Duration(0), 0
		allocs := testing.AllocsPerRun(2000, func() {
			n++
			if n%7 == 0 {
				r.Inelastic(time.Duration(n%300) * us)
				r.BeginTurn()
			}
			r.Ready(all[n%len(all)])
			if r.Next(now) == nil {
				return
			}
			now += time.Duration(r.Batch(64, us)) * us
			r.Charge(now, 1)
			for n%5 == 0 && r.Open() {
				now += 20 * us
				r.Charge(now, 1)
			}
			r.End(n%3 > 0)
			if n%37 == 0 {
				r.Remove(all[n/37%len(all)])
			}
		})
		if allocs != 0 {
			t.Errorf("own lanes %v: %v allocations a visit", own, allocs)
		}
	}
}
