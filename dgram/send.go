package dgram

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weirnet/weir/internal/batch"
	"github.com/weirnet/weir/internal/sys"
)

// sending is the writing side. Nothing is queued: whoever writes makes the system call, beside others, with scratch from
// a pool (docs/adr/0020).
type sending struct {
	conn     *Conn
	singles  sync.Pool // of *sender that hold one message
	batches  sync.Pool // of *sender that hold batchMessages
	repairs  sync.Pool // of *repair
	deadline deadline
	mu       sync.Mutex
	blocked  int         // guarded by mu: writes that wait until the socket is writable
	paths    batch.Paths // guarded by mu
	blamed   atomic.Bool // paths knows of some
}

const batchMessages = 64

func (s *sending) init(c *Conn) {
	s.conn = c
	s.singles.New = func() any { return newSender(c, 1) }
	s.batches.New = func() any { return newSender(c, batchMessages) }
	s.repairs.New = func() any { return newRepair(c) }
}

// sender is what one write needs at a time.
type sender struct {
	conn     *Conn
	batch    *sys.SendBatch
	from, to int // messages of the batch to send
	sent     int
	err      error
	gathered []byte                // payloads that were in pieces
	call     func(fd uintptr)      // sendOnce, for the poller; made once, as a closure allocates
	wait     func(fd uintptr) bool // the same
}

func newSender(c *Conn, n int) *sender {
	return &sender{conn: c, batch: sys.NewSendBatch(n)}
}

// flush sends the first n messages. It ends at the first that the caller has to be told of, and tells how many were done
// with before.
func (s *sender) flush(n int) (done int, err error) {
	for done < n {
		if err := s.transmit(done, n); err != nil {
			return done, err
		}
		if s.err == nil {
			s.conn.counters.sentMessages(s.batch.Msgs[done : done+s.sent])
			done += s.sent
			continue
		}
		if err := s.conn.send.repair(&s.batch.Msgs[done], s.err); err != nil {
			return done, err
		}
		done++
	}
	return done, nil
}

// release drops what the messages pointed to.
func (s *sender) release(n int) {
	for i := range n {
		m := &s.batch.Msgs[i]
		m.Buf, m.Raw = nil, nil
	}
	s.gathered = s.gathered[:0]
}

func (s *sending) setDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline.set(t)
	if s.blocked > 0 {
		t = s.deadline.before(time.Now().Add(maxBlocked))
	}
	if err := s.conn.udp.SetWriteDeadline(t); err != nil {
		return s.conn.opError("set", nil, plain(err))
	}
	return nil
}

// maxBlocked is how long a write waits before it tries again, whatever the poller says: where EAGAIN did not mean the
// socket's buffer, nothing will make it writable.
const maxBlocked = 20 * time.Millisecond

// await calls send in the poller until it says that it was not blocked. An error is of the deadline or of Close.
func (s *sending) await(send func(fd uintptr) bool) error {
	for {
		s.mu.Lock()
		s.blocked++
		_ = s.conn.udp.SetWriteDeadline(s.deadline.before(time.Now().Add(maxBlocked)))
		s.mu.Unlock()

		err := s.conn.raw.Write(send)

		s.mu.Lock()
		s.blocked--
		if s.blocked == 0 {
			_ = s.conn.udp.SetWriteDeadline(s.deadline.time())
		}
		s.mu.Unlock()
		switch {
		case err == nil:
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded) && s.deadline.passed():
			return os.ErrDeadlineExceeded
		case errors.Is(err, net.ErrClosed):
			return net.ErrClosed
		}
	}
}

// usable tells why nothing may be sent.
func (s *sending) usable() error {
	switch {
	case s.conn.closed.Load():
		return net.ErrClosed
	case s.deadline.passed():
		return os.ErrDeadlineExceeded
	}
	return nil
}

// The most that a UDP datagram carries: 65,535 bytes less the UDP header and, over IPv4, the IP header.
const (
	maxPayload4 = 65_507
	maxPayload6 = 65_527
)

// address checks where a datagram of so many bytes goes; the zero AddrPort is the peer.
func (c *Conn) address(bytes int, to netip.AddrPort) (netip.AddrPort, error) {
	most := maxPayload6
	if c.family == sys.IPv4 || to.Addr().Unmap().Is4() {
		most = maxPayload4
	}
	switch {
	case c.peer != nil && to.IsValid():
		return to, net.ErrWriteToConnected
	case c.peer == nil && !to.Addr().IsValid():
		return to, errNoAddress
	case c.peer == nil && to.Port() == 0:
		return to, errNoPort
	case bytes > most:
		return to, os.NewSyscallError("sendmsg", syscall.EMSGSIZE)
	case c.peer != nil:
		return to, nil
	}
	if to.Addr() == netip.IPv6Unspecified() && c.family == sys.IPv4 {
		return netip.AddrPortFrom(netip.IPv4Unspecified(), to.Port()), nil
	}
	return c.destination(to)
}

var (
	errNoAddress error = &net.AddrError{Err: "missing address"}
	errNoPort    error = &net.AddrError{Err: "port 0"}
)
