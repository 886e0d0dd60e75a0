//go:build unix

package main

import (
	"crypto/tls"
	"net/http"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/weirnet/weir/lab/internal/cert"
	"github.com/weirnet/weir/lab/internal/meter"
	"github.com/weirnet/weir/lab/internal/socket"
)

func main() {
	pair, err := cert.New()
	if err != nil {
		meter.Fail(err)
	}
	s, err := socket.Open(socket.Dgram)
	if err != nil {
		meter.Fail(err)
	}
	h := new(handshakes)
	cfg := http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{pair}})
	ln, err := (&quic.Transport{Conn: s, ConnContext: h.begin}).ListenEarly(cfg, nil)
	if err != nil {
		meter.Fail(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/pour", pour)
	go meter.Serve(s.LocalAddr().String(), h.inProgress, h.most, func() uint64 { return socket.Told(s) })
	meter.Fail((&http3.Server{Handler: mux}).ServeListener(listener{ln, h}))
}

func pour(w http.ResponseWriter, _ *http.Request) {
	for chunk := make([]byte, 64<<10); ; {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}
