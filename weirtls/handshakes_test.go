package weirtls_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/weirnet/weir"
	"github.com/weirnet/weir/weirtls"
)

// clientHello is what a client says first.
func clientHello(t *testing.T) []byte {
	t.Helper()
	w := &firstWrite{}
	_ = tls.Client(w, &tls.Config{InsecureSkipVerify: true}).Handshake()
	return w.b
}

type firstWrite struct {
	net.Conn
	b []byte
}

func (w *firstWrite) Write(b []byte) (int, error) {
	w.b = append(w.b, b...)
	return len(b), nil
}

func (w *firstWrite) Read([]byte) (int, error) { return 0, io.EOF }
func (w *firstWrite) Close() error             { return nil }

// TestCrowdedBlocking has the one handshake that is begun stall, on a goroutine, when another wants to begin.
//
// "When there are so many, the one that has waited longest for its peer gives way to the next."
func TestCrowdedBlocking(t *testing.T) {
	play(t, func(s *script) {
		weirtls.HandshakesOf(s.loop).SetMax(1)
		release := make(chan struct{})
		var crowded bool
		cfg := weirtls.Config{Blocking: true, HandshakeTimeout: time.Minute, TLS: &tls.Config{}}
		cfg.TLS.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
			<-release
			return nil, nil
		}
		at := s.serve(cfg, weir.ConnConfig{}, weirtls.Handler{
			OnClose: func(_ *weirtls.Conn, err error) {
				crowded = crowded || errors.Is(err, weirtls.ErrCrowded)
			},
		})
		s.plain(at, weir.ConnHandler{}, clientHello(t))
		s.after(time.Second, func() { s.plain(at, weir.ConnHandler{}, clientHello(t)) })
		s.after(2*time.Second, func() { close(release) })
		s.after(5*time.Second, func() { _ = s.loop.Close() })
		s.Cleanup(func() {
			if n := weirtls.HandshakesOf(s.loop).Stats().Begun; n != 2 || !crowded {
				t.Errorf("%d handshakes were begun; crowded: %v", n, crowded)
			}
		})
	})
}

// TestHandshakeFailures is what OnClose tells, and by what kind it is counted.
func TestHandshakeFailures(t *testing.T) {
	t.Run("close_notify instead of a hello", func(t *testing.T) {
		play(t, func(s *script) {
			at := s.serve(weirtls.Config{}, weir.ConnConfig{}, failsAs(s, weirtls.KindGone, io.ErrUnexpectedEOF))
			s.plain(at, weir.ConnHandler{}, []byte{21, 3, 1, 0, 2, 1, 0})
		})
	})
	t.Run("idle", func(t *testing.T) {
		play(t, func(s *script) {
			at := s.serve(weirtls.Config{}, weir.ConnConfig{IdleTimeout: time.Second},
				failsAs(s, weirtls.KindTimeout, weir.ErrTimeout))
			s.plain(at, weir.ConnHandler{}, []byte{22, 3, 1})
		})
	})
	t.Run("reset while it has its turn", func(t *testing.T) {
		play(t, func(s *script) {
			var c *weirtls.Conn
			var peer *weir.Conn
			h := failsAs(s, weirtls.KindGone, nil)
			h.OnOpen = func(opened *weirtls.Conn) { c = opened }
			cfg := weirtls.Config{TLS: &tls.Config{}}
			cfg.TLS.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
				_ = peer.Reset()
				_ = c.Raw().Enqueue([]byte("finds that out"))
				c.Raw().Flush()
				return nil, nil
			}
			at := s.serve(cfg, weir.ConnConfig{}, h)
			s.plain(at, weir.ConnHandler{OnOpen: func(c *weir.Conn) { peer = c }}, clientHello(t))
		})
	})
}

// failsAs ends the script by a failed handshake.
func failsAs(s *script, kind weirtls.Kind, cause error) weirtls.Handler {
	return weirtls.Handler{OnClose: func(_ *weirtls.Conn, err error) {
		e, ok := errors.AsType[*weirtls.HandshakeError](err)
		if !ok || e.Kind != kind || cause != nil && !errors.Is(err, cause) {
			s.Errorf("closed: %v", err)
		}
		if n := weirtls.HandshakesOf(s.loop).Stats().Failed[kind]; n != 1 {
			s.Errorf("%d were counted as %v", n, kind)
		}
		_ = s.loop.Close()
	}}
}

// TestDrainAfterHandshake has OnHandshake write more than there is room for.
//
// "OnDrain is called when, after a Write answered ErrWouldBlock, there is room again."
func TestDrainAfterHandshake(t *testing.T) {
	play(t, func(s *script) {
		drains := 0
		at := s.serve(weirtls.Config{}, weir.ConnConfig{WriteBufferBytes: 64 << 10}, weirtls.Handler{
			OnHandshake: func(c *weirtls.Conn, _ tls.ConnectionState) {
				for err := error(nil); err == nil; {
					_, err = c.Write(bytes.Repeat([]byte{'x'}, 1<<20))
				}
			},
			OnDrain: func(c *weirtls.Conn) {
				if drains++; c.Raw().Room() < 32<<10 {
					t.Errorf("OnDrain with room for %d bytes", c.Raw().Room())
				}
			},
		})
		s.dial(at, nil, weirtls.Handler{})
		s.end()
		s.Cleanup(func() {
			if drains != 1 {
				t.Errorf("OnDrain was called %d times", drains)
			}
		})
	})
}
