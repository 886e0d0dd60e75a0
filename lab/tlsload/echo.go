//go:build unix

package main

import (
	"crypto/tls"
	"io"
	"time"

	"github.com/weirnet/weir/lab/internal/meter"
)

func echo(l load) (answer func() []int64, err error) {
	conns, err := l.each(nothing)
	if err != nil {
		return nil, err
	}
	d := new(meter.Delays)
	begin := time.Now()
	for i, c := range conns {
		due := begin.Add(l.period * time.Duration(i) / time.Duration(len(conns)))
		forever([]*tls.Conn{c}, func(c *tls.Conn) error { return l.exchange(c, due, d) })
	}
	return func() []int64 {
		n, p50, p99 := d.Take()
		return []int64{n, p50, p99}
	}, nil
}

// exchange counts from when a message was due: one that waits for the answer to the message before has waited.
func (l load) exchange(c *tls.Conn, due time.Time, d *meter.Delays) error {
	b := make([]byte, l.size)
	for ; ; due = due.Add(l.period) {
		time.Sleep(time.Until(due))
		if _, err := c.Write(b); err != nil {
			return err
		}
		if _, err := io.ReadFull(c, b); err != nil {
			return err
		}
		d.Add(time.Since(due))
	}
}
