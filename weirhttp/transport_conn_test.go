package weirhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// A server that has gone without a word, and one that says so: the next request succeeds, on a new connection.
func TestTransportRestart(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*testOrigin){"killed": (*testOrigin).killQUIC, "closed": (*testOrigin).stopQUIC} {
		o := newTestOrigin(t, nil)
		if err := o.listenQUIC(); err != nil {
			t.Fatal(err)
		}
		tr := testTransport(t, &Transport{HTTP3: HTTP3Always, silence: 200 * time.Millisecond})
		wantProto(t, tr, o.url(), "HTTP/3.0")
		stop(o)
		if err := o.listenQUIC(); err != nil {
			t.Fatal(err)
		}
		wantProto(t, tr, o.url(), "HTTP/3.0")
		if s := tr.Stats(); s.Dials < 2 || s.HTTP3 != 2 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// A peer that is silent fails what is not safe to repeat.
func TestTransportSilentPost(t *testing.T) {
	t.Parallel()
	o := newTestOrigin(t, nil)
	if err := o.listenQUIC(); err != nil {
		t.Fatal(err)
	}
	tr := testTransport(t, &Transport{HTTP3: HTTP3Always, silence: 100 * time.Millisecond})
	wantProto(t, tr, o.url(), "HTTP/3.0")
	o.killQUIC()
	body := newTrackedBody("body")
	if _, err := tr.RoundTrip(originRequest(t, "POST", o.url(), body)); err == nil || isDeadline(err) {
		t.Errorf("RoundTrip: %v", err)
	}
	wantClosed(t, body)
	if s := tr.Stats(); s.Repeats != 0 {
		t.Errorf("Stats: %+v", s)
	}
}

// A slow response is not silence: the packets of the request are acknowledged.
func TestTransportSlowResponse(t *testing.T) {
	t.Parallel()
	o := serveBoth(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Second)
		sayProto(w, r)
	})
	tr := testTransport(t, &Transport{HTTP3: HTTP3Always, silence: 500 * time.Millisecond})
	for range 2 {
		wantProto(t, tr, o.url(), "HTTP/3.0")
	}
	if s := tr.Stats(); s.Dials != 1 || s.Repeats != 0 {
		t.Errorf("Stats: %+v", s)
	}
}

// A server that shuts down (GOAWAY) during traffic fails no request: those in progress end, the others go to the next.
func TestTransportGoAway(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]HTTP3Mode{"after Alt-Svc": HTTP3AfterAltSvc, "prefer": HTTP3Prefer, "always": HTTP3Always} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			goAwayInTraffic(t, mode)
		})
	}
}

func goAwayInTraffic(t *testing.T, mode HTTP3Mode) {
	const clients, restarts = 8, 3
	o := serveBoth(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Millisecond)
		sayProto(w, r)
	})
	tr := testTransport(t, &Transport{HTTP3: mode, FallbackDelay: -1})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	var done atomic.Int64
	for i := range clients {
		all.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				req := originRequest(t, "GET", o.url(), nil)
				if n%2 == 0 {
					req = originRequest(t, "POST", o.url(), stringBody("body"))
				}
				if got, res, err := fetchFrom(tr, req); err != nil || got != res.Proto {
					t.Errorf("%s: %q, %v", req.Method, got, err)
					return
				}
				done.Add(1)
			}
		})
	}
	traffic := func() {
		enough := done.Load() + 50
		eventually(t, "traffic", func() bool { return done.Load() > enough || t.Failed() })
	}
	for range restarts {
		traffic()
		old := o.h3
		o.serveQUIC() // takes the connections from now on, as a new process would that shares the socket
		shutdown, cancel := context.WithTimeout(t.Context(), patience)
		if err := old.Shutdown(shutdown); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		cancel()
	}
	traffic()
	stop()
	all.Wait()
	if s := tr.Stats(); s.HTTP3 < 100 || s.Dials < restarts+1 || s.HTTP2 > clients && s.Fallbacks == (TransportFallbacks{}) {
		t.Errorf("Stats: %+v", s)
	}
}

