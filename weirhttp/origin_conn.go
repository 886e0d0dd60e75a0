package weirhttp

import (
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// originConn is a QUIC connection to an origin. A goroutine of its own, run, closes it. What is not set once is guarded by
// the core's mu.
type originConn struct {
	core   *transportCore
	origin *origin
	target originKey
	quic   *quic.Conn
	h3     *http3.ClientConn
	end    chan struct{} // closed: it is to be closed

	requests int         // that use it
	idle     *time.Timer // since there are none
	dropped  bool        // takes no new ones, and is closed after the last
	ended    bool        // end is closed
}

// connectedLocked makes a connection of what a dial has come to, with the requests that have waited for it.
func (c *transportCore) connectedLocked(d *originDial, q *quic.Conn) {
	conn := &originConn{
		core: c, origin: d.origin, target: d.target, quic: q, h3: c.h3.NewClientConn(q),
		end: make(chan struct{}), requests: d.waiting,
	}
	c.conns[conn] = struct{}{}
	c.work.Go(conn.run)
	o := d.origin
	switch {
	case c.closed:
		conn.dropLocked()
		conn.endLocked()
		return
	case o.forgotten, o.target() != d.target: // good for those that have waited, and no others
		conn.dropLocked()
	default:
		o.conn = conn
	}
	d.conn = conn
	if conn.requests == 0 {
		conn.restLocked()
	}
	c.spareLocked()
}

// spareLocked has connections take no more requests where there are too many, those first that were not used for the
// longest.
func (c *transportCore) spareLocked() {
	open := 0
	for conn := range c.conns {
		if !conn.dropped {
			open++
		}
	}
	for e := c.recent.Back(); e != nil && open > c.maxConns; e = e.Prev() {
		if o := e.Value.(*origin); o.conn != nil {
			o.conn.dropLocked()
			open--
		}
	}
}

// run waits for the end of the connection, or ends it.
func (c *originConn) run() {
	select {
	case <-c.quic.Context().Done():
	case <-c.end:
		_ = c.quic.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "") // returns when the peer was told
	}
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	c.dropLocked()
	c.endLocked()
	delete(c.core.conns, c)
}

// takeLocked counts a request that uses the connection.
func (c *originConn) takeLocked() {
	c.requests++
	if c.idle != nil {
		c.idle.Stop()
	}
}

// release ends a request's use of the connection.
func (c *originConn) release() {
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	c.releaseLocked()
}

func (c *originConn) releaseLocked() {
	c.requests--
	if c.requests == 0 {
		c.restLocked()
	}
}

// restLocked is what follows when no request uses the connection.
func (c *originConn) restLocked() {
	switch {
	case c.dropped:
		c.endLocked()
	case c.core.idle == 0:
	case c.idle != nil:
		c.idle.Reset(c.core.idle)
	default:
		c.idle = time.AfterFunc(c.core.idle, c.timeOut)
	}
}

// timeOut drops the connection, unless a request came at the last moment.
func (c *originConn) timeOut() {
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	if c.requests == 0 {
		c.dropLocked()
	}
}

// drop has the connection take no new requests.
func (c *originConn) drop() {
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	c.dropLocked()
}

func (c *originConn) dropLocked() {
	c.dropped = true
	if c.origin.conn == c {
		c.origin.conn = nil
	}
	if c.requests == 0 {
		c.endLocked()
	}
}

func (c *originConn) endLocked() {
	if c.ended {
		return
	}
	c.ended = true
	if c.idle != nil {
		c.idle.Stop()
	}
	close(c.end)
}
