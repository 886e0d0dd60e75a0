package weir_test

import (
	"context"
	"fmt"
	"log"
	"net/netip"
	"os"
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

// A server on the wildcard address answers from the address that was asked.
func ExampleUDP_Reply() {
	loop, err := weir.New(weir.Config{})
	if err != nil {
		log.Fatal(err)
	}
	server, err := loop.ListenUDP(netip.MustParseAddrPort("0.0.0.0:0"), weir.UDPConfig{ReceiveLocal: true}, weir.UDPHandler{
		OnDatagram: func(u *weir.UDP, d *weir.Datagram) { _ = u.Reply(d, d.Payload) },
	})
	if err != nil {
		log.Fatal(err)
	}
	asked := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), server.LocalAddr().Port())
	client, err := loop.ListenUDP(netip.MustParseAddrPort("127.0.0.1:0"), weir.UDPConfig{}, weir.UDPHandler{
		OnDatagram: func(u *weir.UDP, d *weir.Datagram) {
			fmt.Println("an answer from", d.Source.Addr())
			_ = loop.Close()
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	_ = client.Send([]byte("who is there?"), asked)
	_ = loop.Run(context.Background())
	// Output: an answer from 127.0.0.2
}

// Other goroutines send by the socket's Sender.
func ExampleUDP_Sender() {
	loop, err := weir.New(weir.Config{})
	if err != nil {
		log.Fatal(err)
	}
	got := 0
	u, err := loop.ListenUDP(netip.MustParseAddrPort("127.0.0.1:0"), weir.UDPConfig{}, weir.UDPHandler{
		OnDatagram: func(u *weir.UDP, d *weir.Datagram) {
			if got++; got == 3 {
				fmt.Println("three datagrams")
				_ = loop.Close()
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	to := u.LocalAddr()
	for range 3 {
		go func() { _ = u.Sender().SendContext(context.Background(), []byte("from a goroutine"), to) }()
	}
	_ = loop.Run(context.Background())
	// Output: three datagrams
}

// A socket changes hands without losing a datagram: the old owner stops reading, exports the descriptor with what it
// read ahead, and closes; the new one injects that.
func ExampleUDP_Export() {
	loop, err := weir.New(weir.Config{})
	if err != nil {
		log.Fatal(err)
	}
	onDatagram := func(u *weir.UDP, d *weir.Datagram) {
		fmt.Printf("%s\n", d.Payload)
		_ = loop.Close()
	}
	address := netip.MustParseAddrPort("127.0.0.1:0")
	old, err := loop.ListenUDP(address, weir.UDPConfig{NoGRO: true}, weir.UDPHandler{OnDatagram: onDatagram})
	if err != nil {
		log.Fatal(err)
	}
	old.Pause()
	fd, ahead, err := old.Export()
	if err != nil {
		log.Fatal(err)
	}
	_ = old.Close()

	// In real life the descriptor goes to another process, for example by os/exec's ExtraFiles.
	heir, err := loop.AdoptUDP(fd, weir.UDPConfig{Sole: true}, weir.UDPHandler{OnDatagram: onDatagram})
	if err != nil {
		log.Fatal(err)
	}
	_ = os.NewFile(uintptr(fd), "socket").Close()
	for i := range ahead {
		_ = heir.Inject(&ahead[i])
	}
	_ = heir.Send([]byte("still here"), heir.LocalAddr())
	_ = loop.Run(context.Background())
	// Output: still here
}
