package weirhttp_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/weirnet/weir/weirhttp"
)

// A server of all versions of HTTP, which lets requests end when it is told to stop.
func ExampleServer() {
	certificate, err := tls.LoadX509KeyPair("cert.pem", "key.pem")
	if err != nil {
		log.Print(err)
		return
	}
	server := &weirhttp.Server{
		Addr:      ":8443",
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintln(w, "hello by", r.Proto)
		}),
		Logger: slog.Default(),
	}
	interrupted, done := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer done()
	stopped := make(chan error, 1)
	context.AfterFunc(interrupted, func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		stopped <- server.Shutdown(ctx)
	})
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		log.Print(err)
		return
	}
	if err := <-stopped; err != nil {
		log.Print(err) // some requests were cut off
	}
}
