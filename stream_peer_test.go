package weir

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// streamPeerEnv asks the test program to be a peer of streams instead: "role address number duration".
const streamPeerEnv = "WEIR_TEST_STREAM"

// streamPeer is a process that a test started. It ends by itself, and when the test does.
type streamPeer struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out io.Reader
}

func startStreamPeer(t *testing.T, role, addr string, n int, d time.Duration) *streamPeer {
	t.Helper()
	p := &streamPeer{cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), streamPeerEnv+"="+fmt.Sprint(role, " ", addr, " ", n, " ", int64(d)))
	p.cmd.Stderr = os.Stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if p.out, err = p.cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.in.Close()
		_ = p.cmd.Wait()
	})
	return p
}

// read waits for what the process has to say.
func (p *streamPeer) read(t *testing.T, what ...any) {
	t.Helper()
	if _, err := fmt.Fscanln(p.out, what...); err != nil {
		t.Fatal(err)
	}
}

// runStreamPeer is that process.
func runStreamPeer(spec string) error {
	var role, addr string
	var n int
	var ns int64
	if _, err := fmt.Sscan(spec, &role, &addr, &n, &ns); err != nil {
		return err
	}
	d := time.Duration(ns)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0) // the test is over
	}()
	switch role {
	case "quiet":
		return quietConns(addr, n, d)
	case "pour":
		return pour(addr, d)
	case "connect":
		return connectMany(addr, n)
	case "sink":
		return sink()
	case "deaf":
		return deaf(addr, n)
	}
	return fmt.Errorf("no role %q", role)
}

// quietConns has n connections send 64 bytes each 10 ms, and tells the median and the 99th percentile of how long the
// answers took, in nanoseconds from when each message was due.
func quietConns(addr string, n int, d time.Duration) error {
	const every = 10 * time.Millisecond
	var mu sync.Mutex
	var all []time.Duration
	var failed error
	var wait sync.WaitGroup
	start := time.Now().Add(100 * time.Millisecond)
	for i := range n {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return err
		}
		wait.Go(func() {
			defer c.Close()
			took, err := quietConn(c, start.Add(every*time.Duration(i)/time.Duration(n)), every, d)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, took...)
			if err != nil {
				failed = err
			}
		})
	}
	fmt.Println("ready")
	wait.Wait()
	if failed != nil {
		return failed
	}
	slices.Sort(all)
	fmt.Println(int64(all[len(all)/2]), int64(all[len(all)*99/100]))
	return nil
}

func quietConn(c net.Conn, start time.Time, every, d time.Duration) (took []time.Duration, err error) {
	b := make([]byte, 64)
	for due := start; due.Sub(start) < d; due = due.Add(every) {
		time.Sleep(time.Until(due))
		if _, err := c.Write(b); err != nil {
			return nil, err
		}
		if _, err := io.ReadFull(c, b); err != nil {
			return nil, err
		}
		took = append(took, time.Since(due))
	}
	return took, nil
}

// pour writes as fast as it can.
func pour(addr string, d time.Duration) error {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	b := make([]byte, 256<<10)
	fmt.Println("ready")
	for start := time.Now(); time.Since(start) < d; {
		if _, err := c.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// connectMany opens n connections at once and keeps them until the test ends.
func connectMany(addr string, n int) error {
	const at = 50
	conns := make(chan net.Conn, n)
	fmt.Println("ready")
	var wait sync.WaitGroup
	start := time.Now()
	for range at {
		wait.Go(func() {
			for range n / at {
				if c, err := net.Dial("tcp", addr); err == nil {
					conns <- c
				}
			}
		})
	}
	wait.Wait()
	fmt.Println(len(conns), int64(time.Since(start)))
	select {}
}

// sink accepts and reads whatever comes.
func sink() error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(ln.Addr())
	for {
		c, err := ln.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			_, _ = io.Copy(io.Discard, struct{ io.Reader }{c})
		}()
	}
}

// deaf opens n connections, asks for something, and reads nothing.
func deaf(addr string, n int) error {
	for range n {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return err
		}
		if err := c.(*net.TCPConn).SetReadBuffer(4096); err != nil {
			return err
		}
		if _, err := io.Copy(c, strings.NewReader("x")); err != nil {
			return err
		}
		defer c.Close()
	}
	fmt.Println("ready")
	select {}
}
