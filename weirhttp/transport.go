package weirhttp

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/weirnet/weir/dgram"
)

// HTTP3Mode says when a Transport uses HTTP/3.
type HTTP3Mode uint8

const (
	// HTTP3AfterAltSvc uses it once an origin has announced it by Alt-Svc, and as long as the announcement holds.
	HTTP3AfterAltSvc HTTP3Mode = iota

	// HTTP3Prefer tries it with every https origin, and falls back to TCP.
	HTTP3Prefer

	// HTTP3Always uses nothing else for https: what fails is an error. It looks at neither Alt-Svc nor proxies.
	HTTP3Always

	// HTTP3Never uses TCP alone.
	HTTP3Never
)

// Transport is an http.RoundTripper that uses HTTP/3 where an origin has announced it (Alt-Svc, RFC 7838) or where it is
// told to, and else HTTP/2 or 1.1 over TCP: for http, for origins behind a proxy, for upgrades (websockets), and where UDP
// does not get through.
//
// What races is the QUIC handshake, never the request: a request waits for the handshake FallbackDelay at most, counted
// from where that began, and then goes by TCP; the handshake goes on for the requests that follow. Where it fails HTTP/3
// rests for a minute, then for twice as long each time, an hour at most. So a network without UDP costs FallbackDelay now
// and then, and nothing else.
//
// A request is sent again, up to four times in all, where that is safe: none of it went out; or the server says that it did
// not process it (H3_REQUEST_REJECTED); or the connection broke, and the method is idempotent (RFC 9110 section 9.2.2) or
// there is an Idempotency-Key. A body that may have been read has to be had again by Request.GetBody.
//
// In every field that is a number or a duration zero stands for the default, and a negative number for none. The zero
// Transport works. It must not be copied, nor changed once it is used; its methods are for any goroutine.
type Transport struct {
	// TLSClientConfig is for QUIC, and for TCP unless that has its own. It is cloned, and the protocols of QUIC are set.
	// Default: that of crypto/tls.
	TLSClientConfig *tls.Config

	// HTTP3 says when HTTP/3 is used. Default: once it is announced.
	HTTP3 HTTP3Mode

	// TCP is for the requests that do not go by HTTP/3. It is used as it is, and stays the caller's. Default: one that is
	// made like http.DefaultTransport.
	TCP *http.Transport

	// HandshakeTimeout is how long a QUIC handshake may take, with the look-up of the name. Default: 10 s. None is a day.
	HandshakeTimeout time.Duration

	// IdleTimeout is how long a QUIC connection stays open without a request. Default: 90 s.
	IdleTimeout time.Duration

	// FallbackDelay is how long a request waits for a QUIC handshake before it goes by TCP. Default: 300 ms; negative:
	// until the handshake has ended. HTTP3Always waits so, too.
	FallbackDelay time.Duration

	// MaxOrigins limits the origins that are remembered; the one that was not used for the longest goes first.
	// Default: 256.
	MaxOrigins int

	// MaxConns limits the QUIC connections that are kept, one for an origin. One that has to go finishes its requests.
	// Default: 100.
	MaxConns int

	// MaxResponseHeaderBytes limits the headers of a response, unless it comes by a TCP transport of the caller's.
	// Default: 1 MiB.
	MaxResponseHeaderBytes int

	// DisableCompression has requests not ask for gzip, as that of http.Transport.
	DisableCompression bool

	// UDP is how the UDP socket is opened that all QUIC connections share.
	UDP dgram.Config

	// Logger hears, at level debug, why HTTP/3 was not used. Default: nobody.
	Logger *slog.Logger

	now     func() time.Time // for tests; nil: time.Now
	silence time.Duration    // for tests; 0: defaultSilence

	mu     sync.Mutex
	core   *transportCore // guarded by mu; made by the first request
	closed bool           // guarded by mu
}

// ErrTransportClosed is the answer of a Transport that has been closed. It matches net.ErrClosed.
var ErrTransportClosed = fmt.Errorf("weirhttp: transport closed: %w", net.ErrClosed)

// RoundTrip sends a request and returns its response, as http.RoundTripper says. A QUIC connection counts as used until the
// response's body was read to its end or closed.
//
//   - Errors: ErrTransportClosed; those of http.Transport over TCP; over QUIC *http3.Error for a stream that the server
//     reset, and quic-go's for a connection that broke; errors that name the origin for a handshake that failed.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	c, err := t.begin()
	if err != nil {
		closeRequestBody(req)
		return nil, err
	}
	return c.roundTrip(req)
}

// begin makes the core, at the first request.
func (t *Transport) begin() (*transportCore, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return nil, ErrTransportClosed
	case t.core == nil:
		t.core = newTransportCore(t)
	}
	return t.core, nil
}

func closeRequestBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}
