package systest

import (
	"sync"
	"time"

	"github.com/weirnet/weir/internal/poll"
)

var waitCases = []assertion{
	{"wait: a timeout of zero returns at once, with what is there", func(r *rig) {
		p, fd := r.poller(), r.bound("127.0.0.1:0")
		r.quiet(p)
		r.must(p.Add(fd, poll.Write, 1))
		r.equal(len(r.wait(p, 1, 0)), 1)
	}},
	{"wait: is not over before its timeout", func(r *rig) {
		p := r.poller()
		for _, timeout := range []time.Duration{1, 300 * time.Microsecond, 1100 * time.Microsecond, 20 * time.Millisecond} {
			start := time.Now()
			r.equal(len(r.wait(p, 1, timeout)), 0)
			if took := time.Since(start); took < timeout {
				r.Errorf("Wait for %v took %v", timeout, took)
			}
		}
	}},
	{"wait: the longest timeout is no error", func(r *rig) {
		p := r.poller()
		r.must(p.Wake())
		r.equal(len(r.wait(p, 1, 1<<63-1)), 0)
	}},
	{"wait: a datagram ends it", func(r *rig) {
		for _, timeout := range []time.Duration{-1, patience} {
			p, fd, from := r.poller(), r.bound("127.0.0.1:0"), r.bound("127.0.0.1:0")
			r.must(p.Add(fd, poll.Read, 7))
			to := r.local(fd)
			r.beside(func() {
				time.Sleep(2 * time.Millisecond)
				_ = r.trySend(from, []byte("x"), to)
			}, func() {
				got := r.wait(p, 4, timeout)
				if len(got) != 1 || got[0] != (poll.Event{Token: 7, Ready: poll.Readable}) {
					r.Errorf("got %v", got)
				}
			})
		}
	}},
	{"wait: what is ready does not wait for the rest of the room", func(r *rig) {
		p := r.poller()
		r.must(p.Add(r.bound("127.0.0.1:0"), poll.Write, 1))
		r.equal(len(r.wait(p, 64, -1)), 1)
	}},
}

// beside runs other in a goroutine of its own while it runs fn, and waits for both.
func (r *rig) beside(other, fn func()) {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(other)
	fn()
}
