package weirhttp

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/weirnet/weir/dgram"
)

// Server serves HTTP/1.1 and 2 over TLS, and HTTP/3 over QUIC, on one port number. In every field that is a number or a
// duration zero stands for the default, and a negative number for none. It must not be copied, nor changed once it
// serves; its methods are for any goroutine.
type Server struct {
	// Handler answers the requests of all protocols. Default: http.DefaultServeMux.
	//
	// One that panics costs its own request: the others of its connection go on, over HTTP/2 and 3.
	Handler http.Handler

	// Addr is where ListenAndServe listens, as host:port. Port 0 is one that is free for TCP and for UDP.
	// Default: ":https".
	Addr string

	// TLSConfig offers a certificate, by Certificates, GetCertificate or GetConfigForClient. It is cloned. The protocols
	// are set: NextProtos may name others, such as acme-tls/1. TCP takes TLS 1.2 or later, QUIC 1.3. One of its functions
	// that panics fails the handshake that it was asked for.
	TLSConfig *tls.Config

	// HandshakeTimeout is how long a handshake may take in all, of TLS over TCP from when the connection is accepted.
	// Default: 10 s. None is a day with QUIC.
	HandshakeTimeout time.Duration

	// ReadHeaderTimeout is how long the headers of an HTTP/1.1 request may take. Default: 10 s.
	ReadHeaderTimeout time.Duration

	// ReadTimeout is how long a request may take to come in, its body included. Default: none, as there are long uploads.
	ReadTimeout time.Duration

	// WriteTimeout is how long a handler may write its response, from when it has the request. It ends no handler: what is
	// written later fails, and over HTTP/2 alone the request's context ends then. See http.TimeoutHandler for that.
	// Default: none, as there are long downloads and streams.
	WriteTimeout time.Duration

	// IdleTimeout is how long a connection stays open without a request. Default: 90 s.
	IdleTimeout time.Duration

	// MaxHeaderBytes limits the headers of a request. Default: 64 KiB.
	MaxHeaderBytes int

	// MaxRequests limits the requests that are answered at once on one connection. Default: 250.
	MaxRequests int

	// MaxConns limits the connections that are open, those in their handshake included; TCP and QUIC count apart. Those
	// beyond it are refused: reset, or answered CONNECTION_REFUSED. Default: 65536.
	MaxConns int

	// MaxConnsPerSource limits those of one IPv4 address or IPv6 /64. Default: 1024, or half of MaxConns where that is
	// less.
	MaxConnsPerSource int

	// MaxHandshakes limits the handshakes in progress; TCP and QUIC count apart. Those beyond it wait with TCP, and are
	// refused with QUIC, where more than half of it takes clients that show that their address is theirs (Retry).
	// Default: 1024. It is never more than half of MaxConns.
	MaxHandshakes int

	// MaxHandshakesPerSource limits those of one source, in the same way. Default: 64. It is never more than half of
	// MaxHandshakes, nor of MaxConnsPerSource.
	MaxHandshakesPerSource int

	// NoHTTP3 leaves HTTP/3 out: ListenAndServe opens no UDP socket.
	NoHTTP3 bool

	// AltSvcMaxAge is how long a client may remember that there is HTTP/3. Default: 24 h; negative: it is not told.
	AltSvcMaxAge time.Duration

	// UDP is how ListenAndServe opens the UDP socket.
	UDP dgram.Config

	// ConnContext returns the context that those of a connection's requests are made from; it is to be derived from ctx.
	// Default: ctx as it is.
	ConnContext func(ctx context.Context, local, remote net.Addr) context.Context

	// Logger hears of panics, of sockets that fail, and, at level debug, of TLS handshakes over TCP that do, and of what
	// quic-go's http3 says, which is a line for each request over HTTP/3. Default: nobody.
	Logger *slog.Logger

	mu        sync.Mutex
	core      *core // made by what is called first
	endpoints []*endpoint
	stopping  bool
}

// LocalAddr is the address that TCP is served on, the first where there are several; nil before Serve.
func (s *Server) LocalAddr() net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.endpoints) == 0 {
		return nil
	}
	return s.endpoints[0].addr
}
