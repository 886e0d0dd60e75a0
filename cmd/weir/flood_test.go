package main

import (
	"io"
	"net"
	"net/netip"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// TestOwed holds the open loop: what is owed depends on the time alone, and nothing that was late is left out.
func TestOwed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &sender{rate: 2500, began: time.Now()}
		expect := func(want int64) {
			t.Helper()
			if got := s.owed(); got != want {
				t.Errorf("after %v: %d owed, want %d", time.Since(s.began), got, want)
			}
		}
		expect(1) // the flood begins at once
		s.queued++
		expect(0)
		time.Sleep(ms)
		expect(2)
		time.Sleep(ms)
		expect(5)
		s.queued += 5
		time.Sleep(10 * time.Minute)
		expect(2500 * 600)
		s.rate = maxRate
		expect(1 + maxRate*600 + maxRate/500 - s.queued)
		s.rate = 0
		if s.owed() <= burst {
			t.Error("as fast as it goes is not endless")
		}
	})
}

// TestFloodGoesOn: a connection is written to again and again, more than the buffers on the way hold.
func TestFloodGoesOn(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the loop does not work here")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	s, err := newSender(floodConfig{net: overTCP, target: netip.MustParseAddrPort(ln.Addr().String())})
	if err != nil {
		t.Fatal(err)
	}
	defer s.loop.Close()
	stdin, end := io.Pipe()
	read, over := make(chan error), make(chan struct{})
	const much = 32 << 20
	go func() { read <- readMuch(ln, much, end, over) }()
	if err := s.run(50*time.Second, stdin); err != nil {
		t.Error(err)
	}
	close(over)
	if err := <-read; err != nil {
		t.Error(err)
	}
	if s.sent() < much {
		t.Errorf("%d bytes were written, fewer than %d that were read", s.sent(), much)
	}
}

// readMuch reads so much of who comes, has the flood end, and hangs up when that is over.
func readMuch(ln net.Listener, much int64, end io.Closer, over <-chan struct{}) error {
	c, err := ln.Accept()
	if err == nil {
		defer c.Close()
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Second)) // where the flood stops, the test does
		_, err = io.CopyN(io.Discard, c, much)
	}
	_ = end.Close()
	<-over
	return err
}
