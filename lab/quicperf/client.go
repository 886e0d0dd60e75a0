//go:build unix

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/weirnet/weir/lab/internal/meter"
	"github.com/weirnet/weir/lab/internal/socket"
)

// connect makes the connections, and has them work until the program ends.
func connect(o order, c *counts) error {
	to, err := net.ResolveUDPAddr("udp4", o.addr)
	if err != nil {
		return err
	}
	transports := make([]*quic.Transport, o.sockets)
	for i := range transports {
		s, err := socket.Open(o.udp)
		if err != nil {
			return err
		}
		c.sockets = append(c.sockets, s)
		transports[i] = &quic.Transport{Conn: s}
	}
	conns := make([]*quic.Conn, o.conns)
	for i := range conns {
		conns[i], err = dial(transports[i%o.sockets], to)
		if err != nil {
			return err
		}
		c.opened(conns[i])
	}
	for _, conn := range conns {
		go func() { meter.Fail(fmt.Errorf("a connection to %v: %w", to, work(o, c, conn))) }()
	}
	return nil
}

func dial(t *quic.Transport, to net.Addr) (*quic.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	// Who measures does not check a certificate: that would be work of another kind.
	cfg := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{alpn}}
	conn, err := t.Dial(ctx, to, cfg, nil)
	if err != nil {
		return nil, fmt.Errorf("dial %v: %w", to, err)
	}
	return conn, nil
}

// work uses one stream at a time, until that fails.
func work(o order, c *counts, conn *quic.Conn) error {
	load := map[string]func(order, *counts, *quic.Stream) error{down: receive, up: send, small: request}[o.do]
	for {
		s, err := conn.OpenStreamSync(context.Background())
		if err != nil {
			return err
		}
		if err := load(o, c, s); err != nil {
			return err
		}
	}
}

func receive(_ order, c *counts, s *quic.Stream) error {
	if _, err := s.Write([]byte{1}); err != nil { // the server hears of a stream by its first byte
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	return drain(s, c)
}

func send(o order, _ *counts, s *quic.Stream) error {
	chunk := make([]byte, chunkBytes)
	for left := o.bytes; o.bytes == 0 || left > 0; left -= chunkBytes {
		n := chunkBytes
		if o.bytes > 0 {
			n = min(n, left)
		}
		if _, err := s.Write(chunk[:n]); err != nil {
			return err
		}
	}
	return finish(s, make([]byte, 1))
}

func request(_ order, c *counts, s *quic.Stream) error {
	var b [smallBytes]byte
	began := time.Now()
	if _, err := s.Write(b[:]); err != nil {
		return err
	}
	if err := finish(s, b[:]); err != nil {
		return err
	}
	c.delays.Add(time.Since(began))
	c.done.Add(1)
	return nil
}

// finish ends what goes to the server, and waits for an answer that fills b and for its end.
func finish(s *quic.Stream, b []byte) error {
	if err := s.Close(); err != nil {
		return err
	}
	if _, err := io.ReadFull(s, b); err != nil {
		return fmt.Errorf("an answer of %d bytes: %w", len(b), err)
	}
	if n, err := s.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		return errors.Join(fmt.Errorf("no end behind an answer of %d bytes", len(b)), err)
	}
	return nil
}
