package weir

import (
	"fmt"
	"math"
	"os"
	"time"
)

// ErrTimeout is the reason when a time limit of a connection was over. It matches [os.ErrDeadlineExceeded].
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
	closeBy  time.Duration           // when Close gives up; 0: never
	lastRead time.Duration
	lastSent time.Duration // or when what is queued began to wait
}

func (t *timing) of(what Timeout) *time.Duration { return &t.limit[what-1] }

// startTiming begins the limits that the configuration gives.
func (c *Conn) startTiming() {
	l := c.limits
	if l.idle == 0 && l.read == 0 && l.write == 0 {
		return
	}
	t := c.needTiming()
	*t.of(IdleTimeout), *t.of(ReadTimeout), *t.of(WriteTimeout) = l.idle, l.read, l.write
	t.arm()
}

func (c *Conn) needTiming() *timing {
	if c.timing == nil {
		c.timing = &timing{conn: c, lastRead: c.loop.now, lastSent: c.loop.now}
	}
	return c.timing
}

// SetTimeout replaces a time limit of the configuration, and begins it now; zero or less is none. It panics for
// Deadline, which SetDeadline sets.
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

// SetDeadline sets a time at which the connection has to be over; the zero Time is none.
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

// begin has a limit begin now.
func (t *timing) begin(what Timeout) {
	now := t.conn.loop.now
	switch what {
	case IdleTimeout:
		t.lastRead, t.lastSent = now, now
	case ReadTimeout:
		t.lastRead = now
	case WriteTimeout:
		t.lastSent = now
	}
}

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
	d := *t.of(what)
	switch {
	case d == 0:
		return never
	case what == Deadline:
		return d
	case what == IdleTimeout:
		return max(t.lastRead, t.lastSent) + d
	case what == ReadTimeout && t.conn.reading():
		return t.lastRead + d
	case what == WriteTimeout && !t.conn.out.Empty():
		return t.lastSent + d
	}
	return never
}

// next is the limit that is over first, 0 for that of Close.
func (t *timing) next() (what Timeout, when time.Duration) {
	when = never
	if t.closeBy != 0 {
		return 0, t.closeBy
	}
	for w := IdleTimeout; w <= Deadline; w++ {
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
	if c.handler.OnTimeout == nil || c.state != connOpen {
		c.abort(c.opError(what.String(), ErrTimeout))
		return
	}
	c.handler.OnTimeout(c, what)
	t.arm()
}

// limitClose begins the time that Close has.
func (c *Conn) limitClose() {
	if c.limits.closeTimeout == 0 {
		return
	}
	t := c.needTiming()
	t.closeBy = c.loop.after(c.limits.closeTimeout)
	t.arm()
}

func (c *Conn) stopTiming() {
	if c.timing != nil && c.timing.timer != nil {
		c.timing.timer.Stop()
	}
}