// More requests than the server takes at once wait, and none fails.
func TestTransportStreamLimit(t *testing.T) {
	t.Parallel()
	const limit, requests = 4, 64
	var now, most atomic.Int64
	o := newTestOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		time.Sleep(2 * time.Millisecond)
		now.Add(-1)
		sayProto(w, r)
	})
	o.config = &quic.Config{MaxIncomingStreams: limit}
	if err := o.listenQUIC(); err != nil {
		t.Fatal(err)
	}
	tr := testTransport(t, &Transport{HTTP3: HTTP3Always})
	var all sync.WaitGroup
	for range requests {
		all.Go(func() {
			if _, _, err := fetchFrom(tr, originRequest(t, "POST", o.url(), stringBody("body"))); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if s := tr.Stats(); s.HTTP3 != requests || s.Dials != 1 || most.Load() > limit {
		t.Errorf("%d at once: %+v", most.Load(), s)
	}
}

// A request that waits for a stream, or for its response, ends with its context, and the connection stays as it is.
func TestTransportCancel(t *testing.T) {
	t.Parallel()
	leave := make(chan struct{})
	o := newTestOrigin(t, func(w http.ResponseWriter, r *http.Request) { <-leave })
	t.Cleanup(func() { close(leave) })
	o.config = &quic.Config{MaxIncomingStreams: 1}
	if err := o.listenQUIC(); err != nil {
		t.Fatal(err)
	}
	tr := testTransport(t, &Transport{HTTP3: HTTP3Always})
	first, cancelFirst := context.WithCancel(t.Context())
	result := make(chan error, 1)
	bodies := [2]*trackedBody{newTrackedBody("body"), newTrackedBody("body")}
	go func() {
		_, err := tr.RoundTrip(originRequest(t, "POST", o.url(), bodies[0]).WithContext(first))
		result <- err
	}()
	eventually(t, "the first request has a connection", func() bool { return tr.Stats().Conns == 1 })
	wantClosed(t, bodies[0]) // it was sent
	second, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := tr.RoundTrip(originRequest(t, "POST", o.url(), bodies[1]).WithContext(second)); !isDeadline(err) {
		t.Errorf("the second request: %v", err)
	}
	wantClosed(t, bodies[1])
	tr.core.mu.Lock()
	if tr.core.recent.Front().Value.(*origin).conn == nil {
		t.Error("the connection takes no more requests")
	}
	tr.core.mu.Unlock()
	cancelFirst()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("the first request: %v", err)
	}
	// The server takes no other request while its handler sleeps, but the connection is as good as before.
	third, cancelThird := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancelThird()
	if _, err := tr.RoundTrip(originRequest(t, "GET", o.url(), nil).WithContext(third)); !isDeadline(err) {
		t.Errorf("the third request: %v", err)
	}
	if s := tr.Stats(); s.Conns != 1 || s.Dials != 1 || s.Repeats != 0 {
		t.Errorf("Stats: %+v", s)
	}
}

// "How long a connection stays open without a request", and that a response counts as used until its body ends.
func TestTransportIdle(t *testing.T) {
	t.Parallel()
	o := serveBoth(t, nil)
	tr := testTransport(t, &Transport{HTTP3: HTTP3Always, IdleTimeout: 50 * time.Millisecond})
	res, err := tr.RoundTrip(originRequest(t, "GET", o.url(), nil))
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	tr.CloseIdleConnections()
	if s := tr.Stats(); s.Conns != 1 {
		t.Errorf("the connection was closed with a response open: %+v", s)
	}
	_ = res.Body.Close()
	eventually(t, "the connection is closed", func() bool { return tr.Stats().Conns == 0 })

	kept := testTransport(t, &Transport{HTTP3: HTTP3Always, IdleTimeout: -1})
	wantProto(t, kept, o.url(), "HTTP/3.0")
	kept.CloseIdleConnections()
	eventually(t, "the idle connection is closed", func() bool { return kept.Stats().Conns == 0 })
	wantProto(t, kept, o.url(), "HTTP/3.0")
}

// "Close closes all QUIC connections, whose peers are told", also one that has a request.
func TestTransportCloseTells(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{}, 1)
	o := newTestOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		<-r.Context().Done()
	})
	conns := make(chan *quic.Conn, 2)
	o.take = func(_ int, c *quic.Conn) bool {
		conns <- c
		return false
	}
	if err := o.listenQUIC(); err != nil {
		t.Fatal(err)
	}
	tr := testTransport(t, &Transport{HTTP3: HTTP3Always})
	result := make(chan error, 1)
	go func() {
		_, err := tr.RoundTrip(originRequest(t, "GET", o.url(), nil))
		result <- err
	}()
	<-entered
	if err := tr.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if err := <-result; !errors.Is(err, ErrTransportClosed) {
		t.Errorf("the request: %v", err)
	}
	c := <-conns
	select {
	case <-c.Context().Done():
	case <-time.After(patience):
		t.Fatal("the server did not hear of the end")
	}
	e, ok := errors.AsType[*quic.ApplicationError](context.Cause(c.Context()))
	if !ok || !e.Remote || e.ErrorCode != quic.ApplicationErrorCode(http3.ErrCodeNoError) {
		t.Errorf("the connection ended by %v", context.Cause(c.Context()))
	}
}

