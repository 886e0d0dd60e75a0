package weirhttp

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// testOrigin is a server of HTTP/1.1 and 2 over TCP and of HTTP/3 over UDP, on one port number of 127.0.0.1.
type testOrigin struct {
	t       *testing.T
	handler http.Handler
	cert    tls.Certificate
	config  *quic.Config                   // of what listens next
	take    func(n int, c *quic.Conn) bool // takes the n-th QUIC connection out of http3's hands
	altSvc  atomic.Value                   // string: on each response
	work    sync.WaitGroup

	port string
	tcp  net.Listener
	web  *http.Server
	udp  *net.UDPConn
	quic *quic.Transport
	ln   *quic.EarlyListener
	h3   *http3.Server
}

// newTestOrigin makes a server that listens on neither TCP nor UDP; nil answers as sayProto does.
func newTestOrigin(t *testing.T, h http.HandlerFunc) *testOrigin {
	t.Helper()
	if h == nil {
		h = sayProto
	}
	o := &testOrigin{t: t, cert: testCert()}
	o.altSvc.Store("")
	o.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if v := o.altSvc.Load().(string); v != "" {
			w.Header().Set("Alt-Svc", v)
		}
		h(w, r)
	})
	t.Cleanup(func() {
		o.stopTCP()
		o.stopQUIC()
		o.work.Wait()
	})
	return o
}

// serveBoth makes a server that listens on TCP and UDP, and announces HTTP/3.
func serveBoth(t *testing.T, h http.HandlerFunc) *testOrigin {
	t.Helper()
	o := newTestOrigin(t, h)
	for range 20 { // until a port is free for both
		o.listenTCP()
		if o.listenQUIC() == nil {
			o.altSvc.Store(`h3=":` + o.port + `"`)
			return o
		}
		o.stopTCP()
		o.port = ""
	}
	t.Fatal("no port is free for TCP and UDP")
	return nil
}

func sayProto(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	_, _ = io.WriteString(w, r.Proto)
}

func (o *testOrigin) addr() string { return net.JoinHostPort("127.0.0.1", cmp.Or(o.port, "0")) }
func (o *testOrigin) url() string  { return "https://" + o.addr() + "/" }

func (o *testOrigin) listenTCP() {
	o.t.Helper()
	var err error
	if o.tcp, err = net.Listen("tcp", o.addr()); err != nil {
		o.t.Fatal(err)
	}
	_, o.port, _ = net.SplitHostPort(o.tcp.Addr().String())
	o.web = &http.Server{
		Handler: o.handler, TLSConfig: &tls.Config{Certificates: []tls.Certificate{o.cert}},
		ErrorLog: log.New(io.Discard, "", 0), // of clients that went
	}
	web, ln := o.web, o.tcp
	o.work.Go(func() { _ = web.ServeTLS(ln, "", "") })
}

func (o *testOrigin) stopTCP() {
	if o.web != nil {
		_ = o.web.Close()
		o.web = nil
	}
}

// bindUDP opens a socket that nobody reads.
func (o *testOrigin) bindUDP() error {
	port, _ := strconv.Atoi(cmp.Or(o.port, "0"))
	udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
	if err == nil {
		_, o.port, _ = net.SplitHostPort(udp.LocalAddr().String())
		o.udp = udp
	}
	return err
}

func (o *testOrigin) listenQUIC() error {
	if o.udp == nil {
		if err := o.bindUDP(); err != nil {
			return err
		}
	}
	o.quic = &quic.Transport{Conn: o.udp}
	var err error
	o.ln, err = o.quic.ListenEarly(http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{o.cert}}), o.config)
	if err != nil {
		return err
	}
	o.serveQUIC()
	return nil
}

// serveQUIC has a new http3.Server take the connections.
func (o *testOrigin) serveQUIC() {
	o.h3 = &http3.Server{Handler: o.handler}
	h3, ln := o.h3, &takingListener{EarlyListener: o.ln, take: o.take}
	o.work.Go(func() { _ = h3.ServeListener(ln) })
}

