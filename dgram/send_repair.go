package dgram

import (
	"net/netip"
	"os"
	"syscall"

	"github.com/weirnet/weir/internal/batch"
	"github.com/weirnet/weir/internal/sys"
)

// repair sends a datagram or train again that the kernel refused: the error may be that of an earlier datagram, of being
// a train, or of the traffic class. It is rare, so it copies, and does all that batch.Flush can.
type repair struct {
	conn    *Conn
	pool    batch.Pool
	queue   batch.Queue
	scratch *sys.SendBatch
	hooks   batch.Hooks
	tooBig  error // EMSGSIZE, of a datagram
	dead    error
	blocked bool
}

func newRepair(c *Conn) *repair {
	r := &repair{conn: c, scratch: sys.NewSendBatch(batchMessages)}
	r.queue = batch.NewQueue(&r.pool)
	r.hooks = batch.Hooks{
		Lost:           r.lost,
		Retry:          func() int { return 0 },
		Stale:          func(error) {},
		NoSegments:     r.noSegments,
		NoTrafficClass: func(*batch.Train, error) {},
	}
	return r
}

// repair is told what the first try was answered. What it returns the caller is to be told; all else is counted.
func (s *sending) repair(m *sys.Message, why error) error {
	if len(m.Raw) > 0 { // what goes with the datagram only the caller knows
		return s.giveUp(m, why)
	}
	s.conn.counters.answered(batch.SendClass(why, batch.Try{Offloaded: m.Control.Segment > 0 || m.Control.HasTrafficClass}))
	r := s.repairs.Get().(*repair)
	defer s.repairs.Put(r)
	r.queue.Push(m)
	return r.run()
}

// separate sends a train datagram by datagram.
func (s *sending) separate(m *sys.Message) error {
	r := s.repairs.Get().(*repair)
	defer s.repairs.Put(r)
	one, size := *m, int(m.Control.Segment)
	one.Control.Segment = 0
	for rest := m.Buf; len(rest) > 0; {
		one.Buf = rest[:min(size, len(rest))]
		rest = rest[len(one.Buf):]
		r.queue.Push(&one)
	}
	return r.run()
}

func (r *repair) run() error {
	defer r.queue.Clear()
	r.tooBig, r.dead = nil, nil
	if err := r.flush(); err != nil {
		return err
	}
	if r.dead != nil {
		return dead("sendmsg", r.dead)
	}
	return r.tooBig
}

func (r *repair) count(sent *batch.Sent) {
	r.conn.counters.countSent(sent)
	r.blocked = sent.Blocked
	if sent.Dead != nil {
		r.dead = sent.Dead
	}
}

func (r *repair) lost(_ *batch.Train, err error) {
	if err == syscall.EMSGSIZE {
		r.tooBig = os.NewSyscallError("sendmsg", err)
	}
}

// noSegments has later trains for that destination go out datagram by datagram.
func (r *repair) noSegments(t *batch.Train, why error) {
	r.conn.send.blame(t.Addr.Addr(), int(t.Control.Segment), why)
}

func (s *sending) blame(to netip.Addr, segment int, why error) {
	s.mu.Lock()
	s.paths.Blame(to, segment, batch.DeviceCannot(why))
	s.mu.Unlock()
	s.blamed.Store(true)
	s.conn.lost(&s.conn.lostPaths.gso, "gso", why)
}

// takesTrain tells whether the kernel segments for that destination, as far as is known.
func (s *sending) takesTrain(to netip.Addr, segment int) bool {
	if !s.conn.segments {
		return false
	}
	if !s.blamed.Load() {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return segment <= s.paths.Largest(to)
}

// giveUp counts a datagram as lost.
func (s *sending) giveUp(m *sys.Message, why error) error {
	class := batch.SendClass(why, batch.Try{Again: true})
	s.conn.counters.gaveUp(class, batch.Segments(len(m.Buf), m.Control.Segment))
	switch class {
	case batch.Size:
		return os.NewSyscallError("sendmsg", why)
	case batch.Dead:
		return dead("sendmsg", why)
	}
	return nil
}
