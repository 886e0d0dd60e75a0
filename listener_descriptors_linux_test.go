//go:build linux

package weir

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// limitedEnv asks the test program to be a server with few descriptors.
const limitedEnv = "WEIR_TEST_LIMITED"

// limited is that process. It greets who connects, and echoes.
type limited struct {
	t    *testing.T
	addr string
	in   io.Writer
	out  *bufio.Reader
}

func startLimited(t *testing.T, descriptors, held int) *limited {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), limitedEnv+"="+fmt.Sprint(descriptors, " ", held))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error("the server: ", err)
		}
	})
	s := &limited{t: t, in: in, out: bufio.NewReader(out)}
	s.addr = strings.TrimSpace(s.line())
	return s
}

func (s *limited) line() string {
	s.t.Helper()
	line, err := s.out.ReadString('\n')
	if err != nil {
		s.t.Fatal(err)
	}
	return line
}

// limitedReport is what the server has seen since it began.
type limitedReport struct {
	errors, accepted, refused int
	turns                     uint64
	used                      time.Duration // of the processor
}

// report asks the server.
func (s *limited) report() (r limitedReport) {
	s.t.Helper()
	_, _ = io.WriteString(s.in, "report\n")
	if _, err := fmt.Sscan(s.line(), &r.errors, &r.accepted, &r.refused, &r.turns, (*int64)(&r.used)); err != nil {
		s.t.Fatal(err)
	}
	return r
}

// free has the server close a file that the loop knows nothing of.
func (s *limited) free() {
	s.t.Helper()
	_, _ = io.WriteString(s.in, "free\n")
	s.line()
}

// dial connects, and returns nil where the server has ended the connection; any other end is a failure.
func (s *limited) dial() net.Conn {
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Error(err)
		return nil
	}
	_ = c.SetReadDeadline(time.Now().Add(runTimeout))
	var b [1]byte
	if _, err := io.ReadFull(c, b[:]); err != nil {
		if _ = c.Close(); err != io.EOF {
			s.t.Errorf("a client that was refused reads %v, want the end", err)
		}
		return nil
	}
	return c
}

// echo sends a byte, and wants it back.
func (s *limited) echo(c net.Conn) {
	s.t.Helper()
	b := [1]byte{'e'}
	_, _ = c.Write(b[:])
	if _, err := io.ReadFull(c, b[:]); err != nil || b[0] != 'e' {
		s.t.Errorf("echo: %v", err)
	}
}

// runLimited is the process that startLimited starts.
func runLimited(spec string) error {
	var descriptors, held int
	if _, err := fmt.Sscan(spec, &descriptors, &held); err != nil {
		return err
	}
	runtime.GC() // what it needs descriptors for is there
	rlimit := syscall.Rlimit{Cur: uint64(descriptors), Max: uint64(descriptors)}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &rlimit); err != nil {
		return err
	}
	files := make([]*os.File, held)
	for i := range files {
		var err error
		if files[i], err = os.Open(os.DevNull); err != nil {
			return err
		}
	}
	l, err := New(Config{})
	if err != nil {
		return err
	}
	var heard told
	ln, err := l.ListenTCP(loopback4, ListenerConfig{}, ListenerHandler{
		Conn: ConnHandler{
			OnOpen: func(c *Conn) { _, _ = c.Write([]byte{'h'}) },
			OnData: func(c *Conn, b []byte) { _, _ = c.Write(b) },
		},
		OnError: heard.onListenerError,
	})
	if err != nil {
		return err
	}
	fmt.Println(ln.Addr())
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			what := in.Text()
			_ = l.Post(func() {
				if what == "free" {
					_ = files[0].Close()
					files = files[1:]
				}
				var u syscall.Rusage
				_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
				s := l.Stats().Streams
				fmt.Println(len(heard), s.Accepted, s.AcceptRefused, l.Turn(), u.Utime.Nano()+u.Stime.Nano())
			})
		}
		_ = l.Close()
	}()
	if err := l.Run(context.Background()); err != nil {
		return err
	}
	if n := heard.count(syscall.EMFILE); n != len(heard) {
		return fmt.Errorf("OnError heard %w", errors.Join(heard...))
	}
	return nil
}

// TestListenerOutOfDescriptors has 200 clients of a process with 64 descriptors. Who is refused reads an end; the process
// is quiet, tells of it once, and serves who it has, and others as soon as there is a descriptor.
func TestListenerOutOfDescriptors(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes two seconds")
	}
	s := startLimited(t, 64, 4)
	var mu sync.Mutex
	var served []net.Conn
	defer func() {
		for _, c := range served {
			_ = c.Close()
		}
	}()
	var clients sync.WaitGroup
	for range 200 {
		clients.Go(func() {
			if c := s.dial(); c != nil {
				mu.Lock()
				defer mu.Unlock()
				served = append(served, c)
			}
		})
	}
	clients.Wait()
	before := s.report()
	if n := len(served); n < 40 || n > 60 || before.accepted != n || before.refused != 200-n {
		t.Fatalf("%d are served; the server says %+v", n, before)
	}
	const period = 2 * time.Second
	for began := time.Now(); time.Since(began) < period; time.Sleep(5 * time.Millisecond) {
		if s.dial() != nil {
			t.Error("there was a descriptor")
		}
	}
	after := s.report()
	used := after.used - before.used
	if t.Logf("it used %v of the processor in %v", used, period); used > period/busyShare && !raceEnabled {
		t.Errorf("that is more than one part in %d", busyShare)
	}
	if after.errors != 1 {
		t.Errorf("OnError was called %d times", after.errors)
	}
	t.Logf("%+v, then %+v", before, after)
	for _, c := range served {
		s.echo(c)
	}
	again := func(how string, free func()) {
		free()
		began := time.Now()
		c := s.dial()
		for c == nil && time.Since(began) < runTimeout { // the server may not know yet
			c = s.dial()
		}
		if c == nil {
			t.Fatalf("%s: refused", how)
		}
		served = append(served, c)
		t.Logf("%s: accepted after %v", how, time.Since(began))
		s.echo(c)
		if c := s.dial(); c != nil {
			t.Errorf("%s: there were two", how)
		}
	}
	again("a client left", func() {
		_ = served[0].Close()
		served = served[1:]
	})
	again("a file was closed", s.free)
	again("another file was closed", s.free)
}
