//go:build unix

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"io"

	"github.com/quic-go/quic-go"
	"github.com/weirnet/weir/lab/internal/cert"
	"github.com/weirnet/weir/lab/internal/meter"
	"github.com/weirnet/weir/lab/internal/socket"
)

const (
	alpn       = "lab"
	chunkBytes = 1 << 20
	smallBytes = 64
)

// serve returns where the server listens.
func serve(o order, c *counts) (addr string, err error) {
	pair, err := cert.New()
	if err != nil {
		return "", err
	}
	s, err := socket.Open(o.udp)
	if err != nil {
		return "", err
	}
	c.sockets = append(c.sockets, s)
	t := &quic.Transport{Conn: s}
	ln, err := t.Listen(&tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{alpn}}, nil)
	if err != nil {
		return "", err
	}
	go func() {
		for {
			conn, err := ln.Accept(context.Background())
			if err != nil {
				meter.Fail(err)
			}
			c.opened(conn)
			go attend(o, c, conn)
		}
	}()
	return ln.Addr().String(), nil
}

// attend goes on until the client is gone.
func attend(o order, c *counts, conn *quic.Conn) {
	for {
		s, err := conn.AcceptStream(context.Background())
		if err != nil {
			return
		}
		go func() {
			defer s.Close()
			switch o.do {
			case down:
				pour(s)
			case up:
				if drain(s, c) == nil {
					_, _ = s.Write([]byte{1})
				}
			case small:
				b := make([]byte, smallBytes+1) // a byte more than comes, so that the end is read
				if n, err := io.ReadFull(s, b); n == smallBytes && errors.Is(err, io.ErrUnexpectedEOF) {
					_, _ = s.Write(b[:n])
				}
			}
		}()
	}
}

func pour(s *quic.Stream) {
	for chunk := make([]byte, chunkBytes); ; {
		if _, err := s.Write(chunk); err != nil {
			return
		}
	}
}

// drain counts what comes, until the end.
func drain(s *quic.Stream, c *counts) error {
	for b := make([]byte, 64<<10); ; {
		n, err := s.Read(b)
		c.done.Add(uint64(n))
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
