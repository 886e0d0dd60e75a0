package weirtest

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirnet/weir"
	"github.com/weirnet/weir/fault"
	"github.com/weirnet/weir/internal/sys"
)

// Scenario is what Sweep runs, each time on a new loop.
type Scenario struct {
	// Setup opens what the scenario needs on the loop, before it runs, and starts its traffic. Errors that it meets
	// it returns, wrapped (%w): one must be the fault's. check, if it is not nil, is called when the loop has ended,
	// with what Run returned, and tells what is wrong then. It runs after every plan, so it can demand only what holds
	// when any one call fails; what may be missing the loop's Faults tell, and Balance does the counting.
	Setup func(l *weir.Loop) (check func(ended error) error, err error)

	// Config is the loops'. Kernel and Faults are Sweep's to set.
	Config weir.Config

	// Machine runs the scenario on this machine's kernel, many loops at a time. Default: each run on a Network of
	// its own, in a bubble of testing/synctest.
	Machine bool

	// Calls are those that fail. Default: all.
	Calls []fault.Call

	// Lasting has the calls fail that come after the chosen one, too. Left out are EAGAIN, which no system repeats for
	// a socket that it says is ready, and wakes, as nobody could end a loop that waits.
	Lasting bool

	// Quick has each call fail with one errno only, another each time, as -short does. Default: with all.
	Quick bool

	// Settle is how long a loop makes no call before its run is over and it is stopped. A scenario that tries again
	// after a second needs more than that; in memory it costs nothing. Default: 30 ms.
	Settle time.Duration

	// MaxRuns bounds the number of runs. Default: 20,000.
	MaxRuns int

	// MaxQuietCalls is how many calls to the system a loop may make in the 200 ms after its traffic. Default: 200, as it
	// may try again now and then what failed.
	MaxQuietCalls int
}

// Sweep runs a scenario with the first call of each kind failing, then the second, and so on until a run is over
// before its fault, with each errno of fault.Errnos. In a run a loop is made, Setup called, and, when nothing has
// happened for Scenario.Settle, the loop stopped. The test fails, with the plan of the run, where
//
//   - Run has not returned 5 s after that, or panics;
//   - New, Setup or Run fails, and the error is not the fault's;
//   - a descriptor, a poller or a goroutine is left;
//   - the loop made more than MaxQuietCalls in the 200 ms after its traffic, or took 5 % of a processor on the
//     machine's kernel;
//   - the scenario's check says so.
//
// A loop that asks its poller more than 5,000 times is ended. A run in a bubble that takes a minute of real time, as
// with a callback that does not return, ends the process with a panic that tells the plan.
//
// With -short, as with Scenario.Quick, each call fails with one errno only. Where the scenario fails without a fault, as
// its kernel lacks what it needs, the test is skipped.
//
//   - Owner: a test that runs alone: no t.Parallel, and no bubble around it.
func Sweep(t *testing.T, s Scenario) {
	t.Helper()
	w := newSweep(s)
	w.log = t.Logf
	w.bubble = bubbleOf(t)
	w.run()
	if w.lacking != nil {
		t.Skipf("the kernel lacks what the scenario needs: %v", w.lacking)
	}
	for _, f := range w.failures {
		t.Error(f)
	}
}

// bubbleOf runs functions in bubbles. One that leaves goroutines behind which wait for ever makes synctest.Test panic.
func bubbleOf(t *testing.T) func(func()) error {
	return func(f func()) (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("the bubble of the run: %v", p)
			}
		}()
		synctest.Test(t, func(*testing.T) { f() })
		return nil
	}
}

// sweep is a Sweep in progress.
type sweep struct {
	Scenario
	log    func(format string, args ...any)
	bubble func(func()) error // runs a function in a bubble; an error is a deadlock there
	short  bool
	setup  func(*weir.Loop, sys.Kernel) (check func(error) error, err error) // if not nil: Setup, with the kernel below the faults

	leave func(fault.Call, syscall.Errno) bool // if not nil: answers that are not tried

	hangTime time.Duration    // of a run in a bubble
	hung     func(fault.Plan) // hears of one that takes longer; there is no other way to tell
	ran      func(fault.Plan) // hears of each plan

	runs     int
	failures []error
	lacking  error
}

const (
	maxFailures  = 10  // after which a sweep gives up
	machineGroup = 128 // loops that run at once on the machine's kernel
)

