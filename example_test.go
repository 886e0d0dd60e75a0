package weir_test

import (
	"context"
	"fmt"
	"log"
	"net/netip"
	"time"

	"github.com/weirnet/weir"
)

// A UDP echo server. Its second socket plays the client, and ends the loop with the answer.
func Example() {
	loop, err := weir.New(weir.Config{})
	if err != nil {
		log.Fatal(err)
	}
	server, err := loop.ListenUDP(netip.MustParseAddrPort("127.0.0.1:0"), weir.UDPConfig{}, weir.UDPHandler{
		OnDatagram: func(u *weir.UDP, d *weir.Datagram) { _ = u.Send(d.Payload, d.Source) },
	})
	if err != nil {
		log.Fatal(err)
	}
	client, err := loop.DialUDP(netip.AddrPort{}, server.LocalAddr(), weir.UDPConfig{}, weir.UDPHandler{
		OnDatagram: func(u *weir.UDP, d *weir.Datagram) {
			fmt.Printf("%s\n", d.Payload)
			_ = loop.Close()
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	_ = client.Send([]byte("hello"), netip.AddrPort{})
	if err := loop.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output: hello
}

// A socket that is flooded leaves a timer its time, and the other way round.
func ExampleLoop_Every() {
	loop, err := weir.New(weir.Config{})
	if err != nil {
		log.Fatal(err)
	}
	ticks := 0
	loop.Every(time.Millisecond, func() {
		if ticks++; ticks == 3 {
			_ = loop.Close()
		}
	})
	_ = loop.Run(context.Background())
	fmt.Println(ticks, "ticks")
	// Output: 3 ticks
}

// Other goroutines reach a loop by Post.
func ExampleLoop_Post() {
	loop, err := weir.New(weir.Config{})
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		_ = loop.Post(func() {
			fmt.Println("on the loop")
			_ = loop.Close()
		})
	}()
	_ = loop.Run(context.Background())
	// Output: on the loop
}

// Work that would hold the loop is done in steps; Expired tells when a step has used up its credit.
func ExampleLoop_Work() {
	loop, err := weir.New(weir.Config{StopWhenIdle: true})
	if err != nil {
		log.Fatal(err)
	}
	sum, next := 0, 1
	loop.Work(func() (more bool) {
		for next <= 1_000_000 && !loop.Expired() {
			sum += next
			next++
		}
		return next <= 1_000_000
	})
	_ = loop.Run(context.Background())
	fmt.Println(sum)
	// Output: 500000500000
}
