package dgram

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirnet/weir/internal/batch"
	"github.com/weirnet/weir/internal/sock"
	"github.com/weirnet/weir/internal/sys"
)

// Slots of a Conn, of which there are few until they are full once. With GRO one holds up to 64 datagrams. Memory that no
// datagram was written to is never touched, so that what is resident follows the traffic.
const (
	slotBytes        = 64 << 10
	firstSlots       = 2
	maxJoinedSlots   = 8
	maxSeparateSlots = 16
)

// receiver is the reading side: slots that one system call fills, out of which any goroutine takes datagrams.
type receiver struct {
	conn *Conn

	mu       sync.Mutex     // held while the socket is waited for, too: whoever comes later waits for it
	batch    *sys.RecvBatch // guarded by mu, as all below it up to began; nil until the first read
	got      int            // messages in the slots
	next     int            // the first of them that is not handed out in full
	rest     []byte         // what is left of that one
	names    names
	fill     func(fd uintptr) bool // one receive call, for the poller; made once, as a closure allocates
	filled   int
	fillErr  error
	failures int       // receives that failed since one did not
	unwaited int       // receives since one that waited
	began    time.Time // the second of those, or after others had a turn
	now      func() time.Time
	gosched  func()

	joined     atomic.Bool // the kernel may join datagrams (GRO)
	deadline   deadline
	deadlineMu sync.Mutex    // held while one is set, here and in the runtime's poller
	poke       chan struct{} // ends a rest
}

func (r *receiver) init(c *Conn) {
	r.conn = c
	r.poke = make(chan struct{}, 1)
	r.now, r.gosched = time.Now, runtime.Gosched
}

// datagram is one that was received; it points into the slots. One that was joined to others has all of their control
// messages.
type datagram struct {
	payload []byte
	message *sys.Message
}

func (d *datagram) from() netip.AddrPort { return sock.Unmap(d.message.Addr) }

// take hands out the next datagram, and waits for it. The caller holds mu while it uses it.
func (r *receiver) take() (datagram, error) {
	for {
		if err := r.usable(); err != nil {
			return datagram{}, err
		}
		if d, ok := r.more(); ok {
			return d, nil
		}
		if err := r.receive(); err != nil {
			return datagram{}, err
		}
	}
}

// usable tells why nothing may be read, whatever is there.
func (r *receiver) usable() error {
	switch {
	case r.conn.closed.Load():
		return r.conn.opError("read", nil, net.ErrClosed)
	case r.deadline.passed():
		return r.conn.opError("read", nil, os.ErrDeadlineExceeded)
	}
	return nil
}

// more hands out a datagram that is there already.
func (r *receiver) more() (d datagram, ok bool) {
	pass, refused := r.conn.filter.Load(), 0
	for !ok && r.pending() {
		d = r.pop()
		if ok = pass == nil || (*pass)(d.payload, d.from()); !ok {
			refused++
		}
	}
	if refused > 0 {
		r.took(refused)
		r.conn.counters.filtered.Add(uint64(refused))
	}
	return d, ok
}

func (r *receiver) pending() bool { return r.next < r.got }

func (r *receiver) pop() datagram {
	m := &r.batch.Msgs[r.next]
	d := datagram{r.rest, m}
	if segment := int(m.Control.Segment); segment > 0 && segment < len(r.rest) {
		d.payload, r.rest = r.rest[:segment:segment], r.rest[segment:]
		return d
	}
	r.next++
	if r.pending() {
		r.rest = r.batch.Msgs[r.next].Buf
	}
	return d
}

// took notes that n datagrams were handed out.
func (r *receiver) took(n int) { r.conn.counters.undelivered.Add(int64(-n)) }

// arrived notes that the slots hold n messages now.
func (r *receiver) arrived(n int) {
	datagrams, bytes, joined := 0, 0, 0
	for i := range n {
		m := &r.batch.Msgs[i]
		k := batch.Segments(len(m.Buf), m.Control.Segment)
		datagrams += k
		bytes += len(m.Buf)
		if k > 1 {
			joined += k
		}
	}
	r.got, r.next, r.rest, r.failures = n, 0, r.batch.Msgs[0].Buf, 0
	r.conn.counters.arrived(datagrams, bytes, joined)
}

// failed is told of a receive that failed, and rests where that goes on. What it returns is final.
func (r *receiver) failed(err error) error {
	c := r.conn
	c.counters.recvErrors.Add(1)
	class := batch.RecvClass(err)
	if class == batch.Dead {
		return c.opError("read", nil, dead("recvmmsg", err))
	}
	r.failures++
	if r.failures > quietFailures {
		r.pause(restFor(r.failures-quietFailures, class))
	}
	return nil
}

// quietFailures is how many receives in a row may fail before there is a rest: an error of an earlier datagram is
// answered once, and no more come in than were sent.
const quietFailures = 8

// restFor is 10 ms, and twice as long each time up to a second, or to 20 ms where ICMP may be behind it: no error may
// spin, nor keep a socket from what it receives.
func restFor(failures int, class batch.Class) time.Duration {
	d := 10 * time.Millisecond << min(failures-1, 7)
	if class == batch.Stale {
		return min(d, 20*time.Millisecond)
	}
	return min(d, time.Second)
}

// pause waits, or until a deadline is set or the Conn closed.
func (r *receiver) pause(d time.Duration) {
	t := time.NewTimer(time.Until(r.deadline.before(time.Now().Add(d))))
	defer t.Stop()
	select {
	case <-t.C:
	case <-r.poke:
	}
}

// wake ends a pause.
func (r *receiver) wake() {
	select {
	case r.poke <- struct{}{}:
	default:
	}
}

func (r *receiver) setDeadline(t time.Time) error {
	r.deadlineMu.Lock()
	defer r.deadlineMu.Unlock()
	r.deadline.set(t)
	r.wake()
	if err := r.conn.udp.SetReadDeadline(t); err != nil {
		return r.conn.opError("set", nil, plain(err))
	}
	return nil
}

// discard counts what nobody took, once closed.
func (r *receiver) discard() {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.conn.counters.undelivered.Swap(0)
	r.conn.counters.discarded.Add(uint64(n))
	r.batch, r.got, r.next, r.rest = nil, 0, 0, nil
}

// makeSlots makes them at the first read, and twice as many when they were too few.
func (r *receiver) makeSlots() {
	switch {
	case r.batch == nil && r.conn.shared:
		r.batch = sys.NewRecvBatch(1, slotBytes)
	case r.batch == nil:
		r.batch = sys.NewRecvBatch(firstSlots, slotBytes)
	case r.got == len(r.batch.Msgs) && r.got < r.maxSlots():
		r.batch = sys.NewRecvBatch(2*r.got, slotBytes)
	}
	r.got, r.next = 0, 0
}

func (r *receiver) maxSlots() int {
	switch {
	case r.conn.shared:
		return 1
	case r.joined.Load():
		return maxJoinedSlots
	default:
		return maxSeparateSlots
	}
}

// plain is an error of package net without its operation and addresses.
func plain(err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return os.ErrDeadlineExceeded
	case errors.Is(err, net.ErrClosed):
		return net.ErrClosed
	}
	return err
}

// dead is the error of a descriptor that is no socket any more. It matches net.ErrClosed.
func dead(call string, err error) error {
	return fmt.Errorf("%w: %w", net.ErrClosed, os.NewSyscallError(call, err))
}
