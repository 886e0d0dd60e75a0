package weirhttp

import (
	"errors"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/quic-go/quic-go/http3"
)

// traced is the request with a note of whether any of it went out.
func traced(req *http.Request) (_ *http.Request, sent *atomic.Bool) {
	sent = new(atomic.Bool)
	trace := &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }}
	return req.WithContext(httptrace.WithClientTrace(req.Context(), trace)), sent
}

// repeat tells whether a request that failed on the connection, which takes no new ones from now on, may be sent again, and
// returns it as it is to be sent then:
//
//   - Nothing of it went out: it may.
//   - The server says that it has not processed it (H3_REQUEST_REJECTED, RFC 9114 section 4.1.1): it may, if its body can
//     be had again.
//   - The connection broke, and the request may be repeated (RFC 9110 section 9.2.2): likewise.
func (t *Transport) repeat(c *client, req *http.Request, sent bool, err error) (*http.Request, bool) {
	broken := !c.usable()
	var answer *http3.Error
	rejected := errors.As(err, &answer) && answer.ErrorCode == http3.ErrCodeRequestRejected
	if !sent || broken || rejected {
		t.mu.Lock()
		if c.origin.client == c {
			c.origin.drop()
		}
		t.mu.Unlock()
	}
	switch {
	case !sent:
		return req, true
	case !rejected && !(broken && repeatable(req)):
		return nil, false
	case req.Body == nil || req.Body == http.NoBody:
		return req, true
	case req.GetBody == nil:
		return nil, false
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, false
	}
	again := *req
	again.Body = body
	return &again, true
}

// repeatable is what http.Transport takes for it.
func repeatable(req *http.Request) bool {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return req.Header["Idempotency-Key"] != nil || req.Header["X-Idempotency-Key"] != nil
}
