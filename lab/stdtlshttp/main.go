//go:build unix

package main

import (
	"io"
	"log"
	"net"
	"net/http"

	"github.com/weirnet/weir/lab/internal/meter"
	"github.com/weirnet/weir/lab/internal/order"
)

func main() {
	o := order.Parse(order.Echo)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		meter.Fail(err)
	}
	server := &http.Server{
		TLSConfig: o.Config(),
		Handler:   http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }),
		ErrorLog:  log.New(io.Discard, "", 0),
	}
	go meter.Serve(ln.Addr().String())
	meter.Fail(server.ServeTLS(ln, "", ""))
}
