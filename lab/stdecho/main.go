//go:build unix

package main

import (
	"net"

	"github.com/weirnet/weir/lab/internal/meter"
)

func main() {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		meter.Fail(err)
	}
	go meter.Serve(ln.Addr().String())
	for {
		c, err := ln.Accept()
		if err != nil {
			meter.Fail(err)
		}
		go echo(c)
	}
}

func echo(c net.Conn) {
	defer c.Close()
	b := make([]byte, 4096)
	for {
		n, err := c.Read(b)
		if err != nil {
			return
		}
		if _, err := c.Write(b[:n]); err != nil {
			return
		}
	}
}
