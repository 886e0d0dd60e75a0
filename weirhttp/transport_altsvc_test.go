package weirhttp

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// sendsTo is a TCP transport that connects to one address, whatever the name is.
func sendsTo(tr *Transport, addr string) *http.Transport {
	return &http.Transport{
		TLSClientConfig: tr.TLSClientConfig, ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, addr)
		},
	}
}

// "An alternative on another host is used if its certificate is valid for the origin": origin.test has HTTP/3 at 127.0.0.1,
// and its name is that of no address.
func TestTransportAlternativeHost(t *testing.T) {
	t.Parallel()
	var used atomic.Value
	o := serveBoth(t, func(w http.ResponseWriter, r *http.Request) {
		used.Store(r.Header.Get("Alt-Used"))
		sayProto(w, r)
	})
	o.altSvc.Store(`h2=":1", h3="127.0.0.1:` + o.port + `"; ma=600`)
	tr := testTransport(t, &Transport{FallbackDelay: -1})
	tr.TCP = sendsTo(tr, o.addr())
	t.Cleanup(tr.TCP.CloseIdleConnections)
	wantProto(t, tr, "https://origin.test/", "HTTP/2.0")
	if got := used.Load(); got != "" {
		t.Errorf("Alt-Used %q by TCP", got)
	}
	wantProto(t, tr, "https://origin.test/", "HTTP/3.0")
	if got := used.Load(); got != o.addr() {
		t.Errorf("Alt-Used %q, want %q", got, o.addr())
	}
}

func TestTransportAlternativeUnverified(t *testing.T) {
	t.Parallel()
	o := serveBoth(t, nil)
	o.altSvc.Store(`h3="127.0.0.1:` + o.port + `"`)
	tr := testTransport(t, &Transport{FallbackDelay: -1, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}})
	tr.TCP = sendsTo(tr, o.addr())
	t.Cleanup(tr.TCP.CloseIdleConnections)
	for range 2 {
		wantProto(t, tr, "https://origin.test/", "HTTP/2.0")
	}
	if s := tr.Stats(); s.AltSvc != 0 || s.Dials != 0 {
		t.Errorf("Stats: %+v", s)
	}
	wantProto(t, tr, o.url(), "HTTP/2.0") // 127.0.0.1 is the origin's own host here
	wantProto(t, tr, o.url(), "HTTP/3.0")
}

// A server that is not the origin is refused, and the request goes by TCP.
func TestTransportAlternativeForeign(t *testing.T) {
	t.Parallel()
	o := serveBoth(t, nil)
	tr := testTransport(t, &Transport{FallbackDelay: -1})
	o.altSvc.Store(`h3="127.0.0.1:` + o.port + `"`)
	tr.TCP = sendsTo(tr, o.addr())
	t.Cleanup(tr.TCP.CloseIdleConnections)
	tr.TCP.TLSClientConfig = &tls.Config{RootCAs: tr.TLSClientConfig.RootCAs, ServerName: "localhost"}
	wantProto(t, tr, "https://stranger.test/", "HTTP/2.0")
	wantProto(t, tr, "https://stranger.test/", "HTTP/2.0")
	if s := tr.Stats(); s.Fallbacks != (TransportFallbacks{Failed: 1}) || s.Conns != 0 {
		t.Errorf("Stats: %+v", s)
	}
}

// Another alternative: the connection to the first takes no more requests.
func TestTransportAlternativeMoves(t *testing.T) {
	t.Parallel()
	o, elsewhere := serveBoth(t, nil), serveBoth(t, nil)
	tr := testTransport(t, &Transport{FallbackDelay: -1})
	wantProto(t, tr, o.url(), "HTTP/2.0")
	o.altSvc.Store(`h3=":` + elsewhere.port + `"`)
	wantProto(t, tr, o.url(), "HTTP/3.0")
	o.stopQUIC()
	wantProto(t, tr, o.url(), "HTTP/3.0")
	if s := tr.Stats(); s.Dials != 2 || s.Repeats != 0 {
		t.Errorf("Stats: %+v", s)
	}
}

