package batch

import (
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

// Sent is what a flush did.
type Sent struct {
	Calls     int // of the kernel
	Datagrams int
	Bytes     int
	Joined    int          // datagrams that the kernel took as part of a train
	Failed    [classes]int // datagrams that it refused, by the class of the error
	Answers   [classes]int // errors of calls, by class
	Blocked   bool         // the kernel takes no more now; wait until the socket is writable
	Dead      error        // the descriptor is no socket any more; what is queued cannot be sent
}

// Refused is the number of datagrams that are gone without having been sent.
func (s *Sent) Refused() (n int) {
	for _, f := range s.Failed {
		n += f
	}
	return n
}

// Hooks hear of what a flush could not do. They must not touch the queue.
type Hooks struct {
	// Lost hears of a datagram or train that the kernel refused, which is gone.
	Lost func(*Train, error)

	// Retry is called before a datagram is tried again whose first try was answered by what may be the
	// error of an earlier one: it is the moment to empty the error queue.
	Retry func()

	// Stale hears of an error that was an earlier datagram's. Nothing is gone now.
	Stale func(error)

	// NoSegments and NoTrafficClass hear that datagrams passed without what they name, and not with it.
	NoSegments     func(*Train, error)
	NoTrafficClass func(*Train, error)
}

// Sender is the part of a kernel that sends.
type Sender interface {
	Send(fd int, b *sys.SendBatch, from, to int) (sent int, err error)
}

// Flush sends what q holds, until it is empty or the kernel takes no more. A datagram that the kernel
// refuses costs only itself: those behind it go out. So does a train, unless its datagrams pass one by one.
//
//   - Owner: scratch is the caller's and is overwritten.
func Flush(k Sender, fd int, scratch *sys.SendBatch, q *Queue, h *Hooks) Sent {
	f := flush{kernel: k, fd: fd, b: scratch, q: q, hooks: h}
	for q.Trains() > 0 && f.pass(f.wholeTrains()) {
		if f.offload != nil && !f.withoutOffload() {
			break
		}
	}
	return f.Sent
}

// flush is a Flush in progress.
type flush struct {
	Sent
	kernel  Sender
	fd      int
	b       *sys.SendBatch
	q       *Queue
	hooks   *Hooks
	offload error // why the first train is to be tried without what it asks of the kernel
}

// wholeTrains puts as many trains into the batch as fit, as they are queued, and returns their number.
func (f *flush) wholeTrains() int {
	n := min(f.q.Trains(), len(f.b.Msgs))
	for i := range n {
		t := f.q.At(i)
		m := &f.b.Msgs[i]
		m.Buf, m.Addr, m.Control = t.Payload, t.Addr, t.Control
	}
	return n
}

// singles puts the datagrams of the first train into the batch, each on its own.
func (f *flush) singles(trafficClass bool) int {
	t := f.q.At(0)
	n := min(t.Len(), len(f.b.Msgs))
	segment, control := int(t.Control.Segment), t.Control
	control.Segment = 0
	if !trafficClass {
		control.TrafficClass, control.HasTrafficClass = 0, false
	}
	rest := t.Payload
	for i := range n {
		m := &f.b.Msgs[i]
		size := len(rest)
		if segment > 0 {
			size = min(segment, size)
		}
		m.Buf, m.Addr, m.Control = rest[:size], t.Addr, control
		rest = rest[size:]
	}
	return n
}

// pass sends the first n messages of the batch, which are those at the head of the queue, and tells whether
// the flush is to go on. It ends early, with f.offload set, before one that may pass in another form.
func (f *flush) pass(n int) bool {
	var stale error // what the first try at the next message was answered
	for from := 0; from < n; {
		sent, err := f.kernel.Send(f.fd, f.b, from, n)
		f.Calls++
		m := &f.b.Msgs[from]
		class := Class(0)
		if err != nil {
			class = SendClass(err, Try{Again: stale != nil, Offloaded: m.Control.Segment > 0 || m.Control.HasTrafficClass})
			f.Answers[class]++
		}
		if class == Stale {
			stale = err
			f.hooks.Retry()
			continue
		}
		if stale != nil && err != stale {
			f.hooks.Stale(stale)
		}
		stale = nil
		switch class {
		case 0:
			for i := range sent {
				f.sent(&f.b.Msgs[from+i])
			}
			from += sent
		case Wait:
			f.Blocked = true
			return false
		case Dead:
			f.Dead = err
			return false
		case Offload:
			f.offload = err
			return true
		default:
			f.lost(m, class, err)
			from++
		}
	}
	return true
}

func (f *flush) sent(m *sys.Message) {
	n := Segments(len(m.Buf), m.Control.Segment)
	f.Datagrams += n
	f.Bytes += len(m.Buf)
	if m.Control.Segment > 0 {
		f.Joined += n
	}
	f.q.Drop(n)
}

func (f *flush) lost(m *sys.Message, class Class, err error) {
	n := Segments(len(m.Buf), m.Control.Segment)
	f.Failed[class] += n
	f.hooks.Lost(&Train{Payload: m.Buf, Addr: m.Addr, Control: m.Control}, err)
	f.q.Drop(n)
}

// withoutOffload sends the first train datagram by datagram, and if the kernel does not like that either,
// without the traffic class. What made the difference is to blame.
func (f *flush) withoutOffload() bool {
	first := *f.q.At(0)
	left := f.q.Len() - first.Len()
	for step := range 2 {
		trafficClass := step == 0
		if trafficClass && first.Control.Segment == 0 {
			continue
		}
		why, before := f.offload, f.Datagrams
		f.offload = nil
		ok := true
		for ok && f.offload == nil && f.q.Len() > left {
			ok = f.passSingles(trafficClass, left)
		}
		if f.Datagrams > before {
			f.blame(&first, trafficClass, why)
		}
		if !ok || f.offload == nil {
			return ok
		}
	}
	return true
}

func (f *flush) passSingles(trafficClass bool, left int) bool {
	return f.pass(min(f.singles(trafficClass), f.q.Len()-left))
}

func (f *flush) blame(t *Train, segments bool, why error) {
	if segments {
		f.hooks.NoSegments(t, why)
	} else {
		f.hooks.NoTrafficClass(t, why)
	}
}

// DeviceCannot tells that an Offload error is the device's answer to a train of any size.
func DeviceCannot(err error) bool { return err == syscall.EIO }