// Many goroutines, several origins, bodies both ways.
func TestTransportConcurrent(t *testing.T) {
	t.Parallel()
	origins := []*testOrigin{serveBoth(t, echoBody), serveBoth(t, echoBody), serveBoth(t, echoBody)}
	tr := testTransport(t, &Transport{HTTP3: HTTP3Prefer, MaxConns: 2, MaxOrigins: 2})
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			for n := range 10 {
				o := origins[(i+n/3)%len(origins)]
				want := fmt.Sprint(i, n)
				if got, _, err := fetchFrom(tr, originRequest(t, "PUT", o.url(), stringBody(want))); err != nil || got != want {
					t.Errorf("%q came back as %q, %v", want, got, err)
				}
				if i == 0 {
					tr.CloseIdleConnections()
					_ = tr.Stats()
				}
			}
		})
	}
	all.Wait()
	if s := tr.Stats(); s.HTTP3+s.HTTP2 != 640 || s.HTTP3 == 0 || s.Origins != 2 {
		t.Errorf("Stats: %+v", s)
	}
}

// stuckBody is one that nothing comes of until it is closed.
type stuckBody struct {
	closed chan struct{}
	times  atomic.Int32
}

func (b *stuckBody) Read([]byte) (int, error) {
	<-b.closed
	return 0, io.ErrClosedPipe
}

func (b *stuckBody) Close() error {
	if b.times.Add(1) == 1 {
		close(b.closed)
	}
	return nil
}

// "RoundTrip must always close the body": also one that it waits for more of, when the request was cancelled, and when the
// response that did not wait for it was closed. It does so once.
func TestTransportStuckBody(t *testing.T) {
	t.Parallel()
	o := serveBoth(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/early" {
			<-r.Context().Done()
		}
	})
	for _, path := range []string{"", "early"} {
		tr := testTransport(t, &Transport{HTTP3: HTTP3Always})
		body := &stuckBody{closed: make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		if path == "" {
			time.AfterFunc(100*time.Millisecond, cancel)
		}
		res, err := tr.RoundTrip(originRequest(t, "POST", o.url()+path, body).WithContext(ctx))
		if err == nil {
			_ = res.Body.Close()
		}
		eventually(t, "the body of /"+path+" is closed", func() bool { return body.times.Load() > 0 })
		eventually(t, "the connection is not used any more", func() bool {
			tr.CloseIdleConnections()
			return tr.Stats().Conns == 0
		})
		if n := body.times.Load(); n != 1 {
			t.Errorf("/%s: the body was closed %d times", path, n)
		}
		cancel()
	}
}

// lateContext ends when it has been asked once.
type lateContext struct {
	context.Context
	asked atomic.Bool
}

func (c *lateContext) Err() error {
	if c.asked.Swap(true) {
		return context.Canceled
	}
	return nil
}

// A request whose context ends just as its connection is there either uses that or does not count as one that does.
func TestTransportCancelAtLast(t *testing.T) {
	t.Parallel()
	o := serveBoth(t, nil)
	tr := testTransport(t, &Transport{HTTP3: HTTP3Always})
	wantProto(t, tr, o.url(), "HTTP/3.0")
	tr.mu.Lock()
	c := tr.core
	tr.mu.Unlock()
	c.mu.Lock()
	conn := c.recent.Front().Value.(*origin).conn
	conn.takeLocked()
	c.mu.Unlock()
	d := &originDial{origin: conn.origin, done: make(chan struct{}), conn: conn}
	close(d.done)
	if r, err := c.await(&lateContext{Context: t.Context()}, d); err == nil {
		r.conn.release()
	}
	tr.CloseIdleConnections()
	eventually(t, "the connection is closed", func() bool { return tr.Stats().Conns == 0 })
}
