//go:build unix

package main

import (
	"crypto/tls"
	"fmt"
	"math"
	"sync/atomic"
)

func down(l load) (answer func() []int64, err error) { return l.bulk(receive) }

func up(l load) (answer func() []int64, err error) { return l.bulk(send) }

// bulk moves bytes, and counts them in done.
func (l load) bulk(move func(l load, c *tls.Conn, done *atomic.Int64) error) (answer func() []int64, err error) {
	var done atomic.Int64
	work := func(c *tls.Conn) error { return move(l, c, &done) }
	var conns []*tls.Conn
	if l.bytes < math.MaxInt {
		conns, err = l.each(work)
	} else if conns, err = l.each(nothing); err == nil {
		forever(conns, work)
	}
	return func() []int64 { return []int64{done.Load(), int64(len(conns))} }, err
}

func receive(l load, c *tls.Conn, done *atomic.Int64) error {
	b := make([]byte, 64<<10)
	for left := l.bytes; left > 0; {
		n, err := c.Read(b)
		if err != nil {
			return err
		}
		done.Add(int64(n))
		left -= n
	}
	return nil
}

// send waits, where it comes to an end, for the one byte that tells that all has come.
func send(l load, c *tls.Conn, done *atomic.Int64) error {
	b := make([]byte, l.size)
	for left := l.bytes; left > 0; {
		n, err := c.Write(b[:min(len(b), left)])
		if err != nil {
			return err
		}
		done.Add(int64(n))
		left -= n
	}
	if n, err := c.Read(b); n != 1 || err != nil {
		return fmt.Errorf("an answer of %d bytes: %w", n, err)
	}
	return nil
}
