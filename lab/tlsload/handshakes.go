//go:build unix

package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirnet/weir/lab/internal/meter"
)

func handshakes(l load) (answer func() []int64, err error) {
	var done, resumed atomic.Int64
	for range l.conns {
		go func() {
			for {
				again, err := l.once()
				if err != nil {
					meter.Fail(err)
				}
				if again {
					resumed.Add(1)
				}
				done.Add(1)
			}
		}()
	}
	return func() []int64 { return []int64{done.Load(), resumed.Load()} }, nil
}

// once is a whole connection: it is over when the server has closed it, too, and has nothing left to do for it.
func (l load) once() (resumed bool, err error) {
	c, err := l.connect()
	if err != nil {
		return false, err
	}
	defer c.Close()
	if err := c.CloseWrite(); err != nil {
		return false, err
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("the server has not closed a connection: %w", err)
	}
	return c.ConnectionState().DidResume, nil
}

func hold(l load) (answer func() []int64, err error) {
	conns, err := l.each(nothing)
	return func() []int64 { return []int64{int64(len(conns))} }, err
}

func storm(l load) (answer func() []int64, err error) {
	conns := make([]*tls.Conn, l.conns)
	for i := range conns {
		raw, err := net.Dial("tcp", l.addr)
		if err != nil {
			return nil, err
		}
		conns[i] = tls.Client(raw, l.cfg)
	}
	return func() []int64 {
		var done atomic.Int64
		var wait sync.WaitGroup
		began := time.Now()
		for _, c := range conns {
			wait.Go(func() {
				if c.Handshake() == nil {
					done.Add(1)
				}
			})
		}
		wait.Wait()
		return []int64{done.Load(), time.Since(began).Nanoseconds()}
	}, nil
}
