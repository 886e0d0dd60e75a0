package weir

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// ending is how far a loop is on its way to the end, and why.
type ending struct {
	current atomic.Int32 // a stage
	done    chan struct{}

	mu       sync.Mutex
	started  bool          // guarded by mu: Run has been called
	unrun    bool          // guarded by mu: closed before Run
	finished bool          // guarded by mu: the poller is gone
	why      cause         // guarded by mu
	grace    time.Duration // guarded by mu: the shortest that a Stop asked for and beginStop has not seen; 0 is none

	asked time.Duration // guarded by mu: the shortest grace of all Stops; 0 is none

	begun bool  // loop only: sources have been told to stop
	left  stage // loop only: the one that Run ended in; stageRunning where nothing was left to do
}

type stage int32

const (
	stageRunning  stage = iota
	stageStopping       // sources finish what is queued and close
	stageClosing        // everything is closed at once
)

type cause uint8

const (
	byCall cause = iota + 1
	byContext
)

func (e *ending) stage() stage { return stage(e.current.Load()) }

// request moves to a later stage, if it is one.
func (e *ending) request(to stage, why cause) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if to <= e.stage() {
		return
	}
	e.why = why
	e.current.Store(int32(to))
}

// shortest is the least grace that a Stop has given, negative where all wait as long as it takes.
func (e *ending) shortest() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.asked == 0 {
		return -1
	}
	return e.asked
}

func (e *ending) cause() cause {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.why
}

// begin claims the only run there is, and tells whether the loop was closed before it.
func (e *ending) begin() (first, closed bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	first = !e.started
	e.started = true
	return first, e.unrun
}

// Stop ends the loop gracefully; any goroutine. It does not wait. Each source is closed, with a nil error, as
// soon as what the kernel had queued for it at that moment is delivered and what it has queued itself is
// sent; a listener when all who wait in its backlog are accepted, and they, too, are served so. One that is paused is
// resumed for that. Connections are closed when all of them have delivered, as one may write on another; one whose
// Write was refused has OnDrain first, and each has OnStop. Then the functions that were posted until then are run.
//
// Timers go on meanwhile, and Send and Write work on sources that are not closed yet; what opens a source answers
// ErrClosed. Timers, tasks and next-turn functions are not waited for. A connection that is still dialled is given up.
//
// After grace the loop is closed with what is left; a negative grace waits as long as it takes, and zero
// is Close. ConnConfig.CloseTimeout ends a connection sooner whose peer takes nothing.
func (l *Loop) Stop(grace time.Duration) {
	if grace == 0 {
		_ = l.Close()
		return
	}
	l.end.mu.Lock()
	if grace > 0 {
		l.end.grace = shorter(l.end.grace, grace)
		l.end.asked = shorter(l.end.asked, grace)
	}
	l.end.mu.Unlock()
	l.end.request(stageStopping, byCall)
	l.wake()
}

// shorter is the lesser of two graces, where 0 is none.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 {
		return b
	}
	return min(a, b)
}

// Shutdown is Stop(-1), and waits until Run has returned; any goroutine but the loop's, which would wait for
// itself. It waits for a Run that has not begun, too. When the context is done first, it closes the loop.
//
//   - Errors: context.Cause(ctx) when the context was done first.
func (l *Loop) Shutdown(ctx context.Context) error {
	l.Stop(-1)
	select {
	case <-l.end.done:
		return nil
	case <-ctx.Done():
		_ = l.Close()
		return context.Cause(ctx)
	}
}

// Close ends the loop after the callback that runs now; any goroutine. It does not wait: Run returns when
// all is closed. Before Run it closes the sources itself, at once, and must not be called beside other calls
// of the loop's owner but Run; a Run that follows only calls their OnClose. Closing again does nothing. The
// error is always nil.
func (l *Loop) Close() error {
	if !l.closeUnrun() {
		l.end.request(stageClosing, byCall)
		l.wake()
	}
	return nil
}

// Done is closed when the loop has ended and all is closed; any goroutine.
func (l *Loop) Done() <-chan struct{} { return l.end.done }

// closeUnrun closes a loop that does not run yet, and tells whether it was one. Run waits for it, if it comes
// at the same time.
func (l *Loop) closeUnrun() bool {
	l.end.mu.Lock()
	defer l.end.mu.Unlock()
	if l.end.started || l.end.unrun {
		return l.end.unrun
	}
	l.end.unrun = true
	l.end.current.Store(int32(stageClosing))
	l.posts.close()
	l.table.closeAll(ErrClosed)
	l.releaseReserve()
	l.dialers.end(l.kernel)
	l.end.finished = true
	_ = l.poller.Close()
	close(l.end.done)
	return true
}

// stopDue tells that a Stop was asked for and has not begun: a visit that the bound does not end must end for
// it.
func (l *Loop) stopDue() bool { return l.end.stage() == stageStopping && !l.end.begun }

// beginStop tells the sources to finish, once, and keeps each grace that was given.
func (l *Loop) beginStop() {
	l.end.mu.Lock()
	grace := l.end.grace
	l.end.grace = 0
	l.end.mu.Unlock()
	if grace > 0 {
		l.AfterFunc(grace, func() { _ = l.Close() })
	}
	if l.end.begun {
		return
	}
	l.end.begun = true
	for _, s := range l.table.slots {
		if s.source != nil {
			s.source.stop()
		}
	}
	l.stopWatches()
}

// finish leaves nothing behind, whatever made Run end.
func (l *Loop) finish() {
	l.end.left = l.end.stage()
	l.end.request(stageClosing, byCall)
	l.posts.close()
	defer l.release()
	l.closeSources()
}

// closeSources closes every source and runs its last callbacks. One that panics, or ends the goroutine,
// does not cost the others theirs.
func (l *Loop) closeSources() {
	defer func() {
		if l.table.len() > 0 || l.turnEnd.waiting() {
			l.closeSources()
		}
	}()
	l.table.closeAll(ErrClosed)
	for l.turnEnd.waiting() {
		l.turnEnd.step()
	}
}

func (l *Loop) release() {
	l.releaseReserve()
	l.dialers.end(l.kernel)
	l.end.mu.Lock()
	l.end.finished = true
	_ = l.poller.Close()
	l.end.mu.Unlock()
	close(l.end.done)
}
