//go:build unix

package main

import (
	"context"
	"flag"
	"net/netip"
	"sync/atomic"

	"github.com/weirnet/weir"
	"github.com/weirnet/weir/lab/internal/meter"
	"github.com/weirnet/weir/lab/internal/order"
	"github.com/weirnet/weir/weirtls"
)

func main() {
	period := flag.Duration("tick", 0, "period of the timer; 0: none")
	o := order.Parse(order.Echo, order.Pour, order.Sink)
	l, err := weir.New(weir.Config{})
	if err != nil {
		meter.Fail(err)
	}
	ln, err := weirtls.Listen(l, netip.MustParseAddrPort("127.0.0.1:0"), weirtls.Config{TLS: o.Config()},
		weir.ListenerConfig{}, weirtls.ListenerHandler{Conn: handler(o)})
	if err != nil {
		meter.Fail(err)
	}
	var ticks atomic.Uint64
	if *period > 0 {
		l.Every(*period, func() { ticks.Add(1) })
	}
	handshakes := weirtls.HandshakesOf(l)
	go meter.Serve(ln.Addr().String(), func() uint64 { return handshakes.Stats().Done }, ticks.Load)
	if err := l.Run(context.Background()); err != nil {
		meter.Fail(err)
	}
}
