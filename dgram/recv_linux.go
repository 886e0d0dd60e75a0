//go:build linux

package dgram

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/weirnet/weir/internal/sys"
)

// receive fills the slots, and waits until it can. An error is final; without one the slots may be empty still.
func (r *receiver) receive() error {
	r.yield()
	r.makeSlots()
	if r.fill == nil {
		r.fill = r.receiveOnce
	}
	err := r.conn.raw.Read(r.fill)
	r.conn.tellUnbatched()
	switch {
	case err == nil && r.fillErr != nil:
		return r.failed(r.fillErr)
	case err == nil:
		r.arrived(r.filled)
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, net.ErrClosed):
		return r.conn.opError("read", nil, plain(err))
	}
	// An event that tells of an error alone makes the runtime's poller refuse to wait (ErrNotPollable), until the next
	// event. That error is ICMP's, and to be taken from the socket; there is nothing to try before a rest, and a peer
	// could make that a long one.
	_ = control(r.conn.raw, func(fd int) error {
		_, err := r.conn.kernel.GetOption(fd, sys.SocketError)
		return err
	})
	r.failures = max(r.failures, quietFailures)
	return r.failed(syscall.ECONNREFUSED)
}

// receiveOnce is one receive call; false: there is nothing.
func (r *receiver) receiveOnce(fd uintptr) bool {
	c := r.conn
	r.filled, r.fillErr = c.kernel.Recv(int(fd), r.batch, len(r.batch.Msgs))
	c.counters.recvCalls.Add(1)
	if r.fillErr == syscall.EAGAIN {
		r.unwaited = 0
		return false
	}
	return true
}

// maxRun is how long a goroutine that reads finds something each time before others have a turn. It is MaxShare of a loop;
// the runtime alone would let it run for 10 ms, and again as long before a loop in the same process is looked at.
const maxRun = 2 * time.Millisecond

// yield lets other goroutines run, where reading has gone on for too long.
func (r *receiver) yield() {
	r.unwaited++
	switch {
	case r.unwaited < 2: // as most often: it does not pay for a look at the clock
	case r.unwaited == 2:
		r.began = r.now()
	case r.now().Sub(r.began) >= maxRun:
		r.gosched()
		r.began = r.now()
	}
}
