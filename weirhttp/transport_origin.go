package weirhttp

import (
	"container/list"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// origin is what is known of a host and port. All of it is guarded by the Transport's mu.
type origin struct {
	t    *Transport
	key  string      // host:port
	alt  alternative // where it has HTTP/3, as it has announced; zero: it has not
	till time.Time   // alt is not to be believed after

	client *client // the connection for new requests
	dial   *dialing

	failures  int       // dials in a row
	notBefore time.Time // HTTP/3 is broken until then
}

// client is a QUIC connection to an origin.
type client struct {
	origin   *origin
	conn     *quic.Conn
	h3       *http3.ClientConn
	requests int         // guarded by the Transport's mu, as idle and dropped
	idle     *time.Timer // closes it
	dropped  bool        // no new requests; closed with the last
}

// usable tells that the connection is not closed.
func (c *client) usable() bool { return c.conn.Context().Err() == nil }

// dialing is a handshake that requests wait for.
type dialing struct {
	done chan struct{}
	err  error // once done
}

// originOf is the host and port of a URL.
func originOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = "443"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// origin finds one, or makes it where one is wanted, and notes that it was used. mu is held.
func (t *Transport) origin(key string, wanted bool) *origin {
	if e := t.origins[key]; e != nil {
		t.recent.MoveToFront(e)
		return e.Value.(*origin)
	}
	if !wanted {
		return nil
	}
	o := &origin{t: t, key: key}
	if t.origins == nil {
		t.origins = make(map[string]*list.Element)
	}
	t.origins[key] = t.recent.PushFront(o)
	for t.recent.Len() > t.MaxOrigins {
		last := t.recent.Back()
		forgotten := last.Value.(*origin)
		forgotten.drop()
		delete(t.origins, forgotten.key)
		t.recent.Remove(last)
	}
	return o
}

// learn takes what a response says of HTTP/3.
func (t *Transport) learn(key string, h http.Header) {
	values := h["Alt-Svc"]
	if len(values) == 0 || t.HTTP3 != HTTP3AfterAltSvc {
		return
	}
	alt, clear := parseAltSvc(values)
	t.mu.Lock()
	defer t.mu.Unlock()
	known := alt.maxAge > 0
	o := t.origin(key, known)
	switch {
	case o == nil || !known && !clear:
	case clear:
		o.alt, o.till = alternative{}, time.Time{}
	default:
		o.alt, o.till = alt, t.now().Add(alt.maxAge)
	}
}

// acquire finds a connection for a request, which is to be released; errNoHTTP3 sends the request by TCP.
func (t *Transport) acquire(ctx context.Context, key string) (*client, error) {
	o, dial, c := t.find(key)
	if c != nil {
		return c, nil
	}
	if dial == nil {
		return nil, errNoHTTP3
	}
	if err := t.await(ctx, dial); err != nil {
		if ctx.Err() != nil || t.HTTP3 == HTTP3Always {
			return nil, err
		}
		t.Logger.Debug("weirhttp: no HTTP/3", slog.String("origin", key), slog.Any("reason", err))
		t.count(func(s *TransportStats) { s.FellBack++ })
		return nil, errNoHTTP3
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if o.client == nil || !o.client.usable() {
		return nil, errNoHTTP3 // it came, and is gone again
	}
	o.client.take()
	return o.client, nil
}

// find looks for a connection, else for a dial to wait for; neither: HTTP/3 is not wanted.
func (t *Transport) find(key string) (*origin, *dialing, *client) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, nil, nil
	}
	now := t.now()
	o := t.origin(key, t.HTTP3 != HTTP3AfterAltSvc)
	if o == nil || t.HTTP3 == HTTP3AfterAltSvc && !o.till.After(now) {
		return nil, nil, nil
	}
	if c := o.client; c != nil {
		if c.usable() {
			c.take()
			return o, nil, c
		}
		o.drop()
	}
	if o.notBefore.After(now) && t.HTTP3 != HTTP3Always {
		t.stats.FellBack++
		return nil, nil, nil
	}
	if o.dial == nil {
		o.dial = t.startDial(o)
	}
	return o, o.dial, nil
}

// await waits for a dial, as long as a request may.
func (t *Transport) await(ctx context.Context, d *dialing) error {
	var late <-chan time.Time
	if t.FallbackDelay > 0 && t.HTTP3 != HTTP3Always {
		timer := time.NewTimer(t.FallbackDelay)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-d.done:
		return d.err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-late:
		return errHandshakeLate
	}
}

// take counts a request. mu is held.
func (c *client) take() {
	c.requests++
	if c.idle != nil {
		c.idle.Stop()
	}
}

// release ends a request.
func (t *Transport) release(c *client) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.requests--
	switch {
	case c.requests > 0, t.closed: // Close has closed it
	case c.dropped:
		c.close()
	case t.IdleTimeout > 0:
		if c.idle == nil {
			c.idle = time.AfterFunc(t.IdleTimeout, func() { t.closeIdle(c) })
		} else {
			c.idle.Reset(t.IdleTimeout)
		}
	}
}

func (t *Transport) closeIdle(c *client) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.requests == 0 && c.origin.client == c {
		c.origin.drop()
	}
}

// drop has the connection take no new requests. mu is held.
func (o *origin) drop() {
	c := o.client
	if c == nil {
		return
	}
	o.client = nil
	c.dropped = true
	if c.requests == 0 || o.t.closed {
		c.close()
	}
}

// close ends the connection, without waiting. mu is held.
func (c *client) close() {
	if c.idle != nil {
		c.idle.Stop()
	}
	c.origin.t.work.Go(func() { _ = c.conn.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "") })
}
