package weirtest

import (
	"errors"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
)

// watch is a kernel that remembers what is open, and that has had enough at some point.
type watch struct {
	sys.Kernel
	newPoller func() (poll.Poller, error)

	mu       sync.Mutex
	open     map[int]struct{}            // guarded by mu: descriptors
	pollers  map[*watchedPoller]struct{} // guarded by mu
	aborted  bool                        // guarded by mu
	waits    int                         // guarded by mu
	maxWaits int                         // set once; 0: any number
}

func newWatch(b poll.Backend) *watch {
	return &watch{
		Kernel: b.Kernel, newPoller: b.NewPoller,
		open: make(map[int]struct{}), pollers: make(map[*watchedPoller]struct{}),
	}
}

func (w *watch) backend() poll.Backend { return poll.Backend{Kernel: w, NewPoller: w.watchPoller} }

func (w *watch) Socket(f sys.Family, k sys.Kind) (int, error) {
	return w.opened(w.Kernel.Socket(f, k))
}

func (w *watch) Duplicate(fd int) (int, error) { return w.opened(w.Kernel.Duplicate(fd)) }

func (w *watch) Accept(fd int) (int, netip.AddrPort, error) {
	conn, peer, err := w.Kernel.Accept(fd)
	conn, err = w.opened(conn, err)
	return conn, peer, err
}

func (w *watch) ReadFiles(fd int, b []byte, f *sys.Files) (int, error) {
	n, err := w.Kernel.ReadFiles(fd, b, f)
	for _, file := range f.FDs {
		_, _ = w.opened(file, nil)
	}
	return n, err
}

func (w *watch) opened(fd int, err error) (int, error) {
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.open[fd] = struct{}{}
	}
	return fd, err
}

func (w *watch) Close(fd int) error {
	w.mu.Lock()
	delete(w.open, fd) // before, as the number may have another owner right after
	w.mu.Unlock()
	return w.Kernel.Close(fd)
}

func (w *watch) descriptors() []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.open))
}

// left is the number of descriptors and pollers that are open.
func (w *watch) left() (descriptors, pollers int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.open), len(w.pollers)
}

var (
	// errTooManyWaits ends a loop that would run for ever, also where the clock stands still meanwhile.
	errTooManyWaits = errors.New("weirtest: the loop asks its poller again and again")

	errAborted = errors.New("weirtest: given up")
)

func (w *watch) mayWait() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waits++
	switch {
	case w.aborted:
		return errAborted
	case w.maxWaits > 0 && w.waits > w.maxWaits:
		return errTooManyWaits
	}
	return nil
}

// abort ends the loops, if they are where that reaches them.
func (w *watch) abort() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.aborted = true
	for p := range w.pollers {
		_ = p.Poller.Wake()
	}
}

func (w *watch) watchPoller() (poll.Poller, error) {
	bare, err := w.newPoller()
	if err != nil {
		return nil, err
	}
	p := &watchedPoller{bare, w}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pollers[p] = struct{}{}
	return p, nil
}

type watchedPoller struct {
	poll.Poller
	w *watch
}

func (p *watchedPoller) Wait(events []poll.Event, timeout time.Duration) (int, error) {
	if err := p.w.mayWait(); err != nil {
		return 0, err
	}
	return p.Poller.Wait(events, timeout)
}

func (p *watchedPoller) Close() error {
	p.w.mu.Lock()
	delete(p.w.pollers, p) // before, as abort must not wake it any more
	p.w.mu.Unlock()
	return p.Poller.Close()
}