// stopQUIC closes the connections, of which the clients hear.
func (o *testOrigin) stopQUIC() {
	if o.h3 != nil {
		_ = o.h3.Close()
	}
	o.killQUIC()
}

// killQUIC ends the QUIC server without a word to the clients.
func (o *testOrigin) killQUIC() {
	if o.quic != nil {
		_ = o.quic.Close()
		o.quic = nil
	}
	if o.h3 != nil {
		_ = o.h3.Close()
		o.h3 = nil
	}
	if o.udp != nil {
		_ = o.udp.Close()
		o.udp = nil
	}
}

// takingListener keeps connections from http3.
type takingListener struct {
	*quic.EarlyListener
	take func(n int, c *quic.Conn) bool
	n    int
}

func (l *takingListener) Accept(ctx context.Context) (*quic.Conn, error) {
	for {
		c, err := l.EarlyListener.Accept(ctx)
		if err != nil || l.take == nil {
			return c, err
		}
		l.n++
		if !l.take(l.n, c) {
			return c, nil
		}
	}
}

// eachStream calls f with each stream that a client opens on a connection, until that ends.
func (o *testOrigin) eachStream(c *quic.Conn, f func(*quic.Stream)) {
	o.work.Go(func() {
		for {
			s, err := c.AcceptStream(context.Background())
			if err != nil {
				return
			}
			f(s)
		}
	})
}

// testTransport closes with the test, and trusts the origins' certificates.
func testTransport(t *testing.T, tr *Transport) *Transport {
	t.Helper()
	if tr.TLSClientConfig == nil {
		roots := x509.NewCertPool()
		roots.AddCert(testCert().Leaf)
		tr.TLSClientConfig = &tls.Config{RootCAs: roots}
	}
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return tr
}

// originRequest makes one that has patience.
func originRequest(t *testing.T, method, url string, body io.Reader) *http.Request {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// fetchFrom sends a request, and reads the response.
func fetchFrom(tr *Transport, req *http.Request) (body string, res *http.Response, err error) {
	if res, err = tr.RoundTrip(req); err != nil {
		return "", nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return string(b), res, err
}

// wantProto sends a GET, which has to be answered by a protocol.
func wantProto(t *testing.T, tr *Transport, url, proto string) {
	t.Helper()
	_, res, err := fetchFrom(tr, originRequest(t, "GET", url, nil))
	if err != nil {
		t.Fatalf("GET %s: %v", url, err)
	}
	if res.Proto != proto || res.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %d by %s, want 200 by %s", url, res.StatusCode, res.Proto, proto)
	}
}

// testClock is what a Transport takes for the time.
type testClock struct{ since atomic.Int64 }

func (c *testClock) now() time.Time          { return time.Unix(1e9, 0).Add(time.Duration(c.since.Load())) }
func (c *testClock) advance(d time.Duration) { c.since.Add(int64(d)) }

// trackedBody counts how often it is closed.
type trackedBody struct {
	io.Reader
	closed atomic.Int32
}

func (b *trackedBody) Close() error {
	b.closed.Add(1)
	return nil
}

func newTrackedBody(s string) *trackedBody { return &trackedBody{Reader: strings.NewReader(s)} }

// wantClosed waits until a body is closed: that may be after RoundTrip has returned.
func wantClosed(t *testing.T, b *trackedBody) {
	t.Helper()
	eventually(t, "the request's body is closed", func() bool { return b.closed.Load() > 0 })
}

// isDeadline tells that a deadline has passed.
func isDeadline(err error) bool { return errors.Is(err, context.DeadlineExceeded) }

// stringBody is one that can be had again; "" is none.
func stringBody(s string) io.Reader {
	if s == "" {
		return nil
	}
	return strings.NewReader(s)
}

func echoBody(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(b)
}
