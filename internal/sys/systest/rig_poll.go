package systest

import (
	"time"

	"github.com/weirnet/weir/internal/poll"
)

func (r *rig) poller() poll.Poller {
	r.Helper()
	p, err := r.NewPoller()
	r.must(err)
	r.Cleanup(func() { _ = p.Close() })
	return p
}

// await waits until fd is ready in all the ways asked for.
func (r *rig) await(fd int, ready poll.Ready) {
	r.Helper()
	p, err := r.NewPoller()
	r.must(err)
	defer p.Close()
	r.must(p.Add(fd, poll.Interest(ready)&(poll.Read|poll.Write), 1))
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		for _, e := range r.wait(p, 1, time.Until(deadline)) {
			if e.Ready&ready == ready {
				return
			}
		}
	}
	r.Fatalf("descriptor %d never became ready for %v", fd, ready)
}

// wait is Wait with room for that many events.
func (r *rig) wait(p poll.Poller, room int, timeout time.Duration) []poll.Event {
	r.Helper()
	events := make([]poll.Event, room)
	n, err := p.Wait(events, timeout)
	r.must(err)
	return events[:n]
}

// waitOne is a Wait that must bring exactly one event.
func (r *rig) waitOne(p poll.Poller) poll.Event {
	r.Helper()
	events := r.wait(p, 8, patience)
	if len(events) != 1 {
		r.Fatalf("got events %v, want one", events)
	}
	return events[0]
}

// quiet asserts that there is nothing to report.
func (r *rig) quiet(p poll.Poller) {
	r.Helper()
	if events := r.wait(p, 8, 0); len(events) != 0 {
		r.Fatalf("got events %v, want none", events)
	}
}

// tokens are the tokens of events, in order.
func tokens(events []poll.Event) (list []uint64) {
	for _, e := range events {
		list = append(list, e.Token)
	}
	return list
}
