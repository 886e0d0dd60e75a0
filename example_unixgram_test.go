package weir_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/weirnet/weir"
)

// A server that answers over a unix socket, and a client with a name to be answered at.
func ExampleLoop_ListenUnixgram() {
	dir, err := os.MkdirTemp("", "weir")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	loop, err := weir.New(weir.Config{})
	if err != nil {
		log.Fatal(err)
	}
	name := filepath.Join(dir, "server")
	_, err = loop.ListenUnixgram(name, weir.UnixgramConfig{Replace: true}, weir.UnixgramHandler{
		OnDatagram: func(u *weir.Unixgram, d *weir.UnixDatagram) { _ = u.Send(d.Payload, d.Source) },
	})
	if err != nil {
		log.Fatal(err)
	}
	client, err := loop.DialUnixgram(filepath.Join(dir, "client"), name, weir.UnixgramConfig{}, weir.UnixgramHandler{
		OnDatagram: func(u *weir.Unixgram, d *weir.UnixDatagram) {
			fmt.Printf("%s\n", d.Payload)
			_ = loop.Close()
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	_ = client.Send([]byte("hello"), "")
	if err := loop.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output: hello
}
