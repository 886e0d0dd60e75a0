package weirhttp

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

func TestIsDead(t *testing.T) {
	t.Parallel()
	op := func(err error) error { return &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", err)} }
	for err, want := range map[error]bool{
		op(syscall.EMFILE): false, op(syscall.ENFILE): false, op(syscall.ENOBUFS): false, op(syscall.EPERM): false,
		op(syscall.ECONNABORTED): false, errors.New("some listener's own"): false,
		op(syscall.EBADF): true, op(syscall.EINVAL): true, io.EOF: true, &net.OpError{Op: "accept", Err: net.ErrClosed}: true,
	} {
		if got := isDead(err); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}

// tired fails each Accept but those after the first so many.
type tired struct {
	net.Listener
	failures, asked atomic.Int64
	err             error
}

func (l *tired) Accept() (net.Conn, error) {
	l.asked.Add(1)
	if l.failures.Add(-1) >= 0 {
		return nil, l.err
	}
	return l.Listener.Accept()
}

// "Accept failing for a while, as without descriptors, does not end it: it rests, and tries again."
func TestServerAcceptErrors(t *testing.T) {
	t.Parallel()
	var log syncBuffer
	v := serve(t, &Server{}, hello) // has a certificate
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &tired{Listener: tcp, err: &net.OpError{Op: "accept", Err: syscall.EMFILE}}
	l.failures.Store(4)
	s := &Server{Logger: log.logger(), TLSConfig: v.TLSConfig, Handler: v.Handler}
	w := serveOn(t, s, l, nil)
	if body, _ := w.get(w.client("HTTP/2.0"), "/"); body != "hello HTTP/2.0" {
		t.Errorf("%q", body)
	}
	if n := strings.Count(log.String(), "accepting failed"); n != 4 {
		t.Errorf("%d failures in the log:\n%s", n, &log)
	}
}

// An Accept that fails for ever is asked a few times a second, and Close does not wait for its rest.
func TestServerAcceptRests(t *testing.T) {
	t.Parallel()
	v := serve(t, &Server{}, hello)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &tired{Listener: tcp, err: &net.OpError{Op: "accept", Err: syscall.EMFILE}}
	l.failures.Store(1 << 40)
	s := &Server{TLSConfig: v.TLSConfig, Handler: v.Handler}
	serveOn(t, s, l, nil)
	eventually(t, "some failures", func() bool { return l.asked.Load() >= 6 })
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if n := l.asked.Load(); n > 20 {
		t.Errorf("it was asked %d times: it does not rest", n)
	}
}

func TestRestAfter(t *testing.T) {
	t.Parallel()
	var rest restAfter
	var got []string
	for range 3 {
		rest.wait(t.Context())
		got = append(got, fmt.Sprint(int64(rest)/1e6))
	}
	if s := strings.Join(got, " "); s != "5 10 20" {
		t.Errorf("it rests %s ms", s)
	}
	rest = restAfter(maxAcceptRest) / 1024
	for range 3 {
		rest.wait(t.Context())
	}
	if rest >= restAfter(maxAcceptRest) {
		t.Error("it grows too fast")
	}
}