// "A 421 from an alternative: the entry is removed", and the request is sent to the origin.
func TestTransportMisdirected(t *testing.T) {
	t.Parallel()
	o := serveBoth(t, nil)
	elsewhere := serveBoth(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusMisdirectedRequest) })
	elsewhere.altSvc.Store("")
	o.altSvc.Store(`h3=":` + elsewhere.port + `"`)
	tr := testTransport(t, &Transport{FallbackDelay: -1})
	wantProto(t, tr, o.url(), "HTTP/2.0")
	o.altSvc.Store("")
	wantProto(t, tr, o.url(), "HTTP/2.0")
	wantProto(t, tr, o.url(), "HTTP/2.0")
	if s := tr.Stats(); s.Repeats != 1 || s.AltSvc != 0 || s.Dials != 1 {
		t.Errorf("Stats: %+v", s)
	}
}

// "An Alt-Svc header field in a 421 response MUST be ignored" (RFC 7838 section 6).
func TestTransportMisdirectedAnnounces(t *testing.T) {
	t.Parallel()
	o := serveBoth(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusMisdirectedRequest) })
	tr := testTransport(t, &Transport{})
	if _, res, err := fetchFrom(tr, originRequest(t, "GET", o.url(), nil)); err != nil || res.Header.Get("Alt-Svc") == "" {
		t.Fatalf("%v, %v", res, err)
	}
	if s := tr.Stats(); s.AltSvc != 0 {
		t.Errorf("Stats: %+v", s)
	}
}

// "The one that was not used for the longest goes first."
func TestTransportMaxOrigins(t *testing.T) {
	t.Parallel()
	tr := testTransport(t, &Transport{MaxOrigins: 2, MaxConns: 1, FallbackDelay: -1})
	a, b, c := serveBoth(t, nil), serveBoth(t, nil), serveBoth(t, nil)
	wantProto(t, tr, a.url(), "HTTP/2.0")
	wantProto(t, tr, b.url(), "HTTP/2.0")
	wantProto(t, tr, a.url(), "HTTP/3.0")
	wantProto(t, tr, c.url(), "HTTP/2.0") // has b forgotten
	wantProto(t, tr, a.url(), "HTTP/3.0")
	wantProto(t, tr, c.url(), "HTTP/3.0")
	wantProto(t, tr, b.url(), "HTTP/2.0")
	if s := tr.Stats(); s.Origins != 2 || s.AltSvc != 2 {
		t.Errorf("Stats: %+v", s)
	}
	eventually(t, "one connection is left", func() bool { return tr.Stats().Conns == 1 })
}

// localhost is IPv6 and IPv4, and the server has one of them: the addresses are tried one a little after the other.
func TestTransportAddresses(t *testing.T) {
	t.Parallel()
	o := serveBoth(t, nil)
	tr := testTransport(t, &Transport{HTTP3: HTTP3Always, HandshakeTimeout: 2 * patience})
	wantProto(t, tr, "https://localhost:"+o.port, "HTTP/3.0") // weir:port chosen by the system
}

// An Age of the response counts: ma is "since the response was generated".
func TestTransportAge(t *testing.T) {
	t.Parallel()
	var clock testClock
	c := newTransportCore(&Transport{now: clock.now})
	key := originKey{"origin.test", "443"}
	c.learn(key, http.Header{"Alt-Svc": {`h3=":443"; ma=100`}, "Age": {"100"}})
	if c.stats().AltSvc != 0 {
		t.Error("an announcement that is too old was taken")
	}
	c.learn(key, http.Header{"Alt-Svc": {`h3=":443"; ma=100`}, "Age": {"40"}})
	clock.advance(59 * time.Second)
	if c.stats().AltSvc != 1 {
		t.Error("the announcement does not hold")
	}
	clock.advance(time.Second)
	if s := c.stats(); s.AltSvc != 0 || s.Origins != 1 {
		t.Errorf("the announcement holds too long: %+v", s)
	}
	c.learn(key, http.Header{"Alt-Svc": {`h3=":443"`}})
	c.learn(key, http.Header{"Alt-Svc": {`h3=443, nonsense`}})
	if c.stats().AltSvc != 1 {
		t.Error("nonsense was taken for an announcement")
	}
	c.learn(key, http.Header{"Alt-Svc": {`h2=":443"`}})
	if c.stats().AltSvc != 0 {
		t.Error("an announcement without HTTP/3 does not replace the one before")
	}
}
