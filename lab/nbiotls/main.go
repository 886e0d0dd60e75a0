//go:build unix

package main

import (
	llib "github.com/lesismal/llib/std/crypto/tls"
	"github.com/lesismal/nbio"
	"github.com/lesismal/nbio/extension/tls"
	"github.com/lesismal/nbio/logging"

	"github.com/weirnet/weir/lab/internal/meter"
	"github.com/weirnet/weir/lab/internal/order"
)

func main() {
	o := order.Parse(order.Echo)
	cert, err := llib.LoadX509KeyPair(o.File, o.File)
	if err != nil {
		meter.Fail(err)
	}
	cfg := &tls.Config{Certificates: []llib.Certificate{cert}, SessionTicketsDisabled: !o.Tickets}
	logging.SetLevel(logging.LevelNone)
	engine := nbio.NewEngine(nbio.Config{Network: "tcp", Addrs: []string{"127.0.0.1:0"}, NPoller: 1})
	buf := make([]byte, 64<<10) // the one loop's
	engine.OnOpen(tls.WrapOpen(cfg, false, nil))
	engine.OnClose(tls.WrapClose(func(_ *nbio.Conn, c *tls.Conn, _ error) { _ = c.Close() }))
	engine.OnData(tls.WrapData(func(_ *nbio.Conn, c *tls.Conn, b []byte) { _, _ = c.Write(b) }, func() []byte { return buf }))
	if err := engine.Start(); err != nil {
		meter.Fail(err)
	}
	meter.Serve(engine.Addrs[0])
}
