package memsys

import (
	"slices"
	"syscall"
	"time"

	"github.com/weirnet/weir/internal/poll"
)

// poller is one readiness queue. Its ready list holds the registrations that may have something to
// report, so that a Wait costs what is ready, not what is registered.
type poller struct {
	net    *Net
	regs   map[regKey]*registration
	ready  readyList
	woken  bool
	closed bool
	signal chan struct{} // a hint, at most one: look at ready and woken again
	timer  *time.Timer   // Wait's, kept for the next
}

// regKey is a descriptor as epoll sees it: its number may be another socket's by now.
type regKey struct {
	socket *socket
	fd     int
}

var _ poll.Poller = (*poller)(nil)

func (n *Net) newPoller() (poll.Poller, error) {
	return &poller{net: n, regs: make(map[regKey]*registration), signal: make(chan struct{}, 1)}, nil
}

func (p *poller) Add(fd int, want poll.Interest, token uint64) error {
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	p.net.calls.Add++
	s, err := p.socket(fd)
	if err != nil {
		return err
	}
	key := regKey{s, fd}
	if p.regs[key] != nil {
		return syscall.EEXIST
	}
	r := &registration{poller: p, regKey: key, want: want, token: token}
	p.regs[key] = r
	s.regs = append(s.regs, r)
	r.update()
	return nil
}

func (p *poller) Modify(fd int, want poll.Interest, token uint64) error {
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	p.net.calls.Modify++
	r, err := p.registration(fd)
	if err != nil {
		return err
	}
	r.want, r.token = want, token
	r.update()
	return nil
}

func (p *poller) Remove(fd int) error {
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	p.net.calls.Remove++
	r, err := p.registration(fd)
	if err != nil {
		return err
	}
	r.end()
	return nil
}

func (p *poller) socket(fd int) (*socket, error) {
	if p.closed {
		return nil, syscall.EBADF
	}
	return p.net.socket(fd)
}

func (p *poller) registration(fd int) (*registration, error) {
	s, err := p.socket(fd)
	if err != nil {
		return nil, err
	}
	if r := p.regs[regKey{s, fd}]; r != nil {
		return r, nil
	}
	return nil, syscall.ENOENT
}

func (p *poller) Wake() error {
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	p.net.calls.Wake++
	if p.closed {
		return syscall.EBADF
	}
	p.woken = true
	p.hint()
	return nil
}

func (p *poller) hint() {
	select {
	case p.signal <- struct{}{}:
	default:
	}
}

func (p *poller) Close() error {
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	if p.closed {
		return syscall.EBADF
	}
	p.closed = true
	for _, r := range p.regs {
		r.end()
	}
	return nil
}

// registration is one descriptor in one poller.
type registration struct {
	poller *poller
	regKey
	want  poll.Interest
	token uint64

	listed     bool // in the poller's ready list
	prev, next *registration
}

// update lists the registration if it has something to report.
func (r *registration) update() {
	if r.listed || r.report() == 0 {
		return
	}
	r.poller.ready.push(r)
	r.poller.hint()
}

// report is the part of the socket's readiness that is wanted or cannot be masked.
func (r *registration) report() poll.Ready {
	mask := poll.Failed | poll.HungUp
	if r.want&poll.Read != 0 {
		mask |= poll.Readable
	}
	if r.want&poll.Write != 0 {
		mask |= poll.Writable
	}
	return r.socket.readiness() & mask
}

func (r *registration) end() {
	if r.listed {
		r.poller.ready.remove(r)
	}
	delete(r.poller.regs, r.regKey)
	r.socket.regs = slices.DeleteFunc(r.socket.regs, func(x *registration) bool { return x == r })
}
