package weirtls_test

import (
	"context"
	"crypto/tls"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirnet/weir"
	"github.com/weirnet/weir/weirtls"
)

var errTimeUp = errors.New("the time is up")

// TestSenderHolds writes before the handshake is done, for which the connection is paused.
//
// "weir.ErrWouldBlock when Config.SenderBufferBytes would be exceeded, but an empty Sender takes any b"; "what it is given
// before the handshake is done goes out after".
func TestSenderHolds(t *testing.T) {
	got := 0
	play(t, func(s *script) {
		at := s.serve(weirtls.Config{SenderBufferBytes: 1000}, weir.ConnConfig{}, weirtls.Handler{
			OnOpen: func(c *weirtls.Conn) {
				c.Pause()
				s.hold(c)
			},
		})
		s.dial(at, nil, weirtls.Handler{
			OnData: func(_ *weirtls.Conn, b []byte) { got += len(b) },
			OnEnd: func(c *weirtls.Conn) {
				_ = c.Close()
				s.end()
			},
		})
	})
	if got != 5000+400 {
		t.Errorf("%d bytes came", got)
	}
}

// hold has a Sender be full, and then have room.
func (s *script) hold(c *weirtls.Conn) {
	sender := c.Sender()
	s.wantWrite(sender, nil, nil)
	s.wantWrite(sender, make([]byte, 5000), nil)
	s.wantWrite(c.Sender(), []byte("x"), weir.ErrWouldBlock) // the same
	waited := make(chan error, 2)
	go func() {
		ctx, cancel := context.WithTimeoutCause(context.Background(), time.Second, errTimeUp)
		defer cancel()
		waited <- sender.WriteContext(ctx, make([]byte, 400))
		waited <- sender.WriteContext(context.Background(), make([]byte, 400))
	}()
	s.after(2*time.Second, func() {
		if err := <-waited; err != errTimeUp {
			s.Errorf("WriteContext: %v", err)
		}
		select {
		case err := <-waited:
			s.Errorf("it has not waited: %v", err)
		default:
		}
		c.Resume()
	})
	s.after(3*time.Second, func() {
		if err := <-waited; err != nil {
			s.Error(err)
		}
		_ = c.CloseWrite()
		s.wantWrite(sender, []byte("x"), weir.ErrClosed)
	})
}

func (s *script) wantWrite(sender *weirtls.Sender, b []byte, want error) {
	s.Helper()
	n, err := sender.Write(b)
	if err != want || err == nil && n != len(b) || err != nil && n != 0 {
		s.Errorf("Write of %d bytes answers %d, %v, want %v", len(b), n, err, want)
	}
}

// TestSenderEndWanted ends the direction while the handshake is not done: what was taken goes out before, and nothing is
// taken behind it.
func TestSenderEndWanted(t *testing.T) {
	var got strings.Builder
	ended := false
	play(t, func(s *script) {
		at := s.serve(weirtls.Config{}, weir.ConnConfig{}, weirtls.Handler{
			OnData: func(_ *weirtls.Conn, b []byte) { got.Write(b) },
			OnEnd: func(c *weirtls.Conn) {
				ended = true
				_ = c.Close()
				s.end()
			},
		})
		c := s.dial(at, nil, weirtls.Handler{})
		s.wantWrite(c.Sender(), []byte("early"), nil)
		_ = c.CloseWrite()
		s.wantWrite(c.Sender(), []byte("late"), weir.ErrClosed)
	})
	if got.String() != "early" || !ended {
		t.Errorf("%q came, ended %v", got.String(), ended)
	}
}

// TestSenderFullLoop has no more room in the queue of the loop: "when it needs a Post for which the loop's queue has no
// room".
func TestSenderFullLoop(t *testing.T) {
	var got strings.Builder
	play(t, func(s *script) {
		waited := make(chan error, 2)
		at := s.serve(weirtls.Config{}, weir.ConnConfig{}, weirtls.Handler{
			OnHandshake: func(c *weirtls.Conn, _ tls.ConnectionState) {
				sender := c.Sender()
				s.after(time.Second, func() {
					for s.loop.Post(func() {}) == nil {
					}
					s.wantWrite(sender, []byte("refused "), weir.ErrWouldBlock)
					go func() {
						ctx, cancel := context.WithTimeoutCause(context.Background(), time.Second, errTimeUp)
						defer cancel()
						waited <- sender.WriteContext(ctx, []byte("late "))
						waited <- sender.WriteContext(context.Background(), []byte("waited "))
					}()
					if err := <-waited; err != errTimeUp {
						t.Errorf("WriteContext: %v", err)
					}
				})
				s.after(2*time.Second, func() {
					if err := <-waited; err != nil {
						t.Error(err)
					}
					for _, word := range []string{"and ", "more "} {
						s.wantWrite(sender, []byte(word), nil)
					}
				})
				s.after(4*time.Second, func() { s.wantWrite(sender, []byte("later"), nil) })
				s.end()
			},
		})
		s.dial(at, nil, weirtls.Handler{OnData: func(_ *weirtls.Conn, b []byte) { got.Write(b) }})
	})
	if got.String() != "waited and more later" {
		t.Errorf("%q came", got.String())
	}
}

// TestSenderTogether: "What goroutines write before the loop comes to it goes out together".
func TestSenderTogether(t *testing.T) {
	var calls []int
	play(t, func(s *script) {
		at := s.serve(weirtls.Config{}, weir.ConnConfig{}, weirtls.Handler{
			OnHandshake: func(c *weirtls.Conn, _ tls.ConnectionState) {
				sender := c.Sender()
				s.after(time.Second, func() {
					var wait sync.WaitGroup
					for range 100 {
						wait.Go(func() { s.wantWrite(sender, []byte("0123456789"), nil) })
					}
					wait.Wait()
				})
			},
		})
		s.dial(at, nil, weirtls.Handler{OnData: func(_ *weirtls.Conn, b []byte) { calls = append(calls, len(b)) }})
		s.end()
	})
	if !slices.Equal(calls, []int{1000}) {
		t.Errorf("what comes at a time is %v", calls)
	}
}

// TestSenderLate is made when there is nothing to be written any more.
func TestSenderLate(t *testing.T) {
	play(t, func(s *script) {
		at := s.serve(weirtls.Config{}, weir.ConnConfig{}, weirtls.Handler{
			OnHandshake: func(c *weirtls.Conn, _ tls.ConnectionState) {
				_ = c.CloseWrite()
				s.wantWrite(c.Sender(), []byte("x"), weir.ErrClosed)
			},
			OnClose: func(c *weirtls.Conn, _ error) {
				s.wantWrite(c.Sender(), nil, weir.ErrClosed)
				_ = s.loop.Close()
			},
		})
		s.dial(at, nil, weirtls.Handler{})
	})
}
