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

// Hooks hear of what a flush could not do. All must be set. They must not touch the queue.
type Hooks struct {
	// Lost hears of a datagram or train that the kernel refused, which is gone.
	Lost func(*Train, error)

	// Retry is called before a datagram is tried again whose first try was answered by what may be the
	// error of an earlier one: it is the moment to empty the error queue. It returns how many reports were there.
	Retry func() (reports int)

	// Stale hears of an error that was an earlier datagram's. Nothing is gone now.
	Stale func(error)

	// NoSegments hears of a train that the kernel refused, with that error, where a datagram of the same size
	// passed on its own. The train is gone: its Payload is not to be read.
	NoSegments func(*Train, error)

	// NoTrafficClass hears of a datagram that passes without its traffic class, and did not with it.
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
		if f.refused != nil && !f.unjoin() {
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
	refused error // why the first train is to go out datagram by datagram
	bare    int   // bytes that passed only without their traffic class
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

// singles puts the datagrams of the first train into the batch, each on its own, and returns their number.
func (f *flush) singles() int {
	t := f.q.At(0)
	n := min(t.Len(), len(f.b.Msgs))
	rest := *t
	for i := range n {
		m := &f.b.Msgs[i]
		m.Buf, m.Addr, m.Control = rest.First(), t.Addr, t.Control
		m.Control.Segment = 0
		rest.Payload = rest.Payload[len(m.Buf):]
	}
	return n
}

// maxTries is how often a datagram is tried at most that is answered by the errors of others.
const maxTries = 8

// pass sends the first n messages of the batch, which are those at the head of the queue, and tells whether
// the flush is to go on. It ends early, with f.refused set, before a train that may pass datagram by datagram.
func (f *flush) pass(n int) bool {
	var (
		stale error // what the first try at the next message was answered
		again bool  // what it is answered now is its own
		tries int
		bare  error // what it was answered when it still had its traffic class
	)
	for from := 0; from < n; {
		sent, err := f.kernel.Send(f.fd, f.b, from, n)
		f.Calls++
		m := &f.b.Msgs[from]
		class := Class(0)
		if err != nil {
			class = SendClass(err, Try{Again: again, Offloaded: m.Control.Segment > 0 || m.Control.HasTrafficClass})
			f.Answers[class]++
		}
		if class == Stale {
			// While reports come in, the next answer may be that of another.
			tries++
			stale, again = err, f.hooks.Retry() == 0 || tries == maxTries
			continue
		}
		if stale != nil && err != stale {
			f.hooks.Stale(stale)
		}
		stale, again, tries = nil, false, 0
		switch class {
		case 0:
			if bare != nil {
				f.bare += len(m.Buf)
				f.hooks.NoTrafficClass(asTrain(m), bare)
			}
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
			if m.Control.Segment > 0 {
				f.refused = err
				return true
			}
			bare = err
			m.Control.TrafficClass, m.Control.HasTrafficClass = 0, false
			continue
		default:
			f.lost(m, class, err)
			from++
		}
		bare = nil
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
	f.hooks.Lost(asTrain(m), err)
	f.q.Drop(n)
}

func asTrain(m *sys.Message) *Train {
	return &Train{Payload: m.Buf, Addr: m.Addr, Control: m.Control}
}

// unjoin sends the first train datagram by datagram. If one that is no shorter than its segments passes as it
// is, being in a train was what the others failed of.
func (f *flush) unjoin() bool {
	t, why := *f.q.At(0), f.refused
	f.refused = nil
	left, passed := f.q.Len()-t.Len(), f.Bytes-f.bare
	ok := true
	for ok && f.q.Len() > left {
		ok = f.pass(f.singles())
	}
	if f.Bytes-f.bare-passed >= int(t.Control.Segment) {
		f.hooks.NoSegments(&t, why)
	}
	return ok
}

// DeviceCannot tells that an Offload error is the device's answer to a train of any size.
func DeviceCannot(err error) bool { return err == syscall.EIO }
