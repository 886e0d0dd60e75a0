package weirhttp

import (
	"context"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// quicConn is what is known about a connection of QUIC, from its first datagram on.
type quicConn struct {
	core      *core
	admission *admission

	mu     sync.Mutex
	conn   *quic.Conn  // guarded by mu; nil until the handshake is over
	over   bool        // guarded by mu; by gone
	closed func()      // guarded by mu; of counters.opened
	idle   *time.Timer // guarded by mu; nil: none
	since  time.Time   // guarded by mu; idle counts from here
	active int         // guarded by mu; handlers at work
	ended  uint64      // guarded by mu; handlers that were
	grown  uint64      // guarded by mu; of the receive window

	quiet quiet // of drain
}

type quicConnKey struct{}

// quicConnOf is the connection of a context, nil where it is not one of QUIC.
func quicConnOf(ctx context.Context) *quicConn {
	c, _ := ctx.Value(quicConnKey{}).(*quicConn)
	return c
}

// accepted tells that the handshake is over. It returns false where the connection is over, too.
func (c *quicConn) accepted(conn *quic.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return false
	}
	c.conn = conn
	c.admission.shaken(true)
	c.closed = c.core.counts.opened(kindHTTP3)
	if d := c.core.idleTimeout; d > 0 {
		c.since = time.Now()
		c.idle = time.AfterFunc(d, c.timeOut)
	}
	return true
}

// gone tells that the connection is over, and returns it, or nil where it never came out of its handshake.
func (c *quicConn) gone() *quic.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	c.admission.shaken(false)
	c.admission.leave()
	if c.closed != nil {
		c.closed()
	}
	if c.idle != nil {
		c.idle.Stop()
	}
	c.core.windows.give(c.admission.key, c.grown)
	return c.conn
}

// begin tells that a handler begins, finish that it is over.
func (c *quicConn) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.active++
	if c.idle != nil {
		c.idle.Stop()
	}
}

func (c *quicConn) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.active--
	c.ended++
	if c.idle != nil && c.active == 0 && !c.over {
		c.since = time.Now()
		c.idle.Reset(c.core.idleTimeout)
	}
}

// timeOut closes a connection on which no handler has been at work for too long, whatever its client sends meanwhile.
func (c *quicConn) timeOut() {
	c.mu.Lock()
	busy := c.active > 0 || time.Since(c.since) < c.core.idleTimeout // idle had fired, and was set anew
	c.mu.Unlock()
	if !busy {
		c.close()
	}
}

// close returns when the client was told.
func (c *quicConn) close() {
	c.mu.Lock()
	conn := c.conn
	c.mu.Unlock()
	_ = conn.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "")
}

// grow says whether the receive window may grow.
func (c *quicConn) grow(by uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || !c.core.windows.grow(c.admission.key, by) {
		return false
	}
	c.grown += by
	return true
}

// isQuiet says whether nothing has happened for so long that the connection may be closed.
func (c *quicConn) isQuiet(clock time.Duration) bool {
	c.mu.Lock()
	conn, active, ended := c.conn, c.active, c.ended
	c.mu.Unlock()
	st := conn.ConnectionStats()
	return c.quiet.look(glance{
		now: time.Now(), clock: clock, sent: st.PacketsSent, received: st.PacketsReceived, sample: st.LatestRTT,
		done: ended, busy: active > 0, pto: probeTimeout(st),
	})
}

const (
	timerGranularity = time.Millisecond
	maxAckDelay      = 25 * time.Millisecond
)

// probeTimeout is the PTO of RFC 9002, section 6.2.1, for a client with the usual delay of acknowledgements.
func probeTimeout(st quic.ConnectionStats) time.Duration {
	return st.SmoothedRTT + max(4*st.MeanDeviation, timerGranularity) + maxAckDelay
}
