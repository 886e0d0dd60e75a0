package weirtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weirnet/weir"
	"github.com/weirnet/weir/fault"
	"github.com/weirnet/weir/internal/memsys"
	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
)

// sweepRun is one run of a scenario.
type sweepRun struct {
	plan   fault.Plan
	faults *fault.Injector
	watch  *watch
	loop   atomic.Pointer[weir.Loop] // nil before New has returned one
	done   chan struct{}             // closed when the goroutine is over

	// Written by the goroutine, read once it is over.
	check    func(ended error) error
	err      error // of New, Setup or Run
	crash    error
	returned bool

	// Written by the group.
	stuck  error // it has not ended
	quiet  int   // calls in the quiet time
	census error // what the group left
}

// runGroup runs the scenario with each plan: all at once on the machine's kernel, the one in a bubble otherwise.
// What cannot be put down to one run of a group makes its halves run again.
func (w *sweep) runGroup(plans []fault.Plan) (runs []*sweepRun) {
	w.runs += len(plans)
	if !w.Machine {
		return w.runInBubble(plans)
	}
	runs, blame := w.runAtOnce(plans)
	switch {
	case blame == nil:
		return runs
	case len(plans) == 1:
		runs[0].census = blame
		return runs
	}
	w.log("weirtest: one of %d: %v", len(plans), blame)
	half := len(plans) / 2
	return append(w.runGroup(plans[:half]), w.runGroup(plans[half:])...)
}

func (w *sweep) runInBubble(plans []fault.Plan) (runs []*sweepRun) {
	defer time.AfterFunc(w.hangTime, func() { w.hung(plans[0]) }).Stop() // by the clock outside of the bubble
	err := w.bubble(func() {
		var blame error
		if runs, blame = w.runAtOnce(plans); blame != nil {
			w.log("weirtest: with the plan %q: %v", plans[0].String(), blame) // the bubble may not end
			time.Sleep(24 * time.Hour)                                        // which costs nothing: what waits for time, ends
		}
	})
	if runs == nil {
		return []*sweepRun{{plan: plans[0], crash: err}}
	}
	if err != nil && runs[0].census == nil && runs[0].stuck == nil {
		runs[0].census = err
	}
	return runs
}

func (w *sweep) runAtOnce(plans []fault.Plan) (runs []*sweepRun, blame error) {
	before := takeCensus()
	for _, p := range plans {
		r := w.newRun(p)
		runs = append(runs, r)
		go r.live(w)
	}
	w.settle(runs)
	busy := w.measure(runs)
	for _, r := range runs {
		if l := r.loop.Load(); l != nil {
			l.Stop(graceTime)
		}
	}
	awaitAll(runs, before)
	left := before.left()
	if len(runs) == 1 {
		runs[0].census = errors.Join(busy, left)
	}
	return runs, errors.Join(busy, left)
}

// awaitAll waits until the loops are over, and ends those that are not.
func awaitAll(runs []*sweepRun, before census) {
	late := time.NewTimer(returnTime)
	defer late.Stop()
	for _, r := range runs {
		select {
		case <-r.done:
		case <-late.C:
			late.Reset(0) // the others have had their time, too
			r.stuck = fmt.Errorf("not over %v after Stop; goroutines:\n%s", returnTime, stacks(before))
			r.watch.abort()
			select { // a goroutine that goes on would be in the way of the next runs
			case <-r.done:
			case <-time.After(abortTime):
			}
		}
	}
}

// stacks are those of the goroutines that came after a census.
func stacks(before census) []byte {
	var b bytes.Buffer
	for id, s := range goroutines() {
		if _, old := before.goroutines[id]; !old && b.Len() < maxStackLen {
			b.WriteString(s + "\n\n")
		}
	}
	return b.Bytes()
}

func (w *sweep) newRun(p fault.Plan) *sweepRun {
	in, err := fault.NewInjector(p)
	if err != nil {
		panic(err) // the plans are ours
	}
	var b poll.Backend
	switch {
	case !w.Machine:
		b = memsys.New().Backend()
	case w.Config.NoBatches:
		b = poll.NativeSingle()
	default:
		b = poll.Native()
	}
	r := &sweepRun{plan: p, faults: in, watch: newWatch(b), done: make(chan struct{})}
	r.watch.maxWaits = maxWaits
	return r
}

// live is the loop's goroutine.
func (r *sweepRun) live(w *sweep) {
	defer close(r.done)
	defer func() {
		if p := recover(); p != nil {
			r.crash = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		} else if !r.returned {
			r.crash = errors.New("the goroutine was ended by runtime.Goexit, as t.FailNow does")
		}
	}()
	r.err = r.liveAsLoop(w)
	r.returned = true
}

