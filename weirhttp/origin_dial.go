package weirhttp

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/quic-go/quic-go"
)

// originDial is a handshake in progress, which requests wait for.
type originDial struct {
	origin  *origin
	target  originKey
	late    chan struct{} // closed after FallbackDelay; nil: never
	done    chan struct{} // closed when it is over
	waiting int           // requests that will use the connection; guarded by the core's mu

	conn *originConn // set before done is closed, as err
	err  error
}

// route is the way of a request: by conn, of which it has been counted as a request, or by TCP.
type route struct {
	conn *originConn
	dial *originDial // was not waited for any longer
	why  error       // there is no conn
}

var (
	errDialLate     = errors.New("the QUIC handshake takes longer than FallbackDelay")
	errOriginBroken = errors.New("a QUIC handshake failed a short while ago")
)

// acquire finds the way of a request to an origin that may have HTTP/3.
func (c *transportCore) acquire(ctx context.Context, key originKey) (route, error) {
	c.mu.Lock()
	r, err := c.routeLocked(key)
	c.mu.Unlock()
	if err != nil || r.dial == nil {
		return r, err
	}
	return c.await(ctx, r.dial)
}

// routeLocked is the way as far as it is known at once: dial is to be waited for.
func (c *transportCore) routeLocked(key originKey) (route, error) {
	if c.closed {
		return route{}, ErrTransportClosed
	}
	o := c.originLocked(key, c.mode != HTTP3AfterAltSvc)
	if o == nil {
		return route{}, nil
	}
	now := c.now()
	if (o.alt != originKey{}) && !o.announced(now) {
		c.setAltLocked(o, originKey{}, time.Time{})
	}
	if c.mode == HTTP3AfterAltSvc && (o.alt == originKey{}) {
		return route{}, nil
	}
	if o.conn != nil {
		o.conn.takeLocked()
		return route{conn: o.conn}, nil
	}
	if o.dial == nil {
		if now.Before(o.rest) && c.mode != HTTP3Always {
			c.counts.Fallbacks.Broken++
			return route{why: errOriginBroken}, nil
		}
		c.dialLocked(o)
	}
	o.dial.waiting++
	return route{dial: o.dial}, nil
}

// await waits for a dial, as long as a request may.
func (c *transportCore) await(ctx context.Context, d *originDial) (route, error) {
	select {
	case <-d.done:
	case <-d.late:
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	over, gone := hasEnded(d.done), ctx.Err() != nil // asked once, as it may become so at any time
	switch {
	case !over:
		d.waiting--
	case d.conn != nil && gone:
		d.conn.releaseLocked()
	}
	switch {
	case gone:
		return route{}, context.Cause(ctx)
	case !over:
		c.counts.Fallbacks.Late++
		return route{dial: d, why: errDialLate}, nil
	case d.conn != nil:
		return route{conn: d.conn}, nil
	case c.mode == HTTP3Always, c.closed:
		return route{}, d.err
	}
	c.counts.Fallbacks.Failed++
	return route{why: d.err}, nil
}

// dialLocked begins a handshake, for all requests that want one.
func (c *transportCore) dialLocked(o *origin) {
	d := &originDial{origin: o, target: o.target(), done: make(chan struct{})}
	var late *time.Timer
	if c.delay > 0 && c.mode != HTTP3Always {
		d.late = make(chan struct{})
		late = time.AfterFunc(c.delay, func() { close(d.late) })
	}
	o.dial = d
	c.counts.Dials++
	c.work.Go(func() {
		ctx, cancel := context.WithTimeoutCause(c.ctx, c.handshake, errDialTimeout)
		defer cancel()
		conn, err := c.dialQUIC(ctx, o.key.host, d.target)
		if late != nil {
			late.Stop()
		}
		c.dialled(d, conn, err)
	})
}

// dialled takes what a dial has come to. It is the dial's last step.
func (c *transportCore) dialled(d *originDial, conn *quic.Conn, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := d.origin
	o.dial = nil
	defer close(d.done)
	switch {
	case c.closed:
		d.err = ErrTransportClosed
	case err != nil:
		d.err = &dialError{o.key, err}
		c.counts.DialsFailed++
		c.failedLocked(o)
		c.log.Debug("weirhttp: a QUIC handshake failed", slog.String("origin", o.key.String()), slog.Any("error", err))
	default:
		o.failures, o.rest = 0, time.Time{}
	}
	if conn != nil {
		c.connectedLocked(d, conn)
	}
}

func hasEnded(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
