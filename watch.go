package weir

import (
	"fmt"
	"strconv"
	"syscall"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/share"
)

// Watch is a descriptor of the program's own that the loop waits for: a TUN device, netlink, inotify, a pipe.
type Watch struct {
	// Set once.
	loop    *Loop
	handler WatchHandler
	fd      int // borrowed
	token   uint64
	lane    share.Lane
	source  *share.Source

	// Loop only, as all that follows.
	paused   bool
	writing  bool          // OnWritable is wanted
	interest poll.Interest // what the poller was last told
	outside  bool          // of the poller
	seen     poll.Ready    // Readable and Writable, as far as a callback is to come for them
	stopping bool

	atTurnEnd bool
	closed    bool
	closeErr  error // once closed: why
	closeDue  bool  // OnClose has not run yet
}

// WatchHandler is what a Watch calls. Functions left nil do nothing, and without OnReadable nobody waits for
// something to read.
type WatchHandler struct {
	// OnReadable is called when there is something to read, an end or an error included. What it leaves is not
	// lost: it is called again. Now and then there is nothing, as somebody else may have read it.
	OnReadable func(w *Watch)

	// OnWritable is called when there is room to write, or writing would fail, as long as WantWritable asks for it.
	OnWritable func(w *Watch)

	// OnClose is the last call: nil after Close or Stop, ErrClosed when the loop ended, else what the poller
	// answered. From here on the descriptor may be closed.
	OnClose func(w *Watch, err error)
}

// Watch has the loop wait for a descriptor that somebody else opened, and call the handler when it is ready. The
// handler reads and writes it; it should be non-blocking, or the loop may hang in it.
//
// A watch is bounded by Share like a socket, whatever Config.Bound says: a descriptor that is always ready is served
// once a look at the poller, for as much time as others that are busy get. The loop cannot see what the handler
// reads, so one that does not take the end of a pipe for a reason to close or pause is called again and again, and
// keeps the loop busy.
//
// A Stop of the loop calls the handler once more for what is ready at that moment, resumed if it was paused, and
// then closes the watch: a handler that is to lose nothing then reads until EAGAIN.
//
//   - Owner: fd is borrowed. It stays the caller's to close, after Close.
//   - Errors: *OpError: EPERM for what is always ready (a regular file, a directory), EEXIST for a descriptor that the
//     loop watches already, EBADF, ENOSPC (fs.epoll.max_user_watches), ErrClosed.
//   - Source: epoll_ctl(2).
func (l *Loop) Watch(fd int, h WatchHandler) (*Watch, error) {
	w := &Watch{loop: l, handler: h, fd: fd}
	if l.end.stage() != stageRunning {
		return nil, w.opError("watch", ErrClosed)
	}
	if l.watches[fd] != nil {
		return nil, w.opError("watch", syscall.EEXIST)
	}
	w.token = l.table.add(w)
	w.interest = w.wanted()
	if err := l.poller.Add(fd, w.interest, w.token); err != nil {
		l.table.remove(w.token)
		return nil, w.opError("watch", err)
	}
	if l.watches == nil {
		l.watches = make(map[int]*Watch)
	}
	l.watches[fd] = w
	w.source = w.lane.NewSource(w)
	l.ring.Made(w.source)
	w.changed()
	return w, nil
}

// FD is the descriptor, also after Close.
func (w *Watch) FD() int { return w.fd }

// Pause ends the calls of OnReadable until Resume.
func (w *Watch) Pause() {
	w.paused = true
	w.changed()
}

// Resume goes on after Pause: what is there to read then has OnReadable called.
func (w *Watch) Resume() {
	w.paused = false
	w.changed()
}

// WantWritable says whether OnWritable is to be called while there is room to write. At first it is not: who finds
// no room (EAGAIN) asks for it, and asks no longer once all is written.
func (w *Watch) WantWritable(on bool) {
	w.writing = on
	w.changed()
}

// Close ends the watch; OnClose follows. The descriptor may be closed when Close returns.
//
//   - Errors: ErrClosed when it is closed already.
func (w *Watch) Close() error {
	if w.closed {
		return ErrClosed
	}
	w.close(nil)
	return nil
}