func newSweep(s Scenario) *sweep {
	if s.Calls == nil {
		s.Calls = slices.Collect(fault.AllCalls())
	}
	if s.Settle == 0 {
		s.Settle = settleStep
	}
	if s.MaxRuns == 0 {
		s.MaxRuns = 20_000
	}
	if s.MaxQuietCalls == 0 {
		s.MaxQuietCalls = 200
	}
	return &sweep{
		Scenario: s, log: func(string, ...any) {}, ran: func(fault.Plan) {}, short: s.Quick || testing.Short(),
		hangTime: time.Minute, hung: func(p fault.Plan) {
			panic(fmt.Sprintf("weirtest: the run with the plan %q, for Config.Faults, hangs", p.String()))
		},
	}
}

func (w *sweep) run() {
	if !w.baseline() {
		return
	}
	live := w.Calls
	for k := 1; len(live) > 0; {
		plans := w.plans(k, live)
		last := k
		for w.Machine && last-k < 3 && len(plans) > 0 && len(plans)+len(plans)/(last-k+1) <= machineGroup {
			last++ // a group costs its time however small it is
			plans = append(plans, w.plans(last, live)...)
		}
		hit, ok := w.round(last, plans)
		if !ok {
			return
		}
		live = slices.DeleteFunc(slices.Clone(live), func(c fault.Call) bool { return !hit[c] })
		k = last + 1
	}
	w.log("weirtest: %d runs", w.runs)
}

// baseline runs the scenario without a fault, and tells whether there is any point in going on.
func (w *sweep) baseline() bool {
	for _, r := range w.runGroup([]fault.Plan{{}}) {
		if errors.Is(r.err, errors.ErrUnsupported) || errors.Is(r.err, syscall.ENOPROTOOPT) {
			w.lacking = r.err
			return false
		}
		if err := r.verdict(w); err != nil {
			w.fail(r.plan, err)
			return false
		}
		w.log("weirtest: calls without a fault: %v", r.faults.Calls())
	}
	return true
}

// round runs the plans and tells in which calls' the last one of theirs was hit. It is not ok if the sweep is over.
func (w *sweep) round(last int, plans []fault.Plan) (hit map[fault.Call]bool, ok bool) {
	hit = make(map[fault.Call]bool)
	size := 1
	if w.Machine {
		size = machineGroup
	}
	for group := range slices.Chunk(plans, size) {
		if w.runs+len(group) > w.MaxRuns {
			w.log("weirtest: given up after %d runs, before the %d. call of each kind", w.runs, last)
			return hit, false
		}
		for _, r := range w.runGroup(group) {
			w.ran(r.plan)
			if rule := r.plan.Rules[0]; rule.From == last && r.faults.Hits()[0] > 0 {
				hit[rule.Call] = true
			}
			if err := r.verdict(w); err != nil {
				w.fail(r.plan, err)
			}
		}
		if len(w.failures) >= maxFailures {
			w.log("weirtest: given up after %d failures", len(w.failures))
			return hit, false
		}
	}
	return hit, true
}

func (w *sweep) plans(k int, calls []fault.Call) (plans []fault.Plan) {
	for _, c := range calls {
		errnos := fault.Errnos(c)
		if w.Lasting && c == fault.Wake {
			continue
		}
		if w.Lasting {
			errnos = slices.DeleteFunc(errnos, func(e syscall.Errno) bool { return e == syscall.EAGAIN })
		}
		if w.leave != nil {
			errnos = slices.DeleteFunc(errnos, func(e syscall.Errno) bool { return w.leave(c, e) })
		}
		if w.short && len(errnos) > 0 {
			errnos = errnos[k%len(errnos):][:1]
		}
		for _, e := range errnos {
			r := fault.Rule{Call: c, From: k, Action: fault.Action{Errno: e}}
			if w.Lasting {
				r.Times = -1
			}
			plans = append(plans, fault.Plan{Rules: []fault.Rule{r}})
		}
	}
	return plans
}

func (w *sweep) fail(p fault.Plan, err error) {
	w.failures = append(w.failures, fmt.Errorf("with the plan %q, for Config.Faults: %w", p.String(), err))
}

const (
	settleStep  = 30 * time.Millisecond  // between looks at the number of calls
	restTime    = 300 * time.Millisecond // after which a few are no traffic
	settleTime  = 2 * time.Second        // after which it is measured all the same; for 32 loops that run at once
	beginTime   = 30 * time.Second       // which loops have to begin on a busy machine, as Stop would not reach them before
	quietTime   = 200 * time.Millisecond
	graceTime   = 500 * time.Millisecond
	returnTime  = 5 * time.Second
	abortTime   = 2 * time.Second // which a loop that was stuck has more
	maxWaits    = 100_000         // of a run, after which it is ended
	quietShare  = 20              // a twentieth of a processor, for one loop
	restShare   = 200             // and for each that runs beside it, as it may try again now and then
	quietTries  = 3               // as other things of the process, and a collection, take their time, too
	maxStackLen = 16 << 10
)
