package weir

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Group is several loops that begin and end together, each on a goroutine of its own, to use more than one
// processor. They share nothing: sockets with ReusePort have the kernel divide the peers of a port among them.
// Their handlers run at the same time, so what the program has those share needs its locks. Methods are for any
// goroutine.
type Group struct {
	loops []*Loop // set once
	done  chan struct{}

	mu      sync.Mutex
	started bool // guarded by mu: Run has been called
	ended   bool // guarded by mu: done is closed
}

// GroupConfig is a group's. The zero GroupConfig works, and makes loops without sockets.
type GroupConfig struct {
	// Loops is how many there are. Default: GOMAXPROCS.
	Loops int

	// Config is each loop's. With StopWhenIdle a loop that has nothing left to do ends without the others; a plan
	// of Faults is counted by each loop for itself.
	Config Config

	// Setup opens the sockets of a loop, and arms its timers. It is called for one loop after the other on the goroutine
	// of NewGroup, so that the first can listen on port 0 and the others on the port that it was given.
	Setup func(l *Loop) error
}

// NewGroup makes the loops of a group. Where one cannot be made or set up, all are closed, and the OnClose of what
// was opened has run.
//
//   - Errors: as New, and what Setup answers, wrapped.
func NewGroup(cfg GroupConfig) (*Group, error) {
	if cfg.Loops < 0 {
		return nil, fmt.Errorf("weir: GroupConfig.Loops is %d; it cannot be negative", cfg.Loops)
	}
	setDefault(&cfg.Loops, runtime.GOMAXPROCS(0))
	g := &Group{done: make(chan struct{})}
	made := false
	defer func() {
		if !made { // a panic of Setup leaves nothing behind either
			g.discard()
		}
	}()
	for i := range cfg.Loops {
		l, err := New(cfg.Config)
		if err != nil {
			return nil, err
		}
		g.loops = append(g.loops, l)
		if cfg.Setup == nil {
			continue
		}
		if err := cfg.Setup(l); err != nil {
			return nil, fmt.Errorf("weir: the setup of loop %d: %w", i, err)
		}
	}
	made = true
	return g, nil
}

// discard closes loops that are not to run, and has them say so.
func (g *Group) discard() {
	for _, l := range g.loops {
		_ = l.Close()
		_ = l.Run(context.Background())
	}
}

// Run runs each loop on a goroutine of its own, and returns when all have ended. It can be called once.
//
// When one loop ends, so do the others. One that was stopped has the others stop, with the shortest grace that it was
// given; one that was closed, or failed, has them closed. A callback's panic ends the program, as on any goroutine,
// with its own stack; runtime.Goexit closes the group.
//
//   - Errors: context.Cause(ctx) when the context ended it, nil when Close or Stop did, ErrClosed when the group has
//     run already; what Run of the loops answered else, joined.
func (g *Group) Run(ctx context.Context) error {
	if !g.begin() {
		return ErrClosed
	}
	errs := make([]error, len(g.loops))
	var running sync.WaitGroup
	running.Add(len(g.loops))
	for i, l := range g.loops {
		go g.run(ctx, l, &errs[i], &running)
	}
	running.Wait()
	g.mu.Lock()
	g.endLocked()
	g.mu.Unlock()
	return joined(context.Cause(ctx), errs)
}

var errGoexit = errors.New("a callback called runtime.Goexit")

// run runs one loop and ends the others with it. A panic is not counted as an end: the program is about to die of it,
// and must not go on to another exit first.
func (g *Group) run(ctx context.Context, l *Loop, err *error, running *sync.WaitGroup) {
	returned := false
	defer func() {
		if !returned {
			if p := recover(); p != nil {
				panic(p)
			}
			*err = errGoexit
		}
		g.endAfter(l, *err)
		running.Done()
	}()
	*err = l.Run(ctx)
	returned = true
}

// endAfter ends the group as one of its loops has ended.
func (g *Group) endAfter(l *Loop, err error) {
	switch {
	case err != nil || l.end.left == stageClosing:
		_ = g.Close()
	case l.end.left == stageStopping:
		g.Stop(l.end.shortest())
	}
}

// joined is what went wrong, the end of the context once.
func joined(cause error, errs []error) error {
	var all []error
	ended := false
	for i, err := range errs {
		switch {
		case err == nil:
		case cause != nil && errors.Is(err, cause):
			ended = true
		default:
			all = append(all, fmt.Errorf("weir: loop %d: %w", i, err))
		}
	}
	if !ended {
		return errors.Join(all...)
	}
	if len(all) == 0 {
		return cause
	}
	return errors.Join(append(all, cause)...)
}

// Loops walks the loops, in the order in which they were set up.
func (g *Group) Loops() iter.Seq2[int, *Loop] { return slices.All(g.loops) }

// Stop stops each loop, as Loop.Stop does. It does not wait.
func (g *Group) Stop(grace time.Duration) {
	if grace == 0 {
		_ = g.Close()
		return
	}
	for _, l := range g.loops {
		l.Stop(grace)
	}
}

// Shutdown is Stop(-1), and waits until all loops have ended; any goroutine but those of the loops. When the context is
// done first, it closes the group.
//
//   - Errors: context.Cause(ctx) when the context was done first.
func (g *Group) Shutdown(ctx context.Context) error {
	g.Stop(-1)
	select {
	case <-g.done:
		return nil
	case <-ctx.Done():
		_ = g.Close()
		return context.Cause(ctx)
	}
}

// Close closes each loop, as Loop.Close does: at once before Run, and then a Run only calls OnClose. It does not
// wait. The error is always nil.
func (g *Group) Close() error {
	if g.closeUnrun() {
		return nil
	}
	for _, l := range g.loops {
		_ = l.Close()
	}
	return nil
}

// Done is closed when all loops have ended and all is closed.
func (g *Group) Done() <-chan struct{} { return g.done }

// Stats is the sum over the loops, those that have ended included.
func (g *Group) Stats() (sum Stats) {
	for _, l := range g.loops {
		s := l.Stats()
		sum.add(&s)
	}
	return sum
}

// begin claims the only run there is.
func (g *Group) begin() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	first := !g.started
	g.started = true
	return first
}

// closeUnrun closes a group that does not run yet, and tells whether it was one.
func (g *Group) closeUnrun() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.started {
		return false
	}
	for _, l := range g.loops {
		_ = l.Close()
	}
	g.endLocked()
	return true
}

func (g *Group) endLocked() {
	if !g.ended {
		g.ended = true
		close(g.done)
	}
}
