package weirhttp

import (
	"net/http"
	"runtime/debug"
	"time"
)

// serveHTTP counts a request, and passes it on.
func (e *endpoint) serveHTTP(w http.ResponseWriter, r *http.Request) {
	c := e.core
	if conn := quicConnOf(r.Context()); conn != nil {
		c.counts.requests[kindHTTP3].Add(1)
		conn.begin()
		defer conn.finish()
		c.setDeadlines(w)
	} else {
		c.counts.requests[min(r.ProtoMajor, 2)-1].Add(1)
		if e.altSvc != "" {
			w.Header()["Alt-Svc"] = []string{e.altSvc}
		}
	}
	defer c.recover(r)
	h := c.handler
	if h == nil {
		h = http.DefaultServeMux
	}
	h.ServeHTTP(w, r)
}

// setDeadlines does for HTTP/3 what net/http does for the others.
func (c *core) setDeadlines(w http.ResponseWriter) {
	now, rc := time.Now(), http.NewResponseController(w)
	if d := c.readTimeout; d > 0 {
		_ = rc.SetReadDeadline(now.Add(d))
	}
	if d := c.writeTimeout; d > 0 {
		_ = rc.SetWriteDeadline(now.Add(d))
	}
}

// recover logs a panic of a handler, and has the request aborted.
func (c *core) recover(r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if p != http.ErrAbortHandler { // a way to abort, and no mistake
		c.counts.panics.Add(1)
		c.log.Error("weirhttp: a handler panicked", "panic", p, "method", r.Method, "url", r.URL.String(), "remote", r.RemoteAddr,
			"stack", string(debug.Stack()))
	}
	panic(http.ErrAbortHandler)
}

// tlsPanicked logs a panic of a function of the Server's TLSConfig.
func (c *core) tlsPanicked(p any) {
	c.log.Error("weirhttp: a function of TLSConfig panicked", "panic", p, "stack", string(debug.Stack()))
}
