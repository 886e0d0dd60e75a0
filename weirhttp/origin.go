package weirhttp

import (
	"cmp"
	"net"
	"net/http"
	"strings"
	"time"
)

// originKey is what a request names: a host, in lower case and without brackets, and a port.
type originKey struct{ host, port string }

func (k originKey) String() string { return net.JoinHostPort(k.host, k.port) }

// originOf is the origin of a request for https.
func originOf(req *http.Request) originKey {
	return originKey{strings.ToLower(req.URL.Hostname()), cmp.Or(req.URL.Port(), "443")}
}

// origin is what is known of one. All but key is guarded by the core's mu.
type origin struct {
	key   originKey
	alt   originKey // where it has announced HTTP/3; zero: it has not
	until time.Time // alt holds

	conn *originConn // for new requests
	dial *originDial // that is in progress

	failures  int       // of dials, in a row
	rest      time.Time // no dial before
	forgotten bool      // not in the core's table any more
}

// announced tells whether an announcement holds.
func (o *origin) announced(now time.Time) bool { return o.alt != originKey{} && now.Before(o.until) }

// target is where HTTP/3 is to be had.
func (o *origin) target() originKey { return cmp.Or(o.alt, o.key) }

// originLocked finds what is known of an origin, or makes room for it where that is wanted.
func (c *transportCore) originLocked(key originKey, wanted bool) *origin {
	if e := c.origins[key]; e != nil {
		c.recent.MoveToFront(e)
		return e.Value.(*origin)
	}
	if !wanted {
		return nil
	}
	o := &origin{key: key}
	c.origins[key] = c.recent.PushFront(o)
	for c.recent.Len() > c.maxOrigins {
		c.forgetLocked(c.recent.Back().Value.(*origin))
	}
	return o
}

func (c *transportCore) forgetLocked(o *origin) {
	c.recent.Remove(c.origins[o.key])
	delete(c.origins, o.key)
	o.forgotten = true
	if o.conn != nil {
		o.conn.dropLocked()
	}
}

// setAltLocked takes an announcement, or, with the zero key, that there is none any more. A connection to elsewhere takes no
// more requests. That HTTP/3 rests is as it was: an origin that announces something else each time would have it never rest.
func (c *transportCore) setAltLocked(o *origin, alt originKey, until time.Time) {
	o.alt, o.until = alt, until
	if o.conn != nil && (o.conn.target != o.target() || c.mode == HTTP3AfterAltSvc && alt == originKey{}) {
		o.conn.dropLocked()
	}
}

// What HTTP/3 rests for with an origin after a dial has failed: twice as long each time.
const (
	firstRest   = time.Minute
	longestRest = time.Hour
)

// failedLocked notes that there is no HTTP/3 with the origin now.
func (c *transportCore) failedLocked(o *origin) {
	rest := longestRest
	if o.failures < 6 {
		rest = min(firstRest<<o.failures, longestRest)
	}
	o.failures++
	o.rest = c.now().Add(rest)
}

// failed has HTTP/3 rest, and its connection take no more requests.
func (c *transportCore) failed(conn *originConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failedLocked(conn.origin)
	conn.dropLocked()
}
