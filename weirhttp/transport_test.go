package weirhttp

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestAltSvcUpgrade: "HTTP3AfterAltSvc uses it once an origin has announced it by Alt-Svc."
func TestAltSvcUpgrade(t *testing.T) {
	t.Parallel()
	p := newPlace(t, say("x"), `h3=":PORT"; ma=60`)
	p.serveQUIC(say("x"))
	tr := p.transport(HTTP3AfterAltSvc)
	now := time.Now()
	var later atomic.Int64
	tr.now = func() time.Time { return now.Add(time.Duration(later.Load())) }
	wantProto(t, tr, p.url, "HTTP/2.0")
	wantProto(t, tr, p.url, "HTTP/3.0")
	later.Store(int64(61 * time.Second))
	wantProto(t, tr, p.url, "HTTP/2.0")
	wantProto(t, tr, p.url, "HTTP/3.0")
	if s := tr.Stats(); s.HTTP2 != 2 || s.HTTP3 != 2 || s.Dials != 1 || s.Conns != 1 || s.UDP.Sent == 0 {
		t.Errorf("stats %+v", s)
	}
}

// TestAltSvcClear: an origin takes back what it has announced.
func TestAltSvcClear(t *testing.T) {
	t.Parallel()
	clear := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Alt-Svc", "clear") })
	p := newPlace(t, say("x"), `h3=":PORT"`)
	p.serveQUIC(clear)
	tr := p.transport(HTTP3AfterAltSvc)
	wantProto(t, tr, p.url, "HTTP/2.0")
	wantProto(t, tr, p.url, "HTTP/3.0")
	wantProto(t, tr, p.url, "HTTP/2.0")
}

// TestAltSvcElsewhere: HTTP/3 at another host and port has to have the origin's certificate.
func TestAltSvcElsewhere(t *testing.T) {
	t.Parallel()
	other := newPlace(t, say("other"), "")
	other.serveQUIC(say("alternative"))
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(other.url, "https://"))
	p := newPlace(t, say("x"), `h3="127.0.0.1:`+port+`"`)
	tr := p.transport(HTTP3AfterAltSvc)
	wantProto(t, tr, p.url, "HTTP/2.0")
	if proto, body := get(t, tr, p.url); proto != "HTTP/3.0" || body != "alternative" {
		t.Errorf("by %s, from %q", proto, body)
	}
}

// TestModes: what each mode does where an origin has not announced HTTP/3.
func TestModes(t *testing.T) {
	t.Parallel()
	p := newPlace(t, say("x"), "")
	p.serveQUIC(say("x"))
	wantProto(t, p.transport(HTTP3Prefer), p.url, "HTTP/3.0")
	wantProto(t, p.transport(HTTP3Always), p.url, "HTTP/3.0")
	wantProto(t, p.transport(HTTP3Never), p.url, "HTTP/2.0")
	wantProto(t, p.transport(HTTP3AfterAltSvc), p.url, "HTTP/2.0")
}

// TestUDPBlocked: where nothing answers, a request goes by TCP after FallbackDelay, and those that follow at once, until
// the rest is over.
func TestUDPBlocked(t *testing.T) {
	t.Parallel()
	p := newPlace(t, say("x"), "")
	tr := p.transport(HTTP3Prefer)
	tr.FallbackDelay, tr.HandshakeTimeout = 50*time.Millisecond, 200*time.Millisecond
	now := time.Now()
	var later atomic.Int64
	tr.now = func() time.Time { return now.Add(time.Duration(later.Load())) }
	wantProto(t, tr, p.url, "HTTP/2.0")
	await(t, func() bool { return tr.Stats().DialsFailed == 1 })
	wantProto(t, tr, p.url, "HTTP/2.0")
	if s := tr.Stats(); s.Dials != 1 || s.FellBack != 2 {
		t.Errorf("stats %+v, want one dial", s)
	}
	later.Store(int64(firstRest + time.Second))
	wantProto(t, tr, p.url, "HTTP/2.0")
	await(t, func() bool { return tr.Stats().DialsFailed == 2 })
	later.Add(int64(firstRest + time.Second)) // the second rest is twice as long
	wantProto(t, tr, p.url, "HTTP/2.0")
	if s := tr.Stats(); s.Dials != 2 {
		t.Errorf("%d dials, want 2", s.Dials)
	}
	p.serveQUIC(say("x"))
	later.Add(int64(2 * firstRest))
	await(t, func() bool { proto, _ := get(t, tr, p.url); return proto == "HTTP/3.0" })
}

