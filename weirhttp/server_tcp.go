package weirhttp

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// newWebServer is net/http's part: HTTP/1.1 and 2 on connections whose handshake is over.
func newWebServer(c *core, config *tls.Config, h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		TLSConfig:         config, // names h2, so that it is spoken
		ReadHeaderTimeout: orNone(c.readHeaderTimeout),
		ReadTimeout:       orNone(c.readTimeout),
		WriteTimeout:      orNone(c.writeTimeout),
		IdleTimeout:       orNone(c.idleTimeout),
		MaxHeaderBytes:    c.headerBytes,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: c.requests},
		ErrorLog:          slog.NewLogLogger(c.log.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return c.context(ctx, conn.LocalAddr(), conn.RemoteAddr())
		},
	}
}

// orNone says none as net/http does, where 0 means that another timeout counts.
func orNone(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}