func (w *Watch) close(why error) {
	if w.closed {
		return
	}
	l := w.loop
	w.closed = true
	l.table.remove(w.token)
	l.ring.Remove(w.source)
	delete(l.watches, w.fd)
	if !w.outside {
		_ = l.poller.Remove(w.fd)
	}
	w.closeErr, w.closeDue = why, true
	l.turnEnd.add(w)
}

// stop has stopWatches see what is ready, for a last call of the handler.
func (w *Watch) stop() {
	w.stopping = true
	w.paused = false
	w.syncInterest()
}

// stopWatches closes those that have nothing ready when a Stop begins. A look at the poller tells of so many only.
func (l *Loop) stopWatches() {
	if len(l.watches) == 0 {
		return
	}
	for range 1 + l.table.len()/maxEvents {
		if l.collect(0) != nil {
			break // it fails again in this turn, which ends the loop
		}
	}
	for _, s := range l.table.slots {
		if w, ok := s.source.(*Watch); ok && w.seen == 0 {
			w.close(nil)
		}
	}
}

// ready is called with what the poller saw. An end or an error can be masked by no poller: reading and writing tell
// what it is.
func (w *Watch) ready(r poll.Ready) {
	if r&(poll.Failed|poll.HungUp) != 0 {
		r |= poll.Readable | poll.Writable
	}
	if w.seen |= r & readyFor(w.wanted()); w.seen != 0 {
		w.loop.becameReady(w.source)
	}
}

// wanted is what the handler wants to hear of now.
func (w *Watch) wanted() (want poll.Interest) {
	if w.handler.OnReadable != nil && !w.paused {
		want |= poll.Read
	}
	if w.handler.OnWritable != nil && w.writing {
		want |= poll.Write
	}
	return want
}

// due tells that the handler is to be called for a kind of readiness.
func (w *Watch) due(kind poll.Interest) bool {
	return !w.closed && w.wanted()&kind != 0 && w.seen&readyFor(kind) != 0
}

// readyFor is what a poller says of a descriptor of which that is wanted.
func readyFor(want poll.Interest) (r poll.Ready) {
	if want&poll.Read != 0 {
		r |= poll.Readable
	}
	if want&poll.Write != 0 {
		r |= poll.Writable
	}
	return r
}

// visit calls the handler once for each kind of readiness. Whether there is more, the poller says.
func (w *Watch) visit() (more bool) {
	l := w.loop
	w.call(poll.Read, w.handler.OnReadable)
	if w.due(poll.Write) && (!l.ring.Open() || l.end.stage() == stageClosing) {
		return true
	}
	w.call(poll.Write, w.handler.OnWritable)
	w.seen = 0
	if w.stopping {
		w.close(nil)
	}
	return false
}

func (w *Watch) call(kind poll.Interest, fn func(*Watch)) {
	if w.due(kind) {
		w.seen &^= readyFor(kind)
		fn(w)
		w.loop.charge(1)
	}
}

// changed puts what the watch asks of the poller in order at the end of the turn.
func (w *Watch) changed() {
	if !w.closed {
		w.loop.turnEnd.add(w)
	}
}

// endTurn tells the poller what changed, or runs OnClose.
func (w *Watch) endTurn() (more bool) {
	if !w.closed {
		w.syncInterest()
	}
	if w.closeDue {
		w.closeDue = false
		if w.handler.OnClose != nil {
			w.handler.OnClose(w, w.closeErr)
		}
	}
	return false
}

// syncInterest tells the poller what changed since it was last told. A watch that wants nothing leaves it: an end or
// an error would be reported again and again.
func (w *Watch) syncInterest() {
	p, want := w.loop.poller, w.wanted()
	var err error
	switch {
	case want == 0 && !w.outside:
		err = p.Remove(w.fd)
		w.outside, w.seen = err == nil, 0
	case want != 0 && w.outside:
		err = p.Add(w.fd, want, w.token)
		w.outside = err != nil
	case want != w.interest:
		err = p.Modify(w.fd, want, w.token)
	}
	w.interest = want
	if err != nil {
		w.close(w.opError("poll", err))
	}
}

func (w *Watch) inTurnEnd() *bool { return &w.atTurnEnd }
func (w *Watch) name() string     { return "fd " + strconv.Itoa(w.fd) }

func (w *Watch) opError(op string, err error) error {
	if err != ErrClosed {
		err = fmt.Errorf("descriptor %d: %w", w.fd, err)
	}
	return &OpError{Op: op, Net: "fd", Err: err}
}