// TestAlwaysFails: without HTTP/3 there is an error, which names the origin; the context ends the wait.
func TestAlwaysFails(t *testing.T) {
	t.Parallel()
	p := newPlace(t, say("x"), "")
	tr := p.transport(HTTP3Always)
	tr.HandshakeTimeout = 100 * time.Millisecond
	body := &watchedBody{Reader: strings.NewReader("x")}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url, body)
	_, err := tr.RoundTrip(req)
	if err == nil || !strings.Contains(err.Error(), strings.TrimPrefix(p.url, "https://")) {
		t.Errorf("error %v, want one that names %s", err, p.url)
	}
	if !body.closed.Load() {
		t.Error("the request's body is open")
	}

	patient := p.transport(HTTP3Always)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	req, _ = http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
	if _, err := patient.RoundTrip(req); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want the context's", err)
	}
}

type watchedBody struct {
	io.Reader
	closed atomic.Bool
}

func (b *watchedBody) Close() error { b.closed.Store(true); return nil }

// TestGoAway: a server that shuts HTTP/3 down costs no request.
func TestGoAway(t *testing.T) {
	t.Parallel()
	p := newPlace(t, say("x"), "")
	p.serveQUIC(say("x"))
	tr := p.transport(HTTP3Prefer)
	stop, requests := make(chan struct{}), sync.WaitGroup{}
	var byTCP, byQUIC atomic.Int64
	for range 4 {
		requests.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url, strings.NewReader("body"))
				res, err := tr.RoundTrip(req)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
				if res.ProtoMajor == 3 {
					byQUIC.Add(1)
				} else {
					byTCP.Add(1)
				}
			}
		})
	}
	await(t, func() bool { return byQUIC.Load() > 20 })
	_ = p.ln.Close() // refuses new connections
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := p.h3.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	await(t, func() bool { return byTCP.Load() > 20 })
	close(stop)
	requests.Wait()
}

// TestConnectionGone: a connection that was closed is not used again.
func TestConnectionGone(t *testing.T) {
	t.Parallel()
	p := newPlace(t, say("x"), "")
	p.serveQUIC(say("x"))
	tr := p.transport(HTTP3Always)
	wantProto(t, tr, p.url, "HTTP/3.0")
	_ = p.h3.Close()
	_ = p.quic.Close()
	p.crashQUIC()
	p.serveQUIC(say("y"))
	await(t, func() bool { return tr.Stats().Conns == 0 })
	if _, body := get(t, tr, p.url); body != "y" {
		t.Errorf("answer %q", body)
	}
	if s := tr.Stats(); s.Dials != 2 {
		t.Errorf("%d dials, want 2", s.Dials)
	}
}

// TestManyRequests: more than the peer's limit of streams wait for their turn.
func TestManyRequests(t *testing.T) {
	t.Parallel()
	p := newPlace(t, say("x"), "")
	p.serveQUIC(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		_, _ = w.Write(b)
	}))
	tr := p.transport(HTTP3Always)
	var requests sync.WaitGroup
	for range 64 {
		requests.Go(func() {
			for range 5 {
				want := strings.Repeat("x", 3000)
				req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url, strings.NewReader(want))
				res, err := tr.RoundTrip(req)
				if err != nil {
					t.Error(err)
					return
				}
				b, err := io.ReadAll(res.Body)
				_ = res.Body.Close()
				if err != nil || string(b) != want {
					t.Errorf("answer of %d bytes, %v", len(b), err)
				}
			}
		})
	}
	requests.Wait()
	if s := tr.Stats(); s.HTTP3 != 320 || s.Dials != 1 {
		t.Errorf("stats %+v", s)
	}
}

