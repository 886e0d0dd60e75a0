package weirhttp

import (
	"io"
	"net/http"
	"testing"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// refuse has each stream of a connection reset, with its headers unread.
func (o *testOrigin) refuse(code http3.ErrCode) func(c *quic.Conn) {
	return func(c *quic.Conn) {
		o.eachStream(c, func(s *quic.Stream) {
			s.CancelRead(quic.StreamErrorCode(code))
			s.CancelWrite(quic.StreamErrorCode(code))
		})
	}
}

// hangUp closes a connection once a request has begun to come.
func (o *testOrigin) hangUp(c *quic.Conn) {
	o.eachStream(c, func(s *quic.Stream) {
		_, _ = s.Read(make([]byte, 1))
		_ = c.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeInternalError), "")
	})
}

// "A request is sent again where that is safe": what the first connection does to it, and what becomes of it.
func TestTransportRepeats(t *testing.T) {
	t.Parallel()
	const h2, h3, fails = 2, 3, 0
	body := func() io.Reader { return stringBody("body") }
	once := func() io.Reader { return newTrackedBody("body") }
	none := func() io.Reader { return nil }
	for _, tt := range []struct {
		name   string
		first  func(*testOrigin) func(*quic.Conn)
		method string
		body   func() io.Reader
		key    string // Idempotency-Key
		want   int
	}{
		{"rejected", rejects, "POST", none, "", h3},
		{"rejected with a body", rejects, "POST", body, "", h3},
		{"rejected with a body once", rejects, "POST", once, "", fails},
		{"cancelled", cancels, "GET", none, "", fails},
		{"not over HTTP/3", fallsBack, "POST", body, "", h2},
		{"not over HTTP/3, once", fallsBack, "POST", once, "", fails},
		{"broken, GET", breaks, "GET", none, "", h3},
		{"broken, PUT", breaks, "PUT", body, "", h3},
		{"broken, PUT once", breaks, "PUT", once, "", fails},
		{"broken, POST", breaks, "POST", body, "", fails},
		{"broken, POST with a key", breaks, "POST", body, "1", h3},
	} {
		o := serveBoth(t, echoBody)
		first := tt.first(o)
		o.stopQUIC()
		o.take = func(n int, c *quic.Conn) bool {
			if n == 1 {
				first(c)
			}
			return n == 1
		}
		if err := o.listenQUIC(); err != nil {
			t.Fatal(err)
		}
		tr := testTransport(t, &Transport{HTTP3: HTTP3Prefer, FallbackDelay: -1})
		b := tt.body()
		req := originRequest(t, tt.method, o.url(), b)
		if tt.key != "" {
			req.Header.Set("Idempotency-Key", tt.key)
		}
		got, res, err := fetchFrom(tr, req)
		s := tr.Stats()
		switch {
		case tt.want == fails && (err == nil || s.Repeats != 0):
			t.Errorf("%s: %v, %v, %+v", tt.name, res, err, s)
		case tt.want != fails && (err != nil || res.ProtoMajor != tt.want || res.Request != req || got != "body" && b != nil || s.Repeats != 1):
			t.Errorf("%s: %q, %v, %+v", tt.name, got, err, s)
		}
		if b, ok := b.(*trackedBody); ok {
			wantClosed(t, b)
		}
	}
}

func rejects(o *testOrigin) func(*quic.Conn)   { return o.refuse(http3.ErrCodeRequestRejected) }
func cancels(o *testOrigin) func(*quic.Conn)   { return o.refuse(http3.ErrCodeRequestCanceled) }
func fallsBack(o *testOrigin) func(*quic.Conn) { return o.refuse(http3.ErrCodeVersionFallback) }
func breaks(o *testOrigin) func(*quic.Conn)    { return o.hangUp }

// A server that breaks each connection is not asked for ever.
func TestTransportRepeatsEnd(t *testing.T) {
	t.Parallel()
	o := newTestOrigin(t, nil)
	o.take = func(_ int, c *quic.Conn) bool {
		o.hangUp(c)
		return true
	}
	if err := o.listenQUIC(); err != nil {
		t.Fatal(err)
	}
	tr := testTransport(t, &Transport{HTTP3: HTTP3Always})
	if _, err := tr.RoundTrip(originRequest(t, "GET", o.url(), nil)); err == nil || isDeadline(err) {
		t.Errorf("RoundTrip: %v", err)
	}
	if s := tr.Stats(); s.Repeats != maxSends-1 || s.Dials != maxSends {
		t.Errorf("Stats: %+v", s)
	}
}

func TestIsIdempotent(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]bool{
		"": true, "GET": true, "HEAD": true, "OPTIONS": true, "TRACE": true, "PUT": true, "DELETE": true,
		"POST": false, "PATCH": false, "CONNECT": false, "get": false,
	} {
		if got := isIdempotent(&http.Request{Method: method}); got != want {
			t.Errorf("%q: %t", method, got)
		}
	}
}
