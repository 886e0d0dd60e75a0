//go:build unix

package main

import (
	"context"
	"crypto/tls"
	"net/http"

	"github.com/weirnet/weir/dgram"
	"github.com/weirnet/weir/lab/internal/cert"
	"github.com/weirnet/weir/lab/internal/meter"
	"github.com/weirnet/weir/weirhttp"
)

// most is how many handshakes of one source there may be: all that flood come from one.
const most = 64

func main() {
	pair, err := cert.New()
	if err != nil {
		meter.Fail(err)
	}
	tcp, udp, err := weirhttp.Listen(context.Background(), "127.0.0.1:0", dgram.Config{})
	if err != nil {
		meter.Fail(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/pour", pour)
	s := &weirhttp.Server{
		Handler:                mux,
		TLSConfig:              &tls.Config{Certificates: []tls.Certificate{pair}},
		MaxHandshakesPerSource: most,
	}
	go meter.Serve(udp.LocalAddr().String(),
		func() uint64 { return uint64(s.Stats().QUIC.Handshakes) },
		func() uint64 { return most },
		func() uint64 { return udp.Stats().KernelDropped })
	meter.Fail(s.Serve(tcp, udp))
}

func pour(w http.ResponseWriter, _ *http.Request) {
	for chunk := make([]byte, 64<<10); ; {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}
