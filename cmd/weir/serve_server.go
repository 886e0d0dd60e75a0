package main

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/weirnet/weir/weirhttp"
)

// newServer has one that tells of what goes wrong beside requests, such as connections that cannot be accepted.
func newServer(h http.Handler, cert tls.Certificate, stderr io.Writer) *weirhttp.Server {
	return &weirhttp.Server{
		Handler:   h,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}},
		Logger:    slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
}

// serveAll serves on all sockets until the context ends, or one of them fails, and stops within the grace.
func serveAll(ctx context.Context, srv *weirhttp.Server, s *sockets, grace time.Duration, w *watcher) error {
	served := make(chan error, len(s.pairs))
	for _, p := range s.pairs {
		go func() { served <- srv.Serve(p.tcp, p.packets()) }()
	}
	running := len(s.pairs)
	var err error
	select {
	case <-ctx.Done():
	case err = <-served:
		running--
	}
	cut := stop(srv, grace, w)
	for range running {
		<-served
	}
	w.wait()
	if err == nil && cut > 0 {
		err = cutOff{cut, grace}
	}
	return err
}

// stop has the requests in progress complete, and closes what is left after the grace. It returns how many requests
// that cut off.
func stop(srv *weirhttp.Server, grace time.Duration, w *watcher) int64 {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var cut atomic.Int64
	end := time.AfterFunc(grace, func() {
		cut.Store(w.inProgress.Load()) // before they hear of it
		cancel()
	})
	defer end.Stop()
	_ = srv.Shutdown(ctx) // closes what is left when ctx ends
	return cut.Load()
}
