package weir

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/weirnet/weir/internal/memsys"
)

// onListenerError collects what OnError of a listener hears.
func (e *told) onListenerError(_ *Listener, err error) { *e = append(*e, err) }

// TestListenerAcceptErrors has accepts fail: that never ends the listener, nor keeps it busy, with rests of 10, 20 and
// then 40 ms.
func TestListenerAcceptErrors(t *testing.T) {
	const clients = 20
	for _, row := range []struct {
		errno   syscall.Errno
		reports int // of 5 failures
		accepts int // that fail in 1 s of failing for ever: at most
	}{
		{syscall.EMFILE, 1, 2 * 30}, {syscall.ENFILE, 1, 2 * 30}, {syscall.ENOBUFS, 1, 30}, {syscall.ENOMEM, 1, 30},
		{syscall.ECONNABORTED, 5, 40}, {syscall.EPERM, 5, 40}, {syscall.EPROTO, 5, 40}, {syscall.ENETDOWN, 5, 40},
		{syscall.EHOSTUNREACH, 5, 40}, {syscall.EOPNOTSUPP, 5, 40}, {syscall.ETIMEDOUT, 5, 40},
	} {
		t.Run(row.errno.Error(), func(t *testing.T) {
			t.Run("some", func(t *testing.T) {
				onEachKernel(t, func(t *testing.T, k *Kernel) {
					l := newLoop(t, Config{Kernel: k, Faults: plan(t, fmt.Sprintf("accept#2x5=%d", int(row.errno)))})
					var heard told
					ln := listenTold(t, l, &heard, func() {})
					l.Every(time.Millisecond, func() {
						if s := l.Stats().Streams; s.Accepted+s.AcceptRefused == clients {
							_ = l.Close()
						}
					})
					for range clients {
						knock(t, k.backend.Kernel, ln.Addr())
					}
					run(t, l)
					if n := heard.count(row.errno); n != len(heard) || n < 1 || n > row.reports {
						t.Errorf("OnError heard %v", heard)
					}
					full := row.errno == syscall.EMFILE || row.errno == syscall.ENFILE
					if s := l.Stats().Streams; s.AcceptRefused > 0 && !full {
						t.Errorf("%d refused", s.AcceptRefused)
					}
				})
			})
			t.Run("for ever", func(t *testing.T) {
				inBubble(t, func(t *testing.T, net *memsys.Net) {
					l := loopIn(t, net, Config{Faults: plan(t, fmt.Sprintf("accept*=%d", int(row.errno)))})
					var heard told
					ln := listenTold(t, l, &heard, func() { t.Error("one was accepted") })
					knock(t, net.Backend().Kernel, ln.Addr())
					runFor(t, l, time.Second)
					hits := l.Faults().Hits()[0]
					if hits < 25 || hits > row.accepts+8 {
						t.Errorf("%d accepts in a second", hits)
					}
					if turns := l.Turn(); turns > 200 {
						t.Errorf("%d turns in a second", turns)
					}
					if len(heard) == 0 || row.reports == 1 && len(heard) != 1 {
						t.Errorf("OnError heard %v", heard)
					}
				})
			})
		})
	}
}

func listenTold(t *testing.T, l *Loop, heard *told, onOpen func()) *Listener {
	t.Helper()
	ln, err := l.ListenTCP(loopback4, ListenerConfig{}, ListenerHandler{
		Conn:    ConnHandler{OnOpen: func(*Conn) { onOpen() }},
		OnError: heard.onListenerError,
		OnClose: func(_ *Listener, err error) {
			if err != nil && err != ErrClosed {
				t.Errorf("the listener has ended: %v", err)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// TestListenerDead: "EBADF, ENOTSOCK and EINVAL end the listener", and its connections live on.
func TestListenerDead(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EBADF, syscall.ENOTSOCK, syscall.EINVAL} {
		t.Run(errno.Error(), func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				l := newLoop(t, Config{Kernel: k, Faults: plan(t, fmt.Sprintf("accept#2=%d", int(errno)))})
				var first *Conn
				ln, err := l.ListenTCP(loopback4, ListenerConfig{}, ListenerHandler{
					Conn:    ConnHandler{OnOpen: func(c *Conn) { first = c }},
					OnError: func(_ *Listener, err error) { t.Errorf("OnError hears %v", err) },
					OnClose: func(ln *Listener, err error) {
						var op *OpError
						if !errors.As(err, &op) || op.Err != errno || op.Op != "accept" || op.Source != ln.Addr() {
							t.Errorf("OnClose has %v", err)
						}
						if first == nil || ln.Conns() != 1 || first.Close() != nil {
							t.Error("the connection is gone")
						}
						_ = l.Close()
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				knock(t, k.backend.Kernel, ln.Addr())
				run(t, l)
			})
		})
	}
}

// TestListenerPollerFails: a poller that does not take a connection costs that connection, and is told.
func TestListenerPollerFails(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k, Faults: plan(t, "add#2=ENOSPC")})
		var heard told
		ln := listenTold(t, l, &heard, func() { _ = l.Close() })
		knock(t, k.backend.Kernel, ln.Addr())
		knock(t, k.backend.Kernel, ln.Addr())
		run(t, l)
		if heard.count(syscall.ENOSPC) != 1 || len(heard) != 1 {
			t.Errorf("OnError heard %v", heard)
		}
		if s := l.Stats().Streams; s.Open != 0 || ln.Conns() != 0 {
			t.Errorf("%d open, %d of the listener", s.Open, ln.Conns())
		}
	})
}
