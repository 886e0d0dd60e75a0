package weirhttp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"testing"
	"time"
)

// UDP that is swallowed: "it goes by TCP after FallbackDelay, the handshake goes on for the requests that follow".
func TestTransportBlocked(t *testing.T) {
	t.Parallel()
	o := newTestOrigin(t, nil)
	o.listenTCP()
	if err := o.bindUDP(); err != nil {
		t.Skipf("the port is taken: %v", err)
	}
	tr := testTransport(t, &Transport{HTTP3: HTTP3Prefer, FallbackDelay: 20 * time.Millisecond})
	for range 5 {
		wantProto(t, tr, o.url(), "HTTP/2.0")
	}
	s := tr.Stats()
	if s.Fallbacks != (TransportFallbacks{Late: 5}) || s.Dials != 1 || s.DialsFailed != 0 || s.HTTP2 != 5 {
		t.Errorf("Stats: %+v", s)
	}
	if err := o.listenQUIC(); err != nil { // now it is read: the handshake goes on, by the packets that are repeated
		t.Fatal(err)
	}
	eventually(t, "HTTP/3 is used", func() bool {
		_, res, err := fetchFrom(tr, originRequest(t, "GET", o.url(), nil))
		return err == nil && res.ProtoMajor == 3
	})
	if s := tr.Stats(); s.Dials != 1 {
		t.Errorf("Stats: %+v", s)
	}
}

// A port that refuses (ICMP) breaks nothing else: another origin is asked by the same socket at the same time.
func TestTransportRefused(t *testing.T) {
	t.Parallel()
	other := serveBoth(t, nil)
	o := newTestOrigin(t, nil)
	o.listenTCP()
	tr := testTransport(t, &Transport{HTTP3: HTTP3Prefer, HandshakeTimeout: time.Second, FallbackDelay: -1})
	wantProto(t, tr, other.url(), "HTTP/3.0")
	wantProto(t, tr, o.url(), "HTTP/2.0")
	wantProto(t, tr, other.url(), "HTTP/3.0")
	if s := tr.Stats(); s.Fallbacks != (TransportFallbacks{Failed: 1}) || s.DialsFailed != 1 || s.Conns != 1 {
		t.Errorf("Stats: %+v", s)
	}
}

// "Where it fails HTTP/3 rests for a minute, then for twice as long each time, an hour at most", until a success.
func TestTransportRests(t *testing.T) {
	t.Parallel()
	o := newTestOrigin(t, nil)
	o.listenTCP()
	if err := o.bindUDP(); err != nil {
		t.Skipf("the port is taken: %v", err)
	}
	var clock testClock
	tr := testTransport(t, &Transport{HTTP3: HTTP3Prefer, HandshakeTimeout: 50 * time.Millisecond, FallbackDelay: -1, now: clock.now})
	wantProto(t, tr, o.url(), "HTTP/2.0")
	dials, broken := uint64(1), uint64(0)
	check := func() {
		t.Helper()
		s := tr.Stats()
		if s.Dials != dials || s.DialsFailed != dials || s.Fallbacks != (TransportFallbacks{Failed: dials, Broken: broken}) {
			t.Fatalf("%d dials and %d requests in between: %+v", dials, broken, s)
		}
	}
	check()
	for _, minutes := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		clock.advance(minutes*time.Minute - time.Second)
		wantProto(t, tr, o.url(), "HTTP/2.0")
		broken++
		check()
		clock.advance(time.Second)
		wantProto(t, tr, o.url(), "HTTP/2.0")
		dials++
		check()
	}
	if err := o.udp.Close(); err != nil {
		t.Fatal(err)
	}
	o.udp = nil
	if err := o.listenQUIC(); err != nil {
		t.Fatal(err)
	}
	tr.core.mu.Lock()
	tr.core.handshake = 2 * patience
	tr.core.mu.Unlock()
	clock.advance(time.Hour)
	wantProto(t, tr, o.url(), "HTTP/3.0")
	if o := tr.core.origins[originOf(originRequest(t, "GET", o.url(), nil))].Value.(*origin); o.failures != 0 || !o.rest.IsZero() {
		t.Errorf("after a success: %d failures, rests until %v", o.failures, o.rest)
	}
}

// An origin that has no TCP: it decides the handshake that was late.
func TestTransportPreferWithoutTCP(t *testing.T) {
	t.Parallel()
	o := newTestOrigin(t, nil)
	if err := o.listenQUIC(); err != nil {
		t.Fatal(err)
	}
	for _, delay := range []time.Duration{-1, time.Nanosecond} {
		tr := testTransport(t, &Transport{HTTP3: HTTP3Prefer, FallbackDelay: delay})
		body, res, err := fetchFrom(tr, originRequest(t, "POST", o.url(), strings.NewReader("body")))
		if err != nil || res.ProtoMajor != 3 {
			t.Fatalf("FallbackDelay %v: %q, %v", delay, body, err)
		}
		if s := tr.Stats(); s.HTTP3 != 1 || delay < 0 && s.Fallbacks.Late != 0 {
			t.Errorf("Stats: %+v", s)
		}
	}
}

