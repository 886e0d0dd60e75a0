package weirhttp

import (
	"cmp"
	"net/http"
	"time"
)

// learn takes what a response from an origin over TLS says of HTTP/3.
func (c *transportCore) learn(key originKey, h http.Header) {
	fields := h["Alt-Svc"]
	if len(fields) == 0 || c.mode == HTTP3Always {
		return
	}
	alternatives, ok := parseAltSvc(fields)
	if !ok {
		return
	}
	alt, age := c.choose(key, alternatives, h.Get("Age"))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	if o := c.originLocked(key, age > 0); o != nil {
		c.setAltLocked(o, alt, c.now().Add(age))
	}
}

// choose takes the first alternative that may be used, as the origin orders them. Another host is the origin's only if it
// shows so by a certificate for the origin (RFC 7838 section 2.1), so none is used where nobody looks.
func (c *transportCore) choose(key originKey, alternatives []alternative, age string) (originKey, time.Duration) {
	since, _ := parseAge(age)
	for _, a := range alternatives {
		host := cmp.Or(a.host, key.host)
		if left := a.maxAge - since; left > 0 && (host == key.host || c.verifies) {
			return originKey{host, a.port}, left
		}
	}
	return originKey{}, 0
}
