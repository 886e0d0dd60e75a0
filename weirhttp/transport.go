package weirhttp

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/weirnet/weir/dgram"
)

// HTTP3Mode says when a Transport uses HTTP/3.
type HTTP3Mode uint8

const (
	// HTTP3AfterAltSvc uses it once an origin has announced it by Alt-Svc.
	HTTP3AfterAltSvc HTTP3Mode = iota

	// HTTP3Prefer tries it with every https origin, and falls back to TCP.
	HTTP3Prefer

	// HTTP3Always uses nothing else, for https origins.
	HTTP3Always

	// HTTP3Never uses TCP alone.
	HTTP3Never
)

// Transport is an http.RoundTripper that uses HTTP/3 by choice, or where an origin has announced it (Alt-Svc, RFC 7838),
// and TCP with HTTP/2 or 1.1 else. A request is never sent twice at the same time: what races is the QUIC handshake, for
// which a request waits FallbackDelay; then it goes by TCP, and the handshake goes on for those that follow. So where
// UDP is blocked, a request is late by that once a minute, then once in two, up to an hour. What goes by a proxy goes by
// TCP.
//
// A request is sent again where it was not processed for sure, or is safe to repeat: as http.Transport does.
//
// The zero Transport works. It must not be copied, nor changed once it is used; its methods are for any goroutine. Of
// fields that are a number or a duration zero stands for the default. Close ends it.
type Transport struct {
	// TLSClientConfig is for TCP and QUIC. It is cloned; the protocols are set. Default: that of crypto/tls.
	TLSClientConfig *tls.Config

	// HTTP3 says when HTTP/3 is used.
	HTTP3 HTTP3Mode

	// TCP is for requests that do not go by HTTP/3. Default: one like http.DefaultTransport with TLSClientConfig, which
	// Close closes; one that is given has its own TLS configuration, and stays the caller's.
	TCP *http.Transport

	// HandshakeTimeout is how long a QUIC handshake may take. Default: 10 s.
	HandshakeTimeout time.Duration

	// IdleTimeout is how long a QUIC connection stays open without a request. Default: 90 s; negative: until it breaks.
	IdleTimeout time.Duration

	// FallbackDelay is how long a request waits for a QUIC handshake before it goes by TCP. Default: 300 ms; negative:
	// until it is over.
	FallbackDelay time.Duration

	// MaxOrigins is how many origins are remembered, each with at most one QUIC connection; those that were not used for
	// the longest are forgotten. Default: 256.
	MaxOrigins int

	// MaxResponseHeaderBytes limits the headers of a response. Default: 1 MiB.
	MaxResponseHeaderBytes int

	// DisableCompression has requests not ask for gzip, which else is undone where the program did not ask for it.
	DisableCompression bool

	// UDP is how the UDP socket of all QUIC connections is opened.
	UDP dgram.Config

	// Logger hears, at level debug, why HTTP/3 was not used. Default: nobody.
	Logger *slog.Logger

	now func() time.Time // for tests; nil: time.Now

	mu      sync.Mutex
	begun   bool                     // guarded by mu, as all below
	closed  bool                     //
	origins map[string]*list.Element // of *origin, by host:port
	recent  list.List                // of *origin, the one used last first
	stats   TransportStats
	ctx     context.Context // of dials; ends with Close
	cancel  context.CancelFunc
	work    sync.WaitGroup // dials
	udp     *dgram.Conn
	quic    *quic.Transport
	h3      *http3.Transport // makes client connections
	tcp     *http.Transport
}

// TransportStats is what a Transport has done so far, and what is so now.
type TransportStats struct {
	HTTP1 uint64 // responses, by protocol
	HTTP2 uint64
	HTTP3 uint64

	Dials       uint64 // QUIC handshakes begun
	DialsFailed uint64
	FellBack    uint64 // requests that wanted HTTP/3 and went by TCP
	SentAgain   uint64 // requests that were sent again

	Origins int // that are remembered
	Conns   int // QUIC connections that are open
	UDP     dgram.Stats
}

// ErrTransportClosed is the answer of a Transport that has been closed. It matches net.ErrClosed.
var ErrTransportClosed = fmt.Errorf("weirhttp: transport closed: %w", net.ErrClosed)

// errNoHTTP3 says that a request is to go by TCP.
var errNoHTTP3 = errors.New("no HTTP/3")

// RoundTrip sends a request, and returns its response: see http.RoundTripper.
//
//   - Errors: those of http.Transport; of http3 and quic-go where HTTP/3 was used.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := t.begin(); err != nil {
		closeBody(req)
		return nil, err
	}
	if t.HTTP3 == HTTP3Never || !sound(req) || t.proxied(req) {
		return t.overTCP(req, "")
	}
	key := originOf(req.URL)
	again := req
	for attempt := range maxAttempts {
		c, err := t.acquire(req.Context(), key)
		if err == errNoHTTP3 {
			return t.overTCP(again, key)
		}
		if err != nil {
			closeBody(again)
			return nil, err
		}
		if attempt > 0 {
			t.count(func(s *TransportStats) { s.SentAgain++ })
		}
		res, sent, err := t.overHTTP3(c, again, req)
		if err == nil {
			t.learn(key, res.Header)
			return res, nil
		}
		next, ok := t.repeat(c, again, sent, err)
		t.release(c)
		if !ok || attempt == maxAttempts-1 || req.Context().Err() != nil {
			closeBody(again)
			return nil, err
		}
		again = next
	}
	panic("unreachable")
}

// maxAttempts is how often a request is sent at most: a connection that was there may have gone, and the next one, too.
const maxAttempts = 3

// overTCP sends the request by HTTP/1.1 or 2, and learns from its response whether the origin has HTTP/3.
func (t *Transport) overTCP(req *http.Request, key string) (*http.Response, error) {
	res, err := t.tcp.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	t.count(func(s *TransportStats) {
		if res.ProtoMajor == 2 {
			s.HTTP2++
		} else {
			s.HTTP1++
		}
	})
	if key != "" {
		t.learn(key, res.Header)
	}
	return res, nil
}

// overHTTP3 sends the request on a connection, which is released when the response's body is closed.
func (t *Transport) overHTTP3(c *client, req, original *http.Request) (_ *http.Response, sent bool, err error) {
	tracedReq, wrote := traced(req)
	res, err := c.h3.RoundTrip(tracedReq)
	if err != nil {
		return nil, wrote.Load(), err
	}
	res.Request = original
	res.Body = &countedBody{ReadCloser: res.Body, release: sync.OnceFunc(func() { t.release(c) })}
	t.count(func(s *TransportStats) { s.HTTP3++ })
	return res, true, nil
}

// countedBody tells when the response is over.
type countedBody struct {
	io.ReadCloser
	release func()
}

func (b *countedBody) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}

func (t *Transport) count(f func(*TransportStats)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(&t.stats)
}

// Stats tells what the Transport has done so far.
func (t *Transport) Stats() TransportStats {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.stats
	s.Origins = t.recent.Len()
	for e := t.recent.Front(); e != nil; e = e.Next() {
		if c := e.Value.(*origin).client; c != nil && c.usable() {
			s.Conns++
		}
	}
	if t.udp != nil {
		s.UDP = t.udp.Stats()
	}
	return s
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}