// TestOriginsAreLimited: the one that was not used for the longest is forgotten, and its connection closed.
func TestOriginsAreLimited(t *testing.T) {
	t.Parallel()
	a, b := newPlace(t, say("a"), ""), newPlace(t, say("b"), "")
	a.serveQUIC(say("a"))
	b.serveQUIC(say("b"))
	tr := a.transport(HTTP3Always)
	tr.MaxOrigins = 1
	for range 2 {
		wantProto(t, tr, a.url, "HTTP/3.0")
		wantProto(t, tr, b.url, "HTTP/3.0")
	}
	if s := tr.Stats(); s.Origins != 1 || s.Conns != 1 || s.Dials != 4 {
		t.Errorf("stats %+v", s)
	}
}

// TestIdle: a connection without requests is closed, one whose response is being read is not.
func TestIdle(t *testing.T) {
	t.Parallel()
	p := newPlace(t, say("x"), "")
	p.serveQUIC(say(strings.Repeat("x", 1<<20)))
	tr := p.transport(HTTP3Always)
	tr.IdleTimeout = 50 * time.Millisecond
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url, nil)
	res, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	tr.CloseIdleConnections()
	if b, err := io.ReadAll(res.Body); err != nil || len(b) != 1<<20 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	_ = res.Body.Close()
	await(t, func() bool { return tr.Stats().Conns == 0 })
}

// TestTransportClose: requests after Close fail, as do those on their way.
func TestTransportClose(t *testing.T) {
	t.Parallel()
	p := newPlace(t, say("x"), "")
	hung := make(chan struct{})
	p.serveQUIC(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(hung)
		<-r.Context().Done()
	}))
	tr := p.transport(HTTP3Always)
	failed := make(chan error)
	go func() {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url, nil)
		_, err := tr.RoundTrip(req)
		failed <- err
	}()
	<-hung
	if err := tr.Close(); err != nil {
		t.Error(err)
	}
	if err := <-failed; err == nil {
		t.Error("a request outlived Close")
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url, nil)
	if _, err := tr.RoundTrip(req); !errors.Is(err, net.ErrClosed) {
		t.Errorf("error %v, want net.ErrClosed", err)
	}
	if err := tr.Close(); err != nil {
		t.Error(err)
	}
	if err := (&Transport{}).Close(); err != nil {
		t.Error(err)
	}
}

// TestUnsound: a request that is wrong gets http.Transport's error, and is not sent by HTTP/3.
func TestUnsound(t *testing.T) {
	t.Parallel()
	p := newPlace(t, say("x"), "")
	p.serveQUIC(say("x"))
	tr := p.transport(HTTP3Always)
	for name, change := range map[string]func(*http.Request){
		"header": func(r *http.Request) { r.Header["a b"] = []string{"x"} },
		"value":  func(r *http.Request) { r.Header.Set("A", "x\n") },
		"method": func(r *http.Request) { r.Method = "G T" },
		"host":   func(r *http.Request) { r.URL = &url.URL{Scheme: "https"} },
		"scheme": func(r *http.Request) { r.URL.Scheme = "gopher" },
		"url":    func(r *http.Request) { r.URL = nil },
	} {
		t.Run(name, func(t *testing.T) {
			body := &watchedBody{Reader: strings.NewReader("x")}
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url, body)
			change(req)
			if _, err := tr.RoundTrip(req); err == nil {
				t.Error("no error")
			}
			if !body.closed.Load() {
				t.Error("the request's body is open")
			}
		})
	}
	if s := tr.Stats(); s.Dials != 0 {
		t.Errorf("%d dials", s.Dials)
	}
}

// TestProxy: what goes by a proxy goes by TCP.
func TestProxy(t *testing.T) {
	t.Parallel()
	p := newPlace(t, say("x"), "")
	p.serveQUIC(say("x"))
	refused := errors.New("asked for the proxy")
	tr := p.transport(HTTP3Always)
	tr.TCP = &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return nil, refused }}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url, nil)
	if _, err := tr.RoundTrip(req); !errors.Is(err, refused) {
		t.Errorf("error %v, want that of Proxy", err)
	}
}

func await(t *testing.T, done func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited for 20 s in vain")
		}
	}
}
