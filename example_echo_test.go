// weir:ports the program is compiled, not run

package weir_test

import (
	"context"
	"log"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/weirnet/weir"
)

func Example_echoServer() {
	loop, err := weir.New(weir.Config{})
	if err != nil {
		log.Fatal(err)
	}
	address := netip.MustParseAddrPort("127.0.0.1:9000")
	_, err = loop.ListenTCP(address, weir.ListenerConfig{}, weir.ListenerHandler{
		Conn: weir.ConnHandler{
			OnData: func(c *weir.Conn, b []byte) {
				if _, err := c.Write(b); err != nil { // the client reads too slowly: see OnDrain and Pause
					_ = c.Reset()
				}
			},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	server, err := loop.ListenUDP(address, weir.UDPConfig{}, weir.UDPHandler{
		OnDatagram: func(u *weir.UDP, d *weir.Datagram) {
			if err := u.Send(d.Payload, d.Source); err != nil {
				log.Print(err) // the queue is full, or the address cannot be sent to
			}
		},
		OnError: func(u *weir.UDP, err error) { log.Print(err) },
	})
	if err != nil {
		log.Fatal(err)
	}
	interrupted, done := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer done()
	context.AfterFunc(interrupted, func() { loop.Stop(time.Second) }) // deliver and send what is queued, then end
	log.Print("echo on ", server.LocalAddr())
	if err := loop.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}
