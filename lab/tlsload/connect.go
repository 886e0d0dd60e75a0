//go:build unix

package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"sync"

	"github.com/weirnet/weir/lab/internal/meter"
)

// atOnce is how many handshakes, or transfers that end, are under way at a time.
const atOnce = 32

func (l load) connect() (*tls.Conn, error) {
	raw, err := net.Dial("tcp", l.addr)
	if err != nil {
		return nil, err
	}
	c := tls.Client(raw, l.cfg)
	if err := c.Handshake(); err != nil {
		_ = raw.Close()
		return nil, fmt.Errorf("handshake with %s: %w", l.addr, err)
	}
	return c, nil
}

// each makes the connections and calls work with each, some at once, until all calls have returned.
func (l load) each(work func(c *tls.Conn) error) ([]*tls.Conn, error) {
	conns := make([]*tls.Conn, l.conns)
	errs := make([]error, l.conns)
	room := make(chan struct{}, atOnce)
	var wait sync.WaitGroup
	for i := range conns {
		room <- struct{}{}
		wait.Go(func() {
			defer func() { <-room }()
			if conns[i], errs[i] = l.connect(); errs[i] == nil {
				errs[i] = work(conns[i])
			}
		})
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return conns, nil
}

// forever calls work with each connection, which ends the program when it returns.
func forever(conns []*tls.Conn, work func(c *tls.Conn) error) {
	for _, c := range conns {
		go func() { meter.Fail(fmt.Errorf("a connection to %v: %w", c.RemoteAddr(), work(c))) }()
	}
}

func nothing(*tls.Conn) error { return nil }
