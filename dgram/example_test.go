package dgram_test

import (
	"context"
	"fmt"
	"log"
	"net"

	"golang.org/x/net/ipv4"

	"github.com/weirnet/weir/dgram"
)

// A Conn is a net.PacketConn: what takes one takes it.
func Example() {
	ctx := context.Background()
	server, err := dgram.Listen(ctx, "udp", "127.0.0.1:0", dgram.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	client, err := dgram.Dial(ctx, "udp", server.LocalAddr().String(), dgram.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	if _, err := client.Write([]byte("ping")); err != nil {
		log.Fatal(err)
	}
	b := make([]byte, 1500)
	n, from, err := server.ReadFrom(b)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s from the client: %v\n", b[:n], from.String() == client.LocalAddr().String())
	// Output: ping from the client: true
}

// One call sends many datagrams, and one receives all that are there.
func ExampleConn_ReadBatch() {
	conn, err := dgram.Listen(context.Background(), "udp", "127.0.0.1:0", dgram.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	to := conn.LocalAddr().(*net.UDPAddr)
	if _, err := conn.WriteBatch([]ipv4.Message{
		{Buffers: [][]byte{[]byte("first")}, Addr: to},
		{Buffers: [][]byte{[]byte("second, "), []byte("in two pieces")}, Addr: to},
	}, 0); err != nil {
		log.Fatal(err)
	}
	in := make([]ipv4.Message, 8)
	for i := range in {
		in[i].Buffers = [][]byte{make([]byte, 1500)}
	}
	for got := 0; got < 2; {
		n, err := conn.ReadBatch(in, 0)
		if err != nil {
			log.Fatal(err)
		}
		for _, m := range in[:n] {
			fmt.Println(string(m.Buffers[0][:m.N]))
		}
		got += n
	}
	// Output:
	// first
	// second, in two pieces
}
