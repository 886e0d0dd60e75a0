package weirtls_test

import (
	"crypto/tls"
	"errors"
	"testing"
	"time"

	"github.com/weirnet/weir"
	"github.com/weirnet/weir/weirtls"
)

// TestCloseDeliversNothing has what could call the handler come while Close waits for the peer.
//
// "Nothing is delivered any more, and OnClose follows."
func TestCloseDeliversNothing(t *testing.T) {
	play(t, func(s *script) {
		began := time.Now()
		at := s.serve(weirtls.Config{CloseTimeout: time.Minute}, weir.ConnConfig{IdleTimeout: time.Second}, weirtls.Handler{
			OnHandshake: func(c *weirtls.Conn, _ tls.ConnectionState) { _ = c.Close() },
			OnTimeout: func(*weirtls.Conn, weir.Timeout) {
				t.Error("OnTimeout after Close")
				_ = s.loop.Close()
			},
			OnClose: func(*weirtls.Conn, error) {
				if d := time.Since(began); d > 10*time.Second {
					t.Errorf("closed after %v", d)
				}
				_ = s.loop.Close()
			},
		})
		s.dial(at, nil, weirtls.Handler{OnEnd: func(*weirtls.Conn) {}})
	})
}

// TestCloseTimeout has the peer take what is queued, and say nothing.
//
// "CloseTimeout is how long Close waits for a peer that takes nothing of what is queued, or, once it has, does not end its
// own direction."
func TestCloseTimeout(t *testing.T) {
	play(t, func(s *script) {
		began := time.Now()
		at := s.serve(weirtls.Config{CloseTimeout: time.Minute}, weir.ConnConfig{}, weirtls.Handler{
			OnHandshake: func(c *weirtls.Conn, _ tls.ConnectionState) { _ = c.Close() },
			OnClose: func(_ *weirtls.Conn, err error) {
				if d := time.Since(began).Round(time.Second); d != time.Minute || !errors.Is(err, weir.ErrTimeout) {
					t.Errorf("closed after %v: %v", d, err)
				}
				_ = s.loop.Close()
			},
		})
		s.dial(at, nil, weirtls.Handler{OnEnd: func(*weirtls.Conn) {}})
	})
}

// TestPauseAfterClose pauses a connection that waits for its peer's farewell.
func TestPauseAfterClose(t *testing.T) {
	play(t, func(s *script) {
		at := s.serve(weirtls.Config{}, weir.ConnConfig{}, weirtls.Handler{
			OnHandshake: func(c *weirtls.Conn, _ tls.ConnectionState) {
				_ = c.Close()
				c.Pause()
			},
			OnClose: func(_ *weirtls.Conn, err error) {
				if err != nil {
					t.Errorf("closed: %v", err)
				}
				_ = s.loop.Close()
			},
		})
		s.dial(at, nil, weirtls.Handler{})
	})
}

// TestErrorBehindPause has a message that makes no sense come behind data whose delivery pauses.
func TestErrorBehindPause(t *testing.T) {
	play(t, func(s *script) {
		seal := &sealer{t: t}
		got := ""
		at := s.serve(weirtls.Config{}, weir.ConnConfig{}, weirtls.Handler{
			OnData: func(c *weirtls.Conn, b []byte) {
				got += string(b)
				c.Pause()
				s.after(time.Second, c.Resume)
			},
			OnClose: func(_ *weirtls.Conn, err error) {
				if err == nil || err == weir.ErrClosed || got != "before" {
					t.Errorf("got %q, closed: %v", got, err)
				}
				_ = s.loop.Close()
			},
		})
		s.dial(at, &tls.Config{KeyLogWriter: &seal.log}, weirtls.Handler{
			OnHandshake: func(c *weirtls.Conn, _ tls.ConnectionState) {
				s.after(time.Second, func() {
					finished := append([]byte{20, 0, 0, 32}, make([]byte, 32)...)
					_ = c.Raw().Enqueue(seal.seal(dataRecord, []byte("before")))
					_ = c.Raw().Enqueue(seal.seal(handshakeRecord, finished))
					_ = c.Raw().Enqueue(seal.seal(dataRecord, []byte("behind")))
				})
			},
			OnEnd: func(*weirtls.Conn) {},
		})
		s.end()
	})
}

// TestSetHandlerInOnEnd replaces the handler by one without OnEnd, in that.
//
// "SetHandler replaces the handler, from the next call on."
func TestSetHandlerInOnEnd(t *testing.T) {
	play(t, func(s *script) {
		at := s.serve(weirtls.Config{}, weir.ConnConfig{}, weirtls.Handler{
			OnEnd: func(c *weirtls.Conn) {
				c.SetHandler(weirtls.Handler{})
				s.after(time.Second, func() {
					if _, err := c.Write([]byte("still here")); err != nil {
						t.Error(err)
					}
					_ = s.loop.Close()
				})
			},
		})
		s.dial(at, nil, weirtls.Handler{
			OnHandshake: func(c *weirtls.Conn, _ tls.ConnectionState) { _ = c.CloseWrite() },
		})
	})
}
