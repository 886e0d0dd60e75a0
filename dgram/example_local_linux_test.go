//go:build linux

package dgram_test

import (
	"context"
	"fmt"
	"log"
	"net"

	"golang.org/x/net/ipv4"

	"github.com/weirnet/weir/dgram"
)

// A server with several addresses answers from the one that was asked: the kernel tells which by a control message.
func ExampleConn_WriteBatch() {
	ctx := context.Background()
	server, err := dgram.Listen(ctx, "udp4", "0.0.0.0:0", dgram.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	// For the option alone: its reads would be past the Conn.
	if err := ipv4.NewPacketConn(server).SetControlMessage(ipv4.FlagDst, true); err != nil {
		log.Fatal(err)
	}
	port := server.LocalAddr().(*net.UDPAddr).Port
	client, err := dgram.Dial(ctx, "udp4", fmt.Sprintf("127.0.0.2:%d", port), dgram.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Write([]byte("ping")); err != nil {
		log.Fatal(err)
	}

	in := make([]ipv4.Message, 8)
	for i := range in {
		in[i].Buffers = [][]byte{make([]byte, 1500)}
		in[i].OOB = ipv4.NewControlMessage(ipv4.FlagDst)
	}
	n, err := server.ReadBatch(in, 0)
	if err != nil {
		log.Fatal(err)
	}
	var out []ipv4.Message
	for _, m := range in[:n] {
		var asked ipv4.ControlMessage
		if err := asked.Parse(m.OOB[:m.NN]); err != nil {
			log.Print(err)
			continue
		}
		from := ipv4.ControlMessage{Src: asked.Dst}
		out = append(out, ipv4.Message{Buffers: [][]byte{m.Buffers[0][:m.N]}, OOB: from.Marshal(), Addr: m.Addr})
	}
	for len(out) > 0 {
		n, err := server.WriteBatch(out, 0)
		if err != nil {
			log.Print(out[0].Addr, ": ", err) // about the first alone: the others are tried again
			n = 1
		}
		out = out[n:]
	}

	b := make([]byte, 1500)
	size, err := client.Read(b) // of 127.0.0.2 alone
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(b[:size]))
	// Output: ping
}
