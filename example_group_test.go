package weir_test

import (
	"context"
	"fmt"
	"log"
	"net/netip"
	"time"

	"github.com/weirnet/weir"
)

// An echo server on two loops: the kernel divides the clients of the port between them.
func ExampleGroup() {
	addr := netip.MustParseAddrPort("127.0.0.1:0")
	group, err := weir.NewGroup(weir.GroupConfig{
		Loops: 2, // the default is GOMAXPROCS
		Setup: func(l *weir.Loop) error {
			server, err := l.ListenUDP(addr, weir.UDPConfig{ReusePort: true}, weir.UDPHandler{
				OnDatagram: func(u *weir.UDP, d *weir.Datagram) { _ = u.Reply(d, d.Payload) },
			})
			if err == nil {
				addr = server.LocalAddr() // the next loop listens on the port that the first was given
			}
			return err
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, l := range group.Loops() {
		client, err := l.DialUDP(netip.AddrPort{}, addr, weir.UDPConfig{}, weir.UDPHandler{
			OnDatagram: func(u *weir.UDP, d *weir.Datagram) {
				fmt.Printf("%s\n", d.Payload)
				group.Stop(time.Second)
			},
		})
		if err != nil {
			log.Fatal(err)
		}
		_ = client.Send([]byte("hello"), netip.AddrPort{})
		break
	}
	if err := group.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output: hello
}