// Where neither works, the error says so of both.
func TestTransportNothingWorks(t *testing.T) {
	t.Parallel()
	o := newTestOrigin(t, nil)
	if err := o.bindUDP(); err != nil {
		t.Fatal(err)
	}
	for _, delay := range []time.Duration{-1, time.Millisecond} {
		tr := testTransport(t, &Transport{HTTP3: HTTP3Prefer, HandshakeTimeout: 100 * time.Millisecond, FallbackDelay: delay})
		body := newTrackedBody("body")
		_, err := tr.RoundTrip(originRequest(t, "POST", o.url(), body))
		if err == nil || !isDialError(err) || !strings.Contains(err.Error(), "HTTP/3") {
			t.Errorf("RoundTrip: %v", err)
		}
		wantClosed(t, body)
	}
}

// "HTTP/3 only: errors instead of falling back", which name the origin.
func TestTransportAlways(t *testing.T) {
	t.Parallel()
	o := newTestOrigin(t, nil)
	o.listenTCP()
	if err := o.bindUDP(); err != nil {
		t.Skipf("the port is taken: %v", err)
	}
	tr := testTransport(t, &Transport{HTTP3: HTTP3Always, HandshakeTimeout: 50 * time.Millisecond, FallbackDelay: time.Millisecond})
	for range 3 { // no rest
		body := newTrackedBody("body")
		_, err := tr.RoundTrip(originRequest(t, "POST", o.url(), body))
		if err == nil || !strings.Contains(err.Error(), o.addr()) {
			t.Fatalf("RoundTrip: %v", err)
		}
		if e, ok := err.(interface{ Timeout() bool }); !ok || !e.Timeout() { // as url.Error asks
			t.Errorf("%v is no timeout", err)
		}
		wantClosed(t, body)
	}
	if s := tr.Stats(); s.Dials != 3 || s.DialsFailed != 3 || s.HTTP2 != 0 || s.Fallbacks != (TransportFallbacks{}) {
		t.Errorf("Stats: %+v", s)
	}
	_, err := tr.RoundTrip(originRequest(t, "GET", "https://name.invalid/", nil))
	if e, ok := errors.AsType[*net.DNSError](err); !ok || e.Name != "name.invalid" {
		t.Errorf("a name that is none: %v", err)
	}
}

// The certificate has to be the origin's, over QUIC as over TCP.
func TestTransportCertificate(t *testing.T) {
	t.Parallel()
	o := newTestOrigin(t, nil)
	o.cert = newTestCert(x509.Certificate{DNSNames: []string{"other.test"}})
	if err := o.listenQUIC(); err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(o.cert.Leaf)
	config := &tls.Config{RootCAs: roots}
	tr := testTransport(t, &Transport{HTTP3: HTTP3Always, TLSClientConfig: config})
	_, err := tr.RoundTrip(originRequest(t, "GET", o.url(), nil))
	if _, ok := errors.AsType[x509.HostnameError](err); !ok {
		t.Errorf("a certificate for another name: %v", err)
	}
	if len(config.NextProtos) != 0 || config.ServerName != "" || config.MinVersion != 0 {
		t.Errorf("TLSClientConfig was changed: %+v", config)
	}
	named := testTransport(t, &Transport{HTTP3: HTTP3Always, TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "other.test"}})
	wantProto(t, named, o.url(), "HTTP/3.0")
}

// "req.Context cancels waiting": for the handshake, whose end it does not change; the body is closed.
func TestTransportCancelDial(t *testing.T) {
	t.Parallel()
	o := newTestOrigin(t, nil)
	if err := o.bindUDP(); err != nil {
		t.Fatal(err)
	}
	tr := testTransport(t, &Transport{HTTP3: HTTP3Always})
	for range 3 {
		body := newTrackedBody("body")
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(20*time.Millisecond, cancel)
		if _, err := tr.RoundTrip(originRequest(t, "POST", o.url(), body).WithContext(ctx)); !errors.Is(err, context.Canceled) {
			t.Errorf("RoundTrip: %v", err)
		}
		wantClosed(t, body)
	}
	if s := tr.Stats(); s.Dials != 1 || s.DialsFailed != 0 {
		t.Errorf("Stats: %+v", s)
	}
	result := make(chan error, 1)
	go func() {
		_, err := tr.RoundTrip(originRequest(t, "GET", o.url(), nil))
		result <- err
	}()
	eventually(t, "a request waits", func() bool {
		tr.core.mu.Lock()
		defer tr.core.mu.Unlock()
		d := tr.core.recent.Front().Value.(*origin).dial
		return d != nil && d.waiting == 1
	})
	if err := tr.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if err := <-result; !errors.Is(err, ErrTransportClosed) {
		t.Errorf("RoundTrip of a Transport that is closed: %v", err)
	}
}
