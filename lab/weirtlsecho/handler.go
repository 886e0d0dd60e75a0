//go:build unix

package main

import (
	"crypto/tls"

	"github.com/weirnet/weir/lab/internal/order"
	"github.com/weirnet/weir/weirtls"
)

func handler(o order.Order) weirtls.Handler {
	switch o.Do {
	case order.Pour:
		p := &pour{chunk: make([]byte, order.WriteBytes), bytes: o.Bytes}
		return weirtls.Handler{OnHandshake: p.begin, OnDrain: p.goOn}
	case order.Sink:
		return weirtls.Handler{OnHandshake: begin, OnData: func(c *weirtls.Conn, b []byte) { sink(c, len(b), o.Bytes) }}
	}
	return weirtls.Handler{OnData: func(c *weirtls.Conn, b []byte) { _, _ = c.Write(b) }}
}

// pour keeps what is left in Conn.Data.
type pour struct {
	chunk []byte
	bytes int
}

func (p *pour) begin(c *weirtls.Conn, _ tls.ConnectionState) {
	left := p.bytes
	c.Data = &left
	p.goOn(c)
}

func (p *pour) goOn(c *weirtls.Conn) {
	for left := c.Data.(*int); *left > 0; {
		n, err := c.Write(p.chunk[:min(len(p.chunk), *left)])
		*left -= n
		if err != nil { // OnDrain follows, or OnClose
			return
		}
	}
}

func begin(c *weirtls.Conn, _ tls.ConnectionState) { c.Data = new(int) }

// sink keeps what has come in Conn.Data.
func sink(c *weirtls.Conn, n, bytes int) {
	got := c.Data.(*int)
	if *got += n; *got >= bytes {
		*got -= bytes
		_, _ = c.Write([]byte{1})
	}
}
