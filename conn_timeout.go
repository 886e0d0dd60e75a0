package weir

import (
	"fmt"
	"math"
	"os"
	"time"
)

// ErrTimeout is the reason when a time limit of a connection was over. It matches [os.ErrDeadlineExceeded]. It comes
// in an *OpError, whose Op tells the limit: "dial", "close", or the name of a [Timeout].
var ErrTimeout = fmt.Errorf("weir: %w", os.ErrDeadlineExceeded)

// Timeout is a time limit of a connection.
type Timeout uint8

const (
	// IdleTimeout is over when no byte has been read or written for so long.
	IdleTimeout Timeout = iota + 1

	// ReadTimeout is over when no byte has been read for so long, though the connection was not paused.
	ReadTimeout

	// WriteTimeout is over when the peer has taken nothing for so long of what waits for it.
	WriteTimeout

	// Deadline is over at a time that was set, once.
	Deadline
)

func (t Timeout) String() string {
	if t == 0 || t > Deadline {
		return fmt.Sprintf("timeout(%d)", uint8(t))
	}
	return [...]string{IdleTimeout: "idle", ReadTimeout: "read", WriteTimeout: "write", Deadline: "deadline"}[t]
}

// timing is the time limits of a connection that has some. A read or write only notes its time: the timer stands at
// the earliest that a limit could be over, and is set again when it finds that it is not. So traffic costs no work on
// the heap, and a limit that is never reached one look at each of its periods.
type timing struct {
	conn  *Conn
	timer *Timer

	limit    [Deadline]time.Duration // by Timeout less one; 0: none. Deadline's is a time on the loop's clock
	began    [Deadline]time.Duration // the limit alone, of itself: it was set, or was over
	closes   bool                    // Close waits, and has its own limit
	closing  time.Duration           // since when, for the flush or then for the peer
	lastRead time.Duration
	lastSent time.Duration // or when what is queued began to wait
}

func (t *timing) of(what Timeout) *time.Duration { return &t.limit[what-1] }

// startTiming begins the limits of a connection that is there.
func (c *Conn) startTiming() {
	l := c.limits
	if c.timing == nil && l.idle == 0 && l.read == 0 && l.write == 0 {
		return
	}
	t := c.needTiming()
	t.lastRead, t.lastSent = c.loop.now, c.loop.now
	t.arm()
}

// needTiming makes the time limits, with those of the configuration.
func (c *Conn) needTiming() *timing {
	if c.timing == nil {
		l := c.limits
		c.timing = &timing{conn: c, limit: [...]time.Duration{l.idle, l.read, l.write, 0},
			lastRead: c.loop.now, lastSent: c.loop.now}
	}
	return c.timing
}

// SetTimeout replaces a time limit of the configuration, and begins it now, or when the connection is there; zero or
// less is none. It panics for Deadline, which SetDeadline sets.
func (c *Conn) SetTimeout(what Timeout, d time.Duration) {
	if what == 0 || what >= Deadline {
		panic("weir: SetTimeout: " + what.String() + " is no time limit that begins again")
	}
	if c.state == connClosed || c.timing == nil && d <= 0 {
		return
	}
	t := c.needTiming()
	*t.of(what) = max(d, 0)
	t.begin(what)
	t.arm()
}

// SetDeadline sets a time at which the connection has to be over, also one that is dialled or closed; the zero Time is
// none.
func (c *Conn) SetDeadline(at time.Time) {
	if c.state == connClosed || c.timing == nil && at.IsZero() {
		return
	}
	t := c.needTiming()
	*t.of(Deadline) = 0
	if !at.IsZero() {
		*t.of(Deadline) = max(at.Sub(c.loop.start), 1)
	}
	t.arm()
}

// begin has a limit begin now, by the clock: a callback may have taken long.
func (t *timing) begin(what Timeout) { t.began[what-1] = t.conn.loop.clock() }

// touchRead notes that bytes were read, touchWrite that some were written, or begin to wait.
func (c *Conn) touchRead() {
	if c.timing != nil {
		c.timing.lastRead = c.loop.now
		c.timing.arm()
	}
}

func (c *Conn) touchWrite() {
	if c.timing != nil {
		c.timing.lastSent = c.loop.now
		c.timing.arm()
	}
}

const never = time.Duration(math.MaxInt64)

// due is when a limit is over, as things stand.
func (t *timing) due(what Timeout) time.Duration {
	d, c := *t.of(what), t.conn
	from := t.began[what-1]
	switch {
	case d == 0:
		return never
	case what == Deadline:
		return d
	case c.state == connDialling:
		return never
	case what == IdleTimeout:
		from = max(from, t.lastRead, t.lastSent)
	case what == ReadTimeout && c.reading():
		from = max(from, t.lastRead)
	case what == WriteTimeout && !c.out.Empty():
		from = max(from, t.lastSent)
	default:
		return never
	}
	return from + min(d, never-from)
}

// next is the limit that is over first, 0 for that of Close.
func (t *timing) next() (what Timeout, when time.Duration) {
	when = never
	first := IdleTimeout
	if t.closes { // what the peer takes proves that it is there
		from := max(t.closing, t.lastSent)
		first, when = Deadline, from+min(t.conn.limits.closeTimeout, never-from)
	}
	for w := first; w <= Deadline; w++ {
		if due := t.due(w); due < when {
			what, when = w, due
		}
	}
	return what, when
}

// arm sets the timer where it stands too late, or not at all.
func (t *timing) arm() {
	_, when := t.next()
	switch {
	case when == never, t.conn.state == connClosed:
	case t.timer == nil:
		t.timer = t.conn.loop.AfterFunc(0, t.fire)
		t.timer.resetAt(when)
	case t.timer.index < 0 || t.timer.when > when:
		t.timer.resetAt(when)
	}
}

// fire sees which limit is over, if any.
func (t *timing) fire() {
	c := t.conn
	what, when := t.next()
	switch {
	case c.state == connClosed:
		return
	case when > c.loop.now:
		t.arm()
		return
	}
	c.loop.stats.streams.timeouts.Add(1)
	if what == 0 {
		c.abort(c.opError("close", ErrTimeout))
		return
	}
	if what == Deadline {
		*t.of(Deadline) = 0
	}
	t.begin(what)
	switch {
	case c.state == connDialling:
		c.dialFailed(ErrTimeout)
		return
	case c.handler.OnTimeout == nil || c.state != connOpen:
		c.abort(c.opError(what.String(), ErrTimeout))
		return
	}
	c.handler.OnTimeout(c, what)
	t.arm()
}

// limitClose begins the time that Close has, for the flush or then for the peer.
func (c *Conn) limitClose() {
	if c.limits.closeTimeout == 0 {
		return
	}
	t := c.needTiming()
	t.closes, t.closing = true, c.loop.clock()
	t.arm()
}

func (c *Conn) stopTiming() {
	if c.timing != nil && c.timing.timer != nil {
		c.timing.timer.Stop()
	}
}
