//go:build unix

package main

import (
	"context"
	"net/netip"

	"github.com/weirnet/weir"
	"github.com/weirnet/weir/lab/internal/meter"
)

func main() {
	l, err := weir.New(weir.Config{})
	if err != nil {
		meter.Fail(err)
	}
	ln, err := l.ListenTCP(netip.MustParseAddrPort("127.0.0.1:0"), weir.ListenerConfig{}, weir.ListenerHandler{
		Conn: weir.ConnHandler{OnData: func(c *weir.Conn, b []byte) { _, _ = c.Write(b) }},
	})
	if err != nil {
		meter.Fail(err)
	}
	go meter.Serve(ln.Addr().String())
	if err := l.Run(context.Background()); err != nil {
		meter.Fail(err)
	}
}
