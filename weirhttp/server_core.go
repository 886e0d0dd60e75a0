package weirhttp

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"net"
	"net/http"
	"time"
)

const (
	serverHandshakeTimeout   = 10 * time.Second
	defaultReadHeaderTimeout = 10 * time.Second
	defaultIdleTimeout       = 90 * time.Second
	defaultHeaderBytes       = 64 << 10
	defaultRequests          = 250
	defaultAltSvcMaxAge      = 24 * time.Hour
)

// unlimited is more than anything that is counted, and fits what it is passed to on all platforms.
const unlimited = math.MaxInt32 / 2

// core is what the endpoints of a Server share: its fields with their defaults, and what is counted.
type core struct {
	handler http.Handler // nil: http.DefaultServeMux
	context func(ctx context.Context, local, remote net.Addr) context.Context
	log     *slog.Logger

	// 0: none
	handshakeTimeout  time.Duration
	readHeaderTimeout time.Duration
	readTimeout       time.Duration
	writeTimeout      time.Duration
	idleTimeout       time.Duration
	altSvcMaxAge      time.Duration

	headerBytes, requests int

	tcp, quic *gate
	windows   windows
	counts    counters
}

func newCore(s *Server) *core {
	c := &core{
		handler: s.Handler, context: s.ConnContext, log: cmp.Or(s.Logger, slog.New(slog.DiscardHandler)),
		handshakeTimeout:  timeoutOr(s.HandshakeTimeout, serverHandshakeTimeout),
		readHeaderTimeout: timeoutOr(s.ReadHeaderTimeout, defaultReadHeaderTimeout),
		readTimeout:       max(s.ReadTimeout, 0),
		writeTimeout:      max(s.WriteTimeout, 0),
		idleTimeout:       timeoutOr(s.IdleTimeout, defaultIdleTimeout),
		altSvcMaxAge:      timeoutOr(s.AltSvcMaxAge, defaultAltSvcMaxAge),
		headerBytes:       limitOr(s.MaxHeaderBytes, defaultHeaderBytes),
		requests:          limitOr(s.MaxRequests, defaultRequests),
	}
	if c.context == nil {
		c.context = func(ctx context.Context, _, _ net.Addr) context.Context { return ctx }
	}
	limits := s.limits()
	c.tcp, c.quic = newGate(limits), newGate(limits)
	return c
}

// coreLocked is the Server's, made when it is first needed.
func (s *Server) coreLocked() *core {
	if s.core == nil {
		s.core = newCore(s)
	}
	return s.core
}

// timeoutOr is 0 for none.
func timeoutOr(d, def time.Duration) time.Duration {
	if d == 0 {
		return def
	}
	return max(d, 0)
}

func limitOr(n, def int) int {
	switch {
	case n == 0:
		return def
	case n < 0:
		return unlimited
	}
	return min(n, unlimited)
}
