package weirhttp

import (
	"compress/gzip"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// "Use HTTP/3 once an origin has announced it": by the second request.
func TestTransportAltSvc(t *testing.T) {
	t.Parallel()
	o := serveBoth(t, nil)
	tr := testTransport(t, &Transport{FallbackDelay: -1})
	wantProto(t, tr, o.url(), "HTTP/2.0")
	for range 3 {
		wantProto(t, tr, o.url(), "HTTP/3.0")
	}
	s := tr.Stats()
	if s.HTTP2 != 1 || s.HTTP3 != 3 || s.Dials != 1 || s.Origins != 1 || s.AltSvc != 1 || s.Conns != 1 || s.UDP.Sent == 0 {
		t.Errorf("Stats: %+v", s)
	}
}

func TestTransportAltSvcExpires(t *testing.T) {
	t.Parallel()
	o := serveBoth(t, nil)
	o.altSvc.Store(`h3=":` + o.port + `"; ma=60`)
	var clock testClock
	tr := testTransport(t, &Transport{FallbackDelay: -1, now: clock.now})
	wantProto(t, tr, o.url(), "HTTP/2.0")
	wantProto(t, tr, o.url(), "HTTP/3.0")
	clock.advance(59 * time.Second)
	wantProto(t, tr, o.url(), "HTTP/3.0") // and announces it again
	o.altSvc.Store("")
	clock.advance(59 * time.Second)
	wantProto(t, tr, o.url(), "HTTP/3.0")
	clock.advance(2 * time.Second)
	wantProto(t, tr, o.url(), "HTTP/2.0")
	if s := tr.Stats(); s.AltSvc != 0 {
		t.Errorf("Stats: %+v", s)
	}
	eventually(t, "the connection of before is closed", func() bool { return tr.Stats().Conns == 0 })
}

func TestTransportAltSvcClear(t *testing.T) {
	t.Parallel()
	o := serveBoth(t, nil)
	tr := testTransport(t, &Transport{FallbackDelay: -1})
	wantProto(t, tr, o.url(), "HTTP/2.0")
	wantProto(t, tr, o.url(), "HTTP/3.0")
	o.altSvc.Store("clear")
	wantProto(t, tr, o.url(), "HTTP/3.0")
	wantProto(t, tr, o.url(), "HTTP/2.0")
	eventually(t, "the connection of before is closed", func() bool { return tr.Stats().Conns == 0 })
}

func TestTransportNever(t *testing.T) {
	t.Parallel()
	o := serveBoth(t, nil)
	tr := testTransport(t, &Transport{HTTP3: HTTP3Never})
	for range 3 {
		wantProto(t, tr, o.url(), "HTTP/2.0")
	}
	if s := tr.Stats(); s.Dials != 0 || s.Origins != 0 {
		t.Errorf("Stats: %+v", s)
	}
}

// Plain http goes by TCP, and its Alt-Svc is not believed.
func TestTransportPlainHTTP(t *testing.T) {
	t.Parallel()
	for _, mode := range []HTTP3Mode{HTTP3AfterAltSvc, HTTP3Prefer, HTTP3Always} {
		o := newTestOrigin(t, nil)
		o.altSvc.Store(`h3=":443"`)
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		web := &http.Server{Handler: o.handler}
		t.Cleanup(func() { _ = web.Close() })
		o.work.Go(func() { _ = web.Serve(ln) })
		tr := testTransport(t, &Transport{HTTP3: mode})
		for range 2 {
			wantProto(t, tr, "http://"+ln.Addr().String(), "HTTP/1.1")
		}
		if s := tr.Stats(); s.HTTP1 != 2 || s.Origins != 0 || s.Dials != 0 {
			t.Errorf("Stats: %+v", s)
		}
	}
}

// A transport of the caller's is used, not changed, and not closed.
func TestTransportOwnTCP(t *testing.T) {
	t.Parallel()
	o := serveBoth(t, nil)
	tcp := &http.Transport{
		TLSClientConfig: testTransport(t, &Transport{}).TLSClientConfig.Clone(),
		DialContext:     (&net.Dialer{}).DialContext,
	}
	t.Cleanup(tcp.CloseIdleConnections)
	tr := testTransport(t, &Transport{TCP: tcp, FallbackDelay: -1})
	wantProto(t, tr, o.url(), "HTTP/1.1") // as it has a DialContext and no ForceAttemptHTTP2
	wantProto(t, tr, o.url(), "HTTP/3.0")
	if tcp.ForceAttemptHTTP2 || tcp.Proxy != nil {
		t.Error("the caller's http.Transport was changed")
	}
}

// A response is to the request that the program made, has its trailers, and is unzipped.
func TestTransportResponse(t *testing.T) {
	t.Parallel()
	o := serveBoth(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "Sum")
		if r.Header.Get("Accept-Encoding") == "gzip" {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, strings.Repeat("weir", 1000))
			_ = z.Close()
		}
		w.Header().Set("Sum", "42")
	})
	for _, mode := range []HTTP3Mode{HTTP3Always, HTTP3Never} {
		tr := testTransport(t, &Transport{HTTP3: mode})
		req := originRequest(t, "GET", o.url(), nil)
		body, res, err := fetchFrom(tr, req)
		if err != nil {
			t.Fatal(err)
		}
		if res.Request != req || res.TLS == nil || !res.Uncompressed || body != strings.Repeat("weir", 1000) || res.Trailer.Get("Sum") != "42" {
			t.Errorf("%s: %d bytes, %+v", res.Proto, len(body), res)
		}
		req = originRequest(t, "", o.url(), nil)
		req.Method = ""
		if _, res, err = fetchFrom(tr, req); err != nil || res.StatusCode != 200 || req.Method != "" {
			t.Errorf("without a method: %v, and the request is now %+v", err, req)
		}
		if _, res, err = fetchFrom(tr, originRequest(t, "HEAD", o.url(), nil)); err != nil || res.StatusCode != 200 {
			t.Errorf("HEAD: %v", err)
		}
	}
	plain := testTransport(t, &Transport{HTTP3: HTTP3Always, DisableCompression: true})
	if body, res, err := fetchFrom(plain, originRequest(t, "GET", o.url(), nil)); err != nil || res.Uncompressed || body != "" {
		t.Errorf("DisableCompression: %q, %v", body, err)
	}
}

