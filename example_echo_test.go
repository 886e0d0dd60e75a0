// weir:ports the program is compiled, not run

package weir_test

import (
	"context"
	"log"
	"net/netip"

	"github.com/weirnet/weir"
)

func Example_echoServer() {
	loop, err := weir.New(weir.Config{})
	if err != nil {
		log.Fatal(err)
	}
	address := netip.MustParseAddrPort("127.0.0.1:5353")
	server, err := loop.ListenUDP(address, weir.UDPConfig{}, weir.UDPHandler{
		OnDatagram: func(u *weir.UDP, d *weir.Datagram) {
			if err := u.Send(d.Payload, d.Source); err != nil {
				log.Print(err) // a full queue, or an address that cannot be sent to
			}
		},
		OnError: func(u *weir.UDP, err error) { log.Print(err) },
	})
	if err != nil {
		log.Fatal(err)
	}
	log.Print("echo on ", server.LocalAddr())
	log.Fatal(loop.Run(context.Background()))
}
