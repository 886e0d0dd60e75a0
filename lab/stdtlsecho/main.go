//go:build unix

package main

import (
	"crypto/tls"
	"io"
	"net"

	"github.com/weirnet/weir/lab/internal/meter"
	"github.com/weirnet/weir/lab/internal/order"
)

func main() {
	o := order.Parse(order.Echo, order.Pour, order.Sink)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		meter.Fail(err)
	}
	cfg := o.Config()
	go meter.Serve(ln.Addr().String())
	for {
		c, err := ln.Accept()
		if err != nil {
			meter.Fail(err)
		}
		go serve(tls.Server(c, cfg), o)
	}
}

func serve(c *tls.Conn, o order.Order) {
	defer c.Close()
	if c.Handshake() != nil {
		return
	}
	switch o.Do {
	case order.Pour:
		pour(c, o.Bytes)
	case order.Sink:
		sink(c, o.Bytes)
	default:
		echo(c)
	}
}

func echo(c *tls.Conn) {
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

func pour(c *tls.Conn, left int) {
	b := make([]byte, order.WriteBytes)
	for left > 0 {
		n, err := c.Write(b[:min(len(b), left)])
		if err != nil {
			return
		}
		left -= n
	}
	_, _ = io.Copy(io.Discard, c)
}

// sink reads a record at a time, which is all that one Read returns.
func sink(c *tls.Conn, bytes int) {
	b := make([]byte, 16<<10)
	for got := 0; ; {
		n, err := c.Read(b)
		if err != nil {
			return
		}
		if got += n; got >= bytes {
			got -= bytes
			if _, err := c.Write([]byte{1}); err != nil {
				return
			}
		}
	}
}