// What HTTP/3 cannot send is an error at once, with the body closed, and not a wait for ever.
func TestTransportInvalid(t *testing.T) {
	t.Parallel()
	o := serveBoth(t, nil)
	tests := map[string]func(*http.Request){
		"method":       func(r *http.Request) { r.Method = "BAD METHOD" },
		"header name":  func(r *http.Request) { r.Header = http.Header{"a b": {"1"}} },
		"header value": func(r *http.Request) { r.Header.Set("A", "1\r\nB: 2") },
		"trailer":      func(r *http.Request) { r.Trailer = http.Header{"A": {"\x00"}} },
		"host":         func(r *http.Request) { r.Host = "a b" },
		"path":         func(r *http.Request) { r.URL.Opaque = "opaque" },
		"name":         func(r *http.Request) { r.URL.Host = "bücher.test" },
		"upgrade":      func(r *http.Request) { r.Header.Set("Upgrade", "websocket") },
	}
	for name, spoil := range tests {
		tr := testTransport(t, &Transport{HTTP3: HTTP3Always})
		body := newTrackedBody("body")
		req := originRequest(t, "POST", o.url(), body)
		spoil(req)
		_, err := tr.RoundTrip(req)
		if err == nil || isDeadline(err) || !strings.HasPrefix(err.Error(), "weirhttp: ") {
			t.Errorf("%s: %v", name, err)
		}
		wantClosed(t, body)
	}
	tr := testTransport(t, &Transport{HTTP3: HTTP3Prefer})
	req := originRequest(t, "GET", o.url(), nil)
	req.Method = "BAD METHOD"
	if _, err := tr.RoundTrip(req); err == nil || isDeadline(err) {
		t.Errorf("by TCP: %v", err)
	}
}

// "HTTP/3 does not support the HTTP Upgrade mechanism" (RFC 9114 section 4.5): a websocket goes by HTTP/1.1.
func TestTransportUpgrade(t *testing.T) {
	t.Parallel()
	o := serveBoth(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Header.Get("Upgrade")) })
	tr := testTransport(t, &Transport{FallbackDelay: -1})
	wantProto(t, tr, o.url(), "HTTP/2.0")
	wantProto(t, tr, o.url(), "HTTP/3.0")
	req := originRequest(t, "GET", o.url(), nil)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "websocket")
	if body, res, err := fetchFrom(tr, req); err != nil || res.Proto != "HTTP/1.1" || body != "websocket" {
		t.Errorf("%q, %+v, %v", body, res, err)
	}
}

// An https origin behind a proxy is asked by the proxy alone.
func TestTransportProxy(t *testing.T) {
	t.Parallel()
	o := serveBoth(t, nil)
	asked := errors.New("the proxy was asked for")
	tcp := &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return nil, asked }}
	tr := testTransport(t, &Transport{HTTP3: HTTP3Prefer, TCP: tcp})
	if _, err := tr.RoundTrip(originRequest(t, "GET", o.url(), nil)); !errors.Is(err, asked) {
		t.Errorf("RoundTrip: %v", err)
	}
	if s := tr.Stats(); s.Dials != 0 {
		t.Errorf("Stats: %+v", s)
	}
}

func TestTransportClosed(t *testing.T) {
	t.Parallel()
	o := serveBoth(t, nil)
	unused := testTransport(t, &Transport{})
	unused.CloseIdleConnections()
	if s := unused.Stats(); s != (TransportStats{}) {
		t.Errorf("Stats: %+v", s)
	}
	used := testTransport(t, &Transport{HTTP3: HTTP3Always})
	wantProto(t, used, o.url(), "HTTP/3.0")
	for _, tr := range []*Transport{unused, used} {
		for range 2 {
			if err := tr.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		}
		body := newTrackedBody("body")
		if _, err := tr.RoundTrip(originRequest(t, "POST", o.url(), body)); !errors.Is(err, ErrTransportClosed) || !errors.Is(err, net.ErrClosed) {
			t.Errorf("RoundTrip after Close: %v", err)
		}
		wantClosed(t, body)
	}
	if s := used.Stats(); s.HTTP3 != 1 || s.Conns != 0 {
		t.Errorf("Stats after Close: %+v", s)
	}
}

// Numbers that are larger than what they are passed to can hold.
func TestTransportAbsurd(t *testing.T) {
	t.Parallel()
	o := serveBoth(t, nil)
	for name, tr := range map[string]*Transport{
		"HandshakeTimeout":       {HandshakeTimeout: math.MaxInt64},
		"IdleTimeout":            {IdleTimeout: math.MaxInt64},
		"FallbackDelay":          {FallbackDelay: math.MaxInt64},
		"MaxResponseHeaderBytes": {MaxResponseHeaderBytes: math.MaxInt},
		"MaxConns":               {MaxConns: math.MaxInt, MaxOrigins: math.MaxInt},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr.HTTP3 = HTTP3Always
			wantProto(t, testTransport(t, tr), o.url(), "HTTP/3.0")
		})
	}
}
