package weir

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirnet/weir/internal/memsys"
)

// "Post has the loop call fn soon, after functions posted earlier", be it before Run, from another goroutine,
// or from a posted function.
func TestPostOrder(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		var order []int
		post := func(i int, then func()) {
			if err := l.Post(func() { order = append(order, i); then() }); err != nil {
				t.Error(err)
			}
		}
		nothing := func() {}
		post(0, func() { post(3, nothing); post(4, nothing) })
		post(1, nothing)
		post(2, func() {
			go func() {
				for i := 5; i < 1000; i++ {
					post(i, nothing)
				}
				post(1000, func() { _ = l.Close() })
			}()
		})
		run(t, l)
		if len(order) != 1001 || !slices.IsSorted(order) {
			t.Errorf("%d functions ran, in the order %v", len(order), order)
		}
	})
}

func TestPostErrors(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{MaxPosts: 3})
		if l.Post(nil) == nil || l.PostContext(t.Context(), nil) == nil {
			t.Error("a nil function was taken")
		}
		ran := 0
		for i := range 3 {
			if err := l.Post(func() { ran++ }); err != nil {
				t.Errorf("function %d of 3: %v", i, err)
			}
		}
		if err := l.Post(func() { ran++ }); err != ErrWouldBlock {
			t.Errorf("function 4 of 3: %v", err)
		}
		if n := l.Stats().Waiting; n != 3 {
			t.Errorf("Stats.Waiting is %d", n)
		}
		ended := background(t, l)
		synctest.Wait()
		if ran != 3 || l.Stats().Waiting != 0 {
			t.Errorf("%d functions ran, and %d wait", ran, l.Stats().Waiting)
		}
		_ = l.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		for name, err := range map[string]error{
			"Post":        l.Post(func() { t.Error("called after the end") }),
			"PostContext": l.PostContext(t.Context(), func() { t.Error("called after the end") }),
		} {
			if err != ErrClosed {
				t.Errorf("%s after the end: %v", name, err)
			}
		}
	})
}

// The room that a function takes is free when it runs, so it can post itself again at any time.
func TestPostFromAFullQueue(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{MaxPosts: 1})
		n := 0
		var again func()
		again = func() {
			if n++; n == 100 {
				_ = l.Close()
			} else if err := l.Post(again); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Post(again); err != nil {
			t.Fatal(err)
		}
		run(t, l)
	})
}

// "PostContext is Post, but waits for room in the queue."
func TestPostContextWaits(t *testing.T) {
	for _, size := range []int{1, 2, 3, 10} {
		inBubble(t, func(t *testing.T, net *memsys.Net) {
			l := loopIn(t, net, Config{MaxPosts: size})
			ran := 0
			for range size {
				if err := l.Post(func() { ran++ }); err != nil {
					t.Fatal(err)
				}
			}
			var waiting atomic.Int32
			for range 5 {
				waiting.Add(1)
				go func() {
					if err := l.PostContext(t.Context(), func() { ran++ }); err != nil {
						t.Error(err)
					}
					waiting.Add(-1)
				}()
			}
			synctest.Wait()
			if n := waiting.Load(); n != 5 || ran != 0 {
				t.Errorf("%d of 5 wait for room among %d, and %d ran", n, size, ran)
			}
			l.AfterFunc(time.Second, func() { _ = l.Close() })
			run(t, l)
			if n := waiting.Load(); n != 0 || ran != size+5 {
				t.Errorf("%d still wait for room among %d, and %d ran", n, size, ran)
			}
		})
	}
}

// "Errors: context.Cause(ctx), ErrClosed."
func TestPostContextGivesUp(t *testing.T) {
	cause := errors.New("no patience")
	for _, c := range []struct {
		name string
		end  func(l *Loop, cancel context.CancelCauseFunc)
		want error
	}{
		{"the context is done", func(_ *Loop, cancel context.CancelCauseFunc) { cancel(cause) }, cause},
		{"the loop is closed and never ran", func(l *Loop, _ context.CancelCauseFunc) { _ = l.Close() }, ErrClosed},
		{"the loop ends", func(l *Loop, _ context.CancelCauseFunc) {
			done, cancel := context.WithCancel(context.Background())
			cancel()
			_ = l.Run(done)
		}, ErrClosed},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, net *memsys.Net) {
				l := loopIn(t, net, Config{MaxPosts: 1})
				never := func() { t.Error("called") }
				if err := l.Post(never); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				result := make(chan error, 3)
				for range 3 {
					go func() { result <- l.PostContext(ctx, never) }()
				}
				synctest.Wait()
				if len(result) > 0 {
					t.Fatal("it does not wait: ", <-result)
				}
				c.end(l, cancel)
				for range 3 {
					if err := <-result; err != c.want {
						t.Errorf("%v, want %v", err, c.want)
					}
				}
			})
		})
	}
}

