//go:build linux

package weir_test

import (
	"context"
	"fmt"
	"log"

	"golang.org/x/sys/unix"

	"github.com/weirnet/weir"
)

// A pipe of the program's own is read on the loop until its end.
func ExampleLoop_Watch() {
	loop, err := weir.New(weir.Config{})
	if err != nil {
		log.Fatal(err)
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
		log.Fatal(err)
	}
	buf := make([]byte, 4096)
	_, err = loop.Watch(pipe[0], weir.WatchHandler{
		OnReadable: func(w *weir.Watch) {
			n, err := unix.Read(w.FD(), buf)
			switch {
			case err == unix.EAGAIN:
			case err != nil || n == 0: // the end, too, is for the handler to see
				_ = w.Close()
			default:
				fmt.Printf("%s\n", buf[:n])
			}
		},
		OnClose: func(w *weir.Watch, _ error) {
			_ = unix.Close(w.FD())
			_ = loop.Close()
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	_, _ = unix.Write(pipe[1], []byte("hello"))
	_ = unix.Close(pipe[1])
	if err := loop.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output: hello
}