func (r *sweepRun) liveAsLoop(w *sweep) error {
	cfg := w.Config
	cfg.Faults = fault.Plan{}
	cfg.Kernel = weir.NewKernel(poll.WithFaults(r.watch.backend(), r.faults))
	l, err := weir.New(cfg)
	if err != nil {
		return err
	}
	defer l.Close() // where Setup does not return
	check, err := w.setUp(l, r.watch)
	if err != nil {
		_ = l.Close()
		return errors.Join(err, l.Run(context.Background()))
	}
	r.check = check
	r.loop.Store(l)
	return l.Run(context.Background())
}

func (w *sweep) setUp(l *weir.Loop, k sys.Kernel) (check func(error) error, err error) {
	if w.setup != nil {
		return w.setup(l, k)
	}
	return w.Setup(l)
}

// settle waits until nothing happens any more, or for a while only what a loop may do at rest.
func (w *sweep) settle(runs []*sweepRun) {
	before := make([]int, len(runs))
	start := time.Now()
	moved, seen := start, false // in a bubble the first look may be at the moment of the start, and see all there is
	limit := max(settleTime, 10*w.Settle) * time.Duration(1+len(runs)/32)
	for ; time.Since(start) < limit || !allBegun(runs) && time.Since(start) < beginTime; time.Sleep(settleStep) {
		most := 0
		for i, r := range runs {
			now := r.calls()
			most = max(most, now-before[i])
			before[i] = now
		}
		few := most <= w.MaxQuietCalls/int(quietTime/settleStep) && time.Since(start) > restTime
		if most > 0 && !(few && w.Settle == settleStep) || !allBegun(runs) {
			moved, seen = time.Now(), true
			continue
		}
		if seen && time.Since(moved) >= w.Settle-settleStep {
			return
		}
	}
}

func allBegun(runs []*sweepRun) bool {
	for _, r := range runs {
		select {
		case <-r.done:
		default:
			if r.loop.Load() == nil {
				return false
			}
		}
	}
	return true
}

func (r *sweepRun) calls() (n int) {
	for _, c := range r.faults.Calls() {
		n += c
	}
	return n
}

// measure counts each run's calls in a quiet time, and tells whether all together kept a processor busy.
func (w *sweep) measure(runs []*sweepRun) error {
	for try := 1; ; try++ {
		for _, r := range runs {
			r.quiet = -r.calls()
		}
		began, used := time.Now(), processorTime()
		time.Sleep(quietTime)
		took := time.Since(began)
		used = processorTime() - used
		noisy := false
		for _, r := range runs {
			r.quiet += r.calls()
			noisy = noisy || r.quiet > w.MaxQuietCalls
		}
		limit := took/quietShare + took/restShare*time.Duration(len(runs)-1)
		switch busy := w.Machine && used > limit; {
		case !busy && !noisy:
			return nil
		case try < quietTries:
		case busy:
			return fmt.Errorf("%v of a processor in %v at rest", used, took)
		default:
			return nil
		}
	}
}

// verdict is what is wrong with a run that is over, or nil.
func (r *sweepRun) verdict(w *sweep) error {
	var all []error
	add := func(format string, args ...any) { all = append(all, fmt.Errorf(format, args...)) }
	if r.stuck != nil {
		return r.stuck
	}
	if r.crash != nil {
		return r.crash
	}
	if r.err != nil && !r.expected() {
		add("fails with what is no fault of the plan: %w", r.err)
	}
	if r.quiet > w.MaxQuietCalls {
		add("%d calls in %v at rest", r.quiet, quietTime)
	}
	if fds, pollers := r.watch.left(); fds+pollers > 0 {
		add("%d sockets and %d pollers are left", fds, pollers)
	}
	if r.census != nil {
		all = append(all, r.census)
	}
	if r.check != nil {
		if err := r.check(r.err); err != nil {
			all = append(all, err)
		}
	}
	if len(all) > 0 {
		return fmt.Errorf("%w\ncalls: %v\nfaults: %s", errors.Join(all...), r.faults.Calls(), r.faults.Log())
	}
	return nil
}

// expected tells that the run's error is the fault's.
func (r *sweepRun) expected() bool {
	for i, hits := range r.faults.Hits() {
		if errno := r.plan.Rules[i].Action.Errno; hits > 0 && errno != syscall.Errno(0) && errors.Is(r.err, errno) {
			return true
		}
	}
	return false
}
