package main

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// server is what weir serve needs of an HTTP server. Serve closes its sockets when it returns, with
// http.ErrServerClosed after Shutdown or Close.
type server interface {
	Serve(tcp net.Listener, udp net.PacketConn) error
	Shutdown(ctx context.Context) error
	Close() error
}

// newServers makes n servers of one handler.
func newServers(n int, h http.Handler, cfg *tls.Config) []server {
	servers := make([]server, n)
	for i := range servers {
		servers[i] = &streamServer{http.Server{
			Handler:           h,
			TLSConfig:         cfg,
			ReadHeaderTimeout: 10 * time.Second,
			IdleTimeout:       time.Minute,
			ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
		}}
	}
	return servers
}

// streamServer is HTTP/1.1 and HTTP/2.
type streamServer struct{ http.Server }

func (s *streamServer) Serve(tcp net.Listener, _ net.PacketConn) error {
	return s.ServeTLS(tcp, "", "")
}

// stopAll has the requests in progress complete, within the time that is given, and then closes. It returns how many
// were cut off.
func stopAll(servers []server, grace time.Duration, w *watcher) (cut int64) {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	var all sync.WaitGroup
	var late atomic.Bool
	for _, s := range servers {
		all.Go(func() {
			if s.Shutdown(ctx) != nil {
				late.Store(true)
			}
		})
	}
	all.Wait()
	if late.Load() {
		cut = w.inProgress.Load()
		for _, s := range servers {
			_ = s.Close()
		}
	}
	return cut
}
