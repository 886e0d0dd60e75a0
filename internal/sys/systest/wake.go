package systest

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirnet/weir/internal/poll"
)

var wakeCases = []assertion{
	{"wake: before a Wait ends that Wait", func(r *rig) {
		p := r.poller()
		r.must(p.Wake())
		r.equal(len(r.wait(p, 4, -1)), 0)
	}},
	{"wake: during a Wait ends that Wait", func(r *rig) {
		for _, timeout := range []time.Duration{-1, patience} {
			p := r.poller()
			r.beside(func() {
				time.Sleep(2 * time.Millisecond)
				_ = p.Wake()
			}, func() {
				start := time.Now()
				r.equal(len(r.wait(p, 4, timeout)), 0)
				if time.Since(start) >= patience {
					r.Error("the wake did not end it")
				}
			})
		}
	}},
	{"wake: many are folded into one", func(r *rig) {
		p := r.poller()
		for range 100 {
			r.must(p.Wake())
		}
		r.equal(len(r.wait(p, 4, patience)), 0)
		start := time.Now()
		const timeout = 5 * time.Millisecond
		r.equal(len(r.wait(p, 4, timeout)), 0)
		if took := time.Since(start); took < timeout {
			r.Errorf("the Wait after it took %v", took)
		}
	}},
	{"wake: a Wait that does not wait uses it up", func(r *rig) {
		p := r.poller()
		r.must(p.Wake())
		r.quiet(p)
		start := time.Now()
		const timeout = 5 * time.Millisecond
		r.equal(len(r.wait(p, 4, timeout)), 0)
		if took := time.Since(start); took < timeout {
			r.Errorf("the Wait after it took %v", took)
		}
	}},
	{"wake: hides no event", func(r *rig) {
		p := r.poller()
		r.must(p.Add(r.bound("127.0.0.1:0"), poll.Write, 1))
		for range 3 {
			r.must(p.Wake())
			r.equal(len(r.wait(p, 2, patience)), 1)
		}
	}},
	{"wake: none is lost, however many goroutines wake", func(r *rig) {
		const wakers, each = 4, 500
		p := r.poller()
		var posted atomic.Int64
		r.beside(func() {
			var wg sync.WaitGroup
			defer wg.Wait()
			for range wakers {
				wg.Go(func() {
					for range each {
						posted.Add(1)
						_ = p.Wake()
					}
				})
			}
		}, func() {
			for seen := int64(0); seen < wakers*each; seen = posted.Load() {
				start := time.Now()
				r.wait(p, 4, patience)
				if time.Since(start) >= patience {
					r.Fatalf("woken for %d of %d", seen, wakers*each)
				}
			}
		})
	}},
}