// Those who wait for room get it, though others take all there is as soon as there is some.
func TestPostContextIsNotCrowdedOut(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{MaxPosts: 8})
		taken, ran := false, 0
		var again func()
		again = func() {
			time.Sleep(time.Microsecond)
			if ran++; ran > 10_000 || taken {
				_ = l.Close()
				return
			}
			_ = l.Post(again)
		}
		for l.Post(again) == nil {
		}
		go func() { _ = l.PostContext(t.Context(), func() { taken = true }) }()
		synctest.Wait()
		run(t, l)
		if !taken {
			t.Error("it waits while 10,000 others passed")
		}
	})
}

// Posts wake a loop that sleeps, and one that is awake need not be woken: wake-ups are folded.
func TestPostWakesOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		ended := background(t, l)
		synctest.Wait()
		wakes := func() int { return net.Calls().Wake }
		if wakes() != 0 {
			t.Errorf("%d wakes before anything was posted", wakes())
		}
		gate, ran := make(chan struct{}), 0
		_ = l.Post(func() { <-gate })
		synctest.Wait()
		if wakes() != 1 {
			t.Errorf("%d wakes of a loop that sleeps, want 1", wakes())
		}
		for range 100 {
			_ = l.Post(func() {
				ran++
				_ = l.Post(func() { ran++ })
			})
		}
		if wakes() != 1 {
			t.Errorf("%d wakes of a loop that is awake", wakes()-1)
		}
		close(gate)
		synctest.Wait()
		if ran != 200 || wakes() != 1 {
			t.Errorf("%d functions ran, after %d wakes", ran, wakes())
		}
		_ = l.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// The posted functions are one source of the ring: as many as there are, the others have their share.
func TestPostShare(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		const cost = 10 * time.Microsecond
		l := loopIn(t, net, Config{})
		socket := openEndless(t, l, Share(), 30*time.Microsecond)
		var posts time.Duration
		var again func()
		again = func() {
			time.Sleep(cost)
			posts += cost
			if d := (posts - socket.time).Abs(); d > minShare+cost+30*time.Microsecond {
				t.Errorf("posted functions have %v, the socket %v", posts, socket.time)
				_ = l.Close()
			}
			_ = l.Post(again)
			if l.Stats().Waiting < 10 {
				_ = l.Post(again)
			}
		}
		_ = l.Post(again)
		runFor(t, l, 100*time.Millisecond)
	})
}

// postStream posts n functions, again where the queue is full, and checks that each ran once and in order.
type postStream struct {
	n    int
	next int // loop only
}

func (s *postStream) post(t *testing.T, l *Loop, each func()) {
	for i := range s.n {
		fn := func() {
			if s.next != i {
				t.Errorf("function %d where %d was due", i, s.next)
			}
			s.next++
			each()
		}
		for {
			err := l.Post(fn)
			if err == nil {
				break
			}
			if err != ErrWouldBlock {
				t.Error(err)
				return
			}
			runtime.Gosched()
		}
	}
}

// Eight goroutines post as fast as they can, while a socket floods itself and a timer is due in each turn.
// With a share of 50 µs a visit runs 250 functions at most, as each is charged 200 ns at least, so what the
// others get can be told in functions, not in time.
func TestPostFlood(t *testing.T) {
	const goroutines, each, visit = 8, 2500, int(minShare / minCost)
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k, MaxPosts: 1000, MaxShare: minShare})
		ran, datagrams, ticks := 0, 0, 0
		gap, longest := 0, 0 // functions since the last datagram
		u := listen(t, l, Share(), func(u *UDP, d *Datagram) {
			datagrams++
			longest, gap = max(longest, gap), 0
			_ = u.Send(d.Payload, u.LocalAddr())
		})
		sendNow(t, u, u.LocalAddr(), 100)
		var tick func()
		tick = func() { ticks++; l.AfterFunc(0, tick) }
		tick()

		var streams [goroutines]postStream
		var posters sync.WaitGroup
		for i := range streams {
			streams[i].n = each
			posters.Go(func() {
				streams[i].post(t, l, func() {
					gap++
					if ran++; ran == goroutines*each {
						_ = l.Close()
					}
				})
			})
		}
		run(t, l)
		posters.Wait()
		if ran != goroutines*each {
			t.Errorf("%d functions ran of %d", ran, goroutines*each)
		}
		if want := ran/visit - 1; ticks < want {
			t.Errorf("the timer was called %d times, want %d and more", ticks, want)
		}
		// The socket may be noticed a millisecond after it became ready, which is 20 shares; and where the machine has
		// kept the loop from running in its callback, it has the debt of that, which is 10 ms at most.
		most := int((maxDebt + time.Millisecond) / minCost)
		if want := ran / visit / 25; datagrams < want || longest > most {
			t.Errorf("%d datagrams, with up to %d functions between two; want %d and more, and at most %d",
				datagrams, longest, want, most)
		}
	})
}
