package memsys

import (
	"syscall"
	"time"

	"github.com/weirnet/weir/internal/poll"
)

func (p *poller) Wait(events []poll.Event, timeout time.Duration) (int, error) {
	p.countWait(timeout)
	n, done, err := p.take(events)
	if done || timeout == 0 {
		return n, err
	}
	var expired <-chan time.Time
	if timeout > 0 {
		expired = p.after(timeout)
		defer p.timer.Stop()
	}
	for {
		select {
		case <-p.signal:
			if n, done, err := p.take(events); done {
				return n, err
			}
		case <-expired:
			n, _, err := p.take(events)
			return n, err
		}
	}
}

func (p *poller) countWait(timeout time.Duration) {
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	if timeout == 0 {
		p.net.calls.WaitNow++
	} else {
		p.net.calls.WaitBlocking++
	}
}

func (p *poller) after(timeout time.Duration) <-chan time.Time {
	if p.timer == nil {
		p.timer = time.NewTimer(timeout)
	} else {
		p.timer.Reset(timeout)
	}
	return p.timer.C
}

// take reports what is ready now, and whether that ends a Wait.
//
// Each that is reported goes to the end of the list, as it is ready until somebody finds it not to be;
// those that found no room are then in front.
func (p *poller) take(events []poll.Event) (n int, done bool, err error) {
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	switch {
	case p.closed:
		return 0, true, syscall.EBADF
	case len(events) == 0:
		return 0, true, syscall.EINVAL
	}
	for range p.ready.count {
		if n == len(events) {
			break
		}
		r := p.ready.pop()
		if ready := r.report(); ready != 0 {
			events[n] = poll.Event{Token: r.token, Ready: ready}
			n++
			p.ready.push(r)
		}
	}
	done = n > 0 || p.woken
	p.woken = false
	return n, done, nil
}
