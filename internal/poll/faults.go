package poll

import (
	"time"

	"github.com/weirnet/weir/fault"
	"github.com/weirnet/weir/internal/sys"
)

// WithFaults is b with the faults that in decides on, those of its kernel included; b itself where in is nil. A
// call with an errno is not made.
func WithFaults(b Backend, in *fault.Injector) Backend {
	if in == nil {
		return b
	}
	return Backend{
		Kernel: sys.WithFaults(b.Kernel, in),
		NewPoller: func() (Poller, error) {
			if a := sys.AskFaults(in, fault.Poller, -1); a.Errno != 0 {
				return nil, a.Errno
			}
			p, err := b.NewPoller()
			if err != nil {
				return nil, err
			}
			return &faulty{p: p, in: in}, nil
		},
	}
}

type faulty struct {
	p  Poller
	in *fault.Injector
}

func (f *faulty) Add(fd int, want Interest, token uint64) error {
	if a := sys.AskFaults(f.in, fault.Add, fd); a.Errno != 0 {
		return a.Errno
	}
	return f.p.Add(fd, want, token)
}

func (f *faulty) Modify(fd int, want Interest, token uint64) error {
	if a := sys.AskFaults(f.in, fault.Modify, fd); a.Errno != 0 {
		return a.Errno
	}
	return f.p.Modify(fd, want, token)
}

func (f *faulty) Remove(fd int) error {
	if a := sys.AskFaults(f.in, fault.Remove, fd); a.Errno != 0 {
		return a.Errno
	}
	return f.p.Remove(fd)
}

func (f *faulty) Wait(events []Event, timeout time.Duration) (int, error) {
	a := sys.AskFaults(f.in, fault.Wait, -1)
	if a.Errno != 0 {
		return 0, a.Errno
	}
	if a.Short > 0 && a.Short < len(events) {
		events = events[:a.Short]
	}
	return f.p.Wait(events, timeout)
}

func (f *faulty) Wake() error {
	if a := sys.AskFaults(f.in, fault.Wake, -1); a.Errno != 0 {
		return a.Errno
	}
	return f.p.Wake()
}

// Close is no call of a plan: nobody could do anything about its failure.
func (f *faulty) Close() error { return f.p.Close() }
