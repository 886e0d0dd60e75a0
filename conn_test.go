package weir

import (
	"bytes"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
)

// serve listens on the loop for connections with this handler.
func serve(t *testing.T, l *Loop, cfg ListenerConfig, h ConnHandler) *Listener {
	t.Helper()
	ln, err := l.ListenTCP(loopback4, cfg, ListenerHandler{Conn: h})
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

func dialTo(t *testing.T, l *Loop, ln *Listener, cfg ConnConfig, h ConnHandler) *Conn {
	t.Helper()
	var c *Conn
	var err error
	if ln.Name() != "" {
		c, err = l.DialUnix(ln.Name(), cfg, h)
	} else {
		c, err = l.DialTCP(loopback4, ln.Addr(), cfg, h)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestConnEcho(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		ln := serve(t, l, ListenerConfig{}, ConnHandler{OnData: func(c *Conn, b []byte) {
			if n, err := c.Write(b); n != len(b) || err != nil {
				t.Errorf("Write answers %d, %v", n, err)
			}
		}})
		want := bytes.Repeat([]byte("0123456789"), 10_000)
		var got []byte
		var order []string
		c := dialTo(t, l, ln, ConnConfig{}, ConnHandler{
			OnOpen: func(c *Conn) { order = append(order, "open") },
			OnData: func(c *Conn, b []byte) {
				if got = append(got, b...); len(got) == len(want) {
					_ = c.CloseWrite()
				}
			},
			OnEnd: func(*Conn) { order = append(order, "end") },
			OnClose: func(_ *Conn, err error) {
				if order = append(order, "close"); err != nil {
					t.Error(err)
				}
				_ = l.Close()
			},
		})
		if n, err := c.Write(want); n != len(want) || err != nil {
			t.Fatalf("Write answers %d, %v", n, err)
		}
		run(t, l)
		if !bytes.Equal(got, want) {
			t.Errorf("%d bytes came back, and are not those that were sent", len(got))
		}
		if s := len(order); s != 3 || order[0] != "open" || order[1] != "end" || order[2] != "close" {
			t.Errorf("calls came in the order %v", order)
		}
	})
}

func TestConnRefused(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		ln := serve(t, l, ListenerConfig{}, ConnHandler{})
		_ = ln.Close()
		dialTo(t, l, ln, ConnConfig{}, ConnHandler{
			OnOpen: func(*Conn) { t.Error("it is open") },
			OnClose: func(_ *Conn, err error) {
				if !errors.Is(err, syscall.ECONNREFUSED) {
					t.Errorf("OnClose has %v", err)
				}
				_ = l.Close()
			},
		})
		run(t, l)
	})
}

// TestConnNet has a client of package net.
func TestConnNet(t *testing.T) {
	l := newLoop(t, Config{})
	ln := serve(t, l, ListenerConfig{}, ConnHandler{OnData: func(c *Conn, b []byte) { _, _ = c.Write(b) }})
	go func() {
		defer l.Close()
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_, _ = c.Write([]byte("hello"))
		_ = c.(*net.TCPConn).CloseWrite()
		if b, err := io.ReadAll(c); string(b) != "hello" || err != nil {
			t.Errorf("%q, %v", b, err)
		}
	}()
	run(t, l)
}
