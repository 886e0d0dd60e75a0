package weirtls_test

import (
	"bytes"
	"crypto/tls"
	"testing"
	"time"

	"github.com/weirnet/weir"
	"github.com/weirnet/weir/weirtls"
)

// TestKeyUpdateAfterCloseWrite has a peer change its keys, and ask for others, on a connection that is half closed.
func TestKeyUpdateAfterCloseWrite(t *testing.T) {
	play(t, func(s *script) {
		seal := &sealer{t: t}
		var got bytes.Buffer
		at := s.serve(weirtls.Config{}, weir.ConnConfig{}, weirtls.Handler{
			OnHandshake: func(c *weirtls.Conn, _ tls.ConnectionState) { _ = c.CloseWrite() },
			OnData:      func(_ *weirtls.Conn, b []byte) { got.Write(b) },
			OnClose: func(_ *weirtls.Conn, err error) {
				if err != weir.ErrClosed {
					t.Errorf("closed: %v", err)
				}
			},
		})
		s.dial(at, &tls.Config{KeyLogWriter: &seal.log}, weirtls.Handler{
			OnEnd: func(c *weirtls.Conn) {
				_ = c.Raw().Enqueue(seal.seal(handshakeRecord, keyUpdate))
				_ = c.Raw().Enqueue(seal.seal(dataRecord, []byte("behind the update")))
				s.end()
			},
		})
		s.Cleanup(func() {
			if got.String() != "behind the update" {
				t.Errorf("got %q", got.String())
			}
		})
	})
}

// TestKeyUpdateFlood has a peer ask for new keys again and again, and read none of the answers.
func TestKeyUpdateFlood(t *testing.T) {
	const rounds, most = 4_000, 32 << 10
	play(t, func(s *script) {
		seal := &sealer{t: t}
		queued, closed := 0, false
		at := s.serve(weirtls.Config{}, weir.ConnConfig{SendBufferBytes: 4 << 10}, weirtls.Handler{
			OnData:  func(c *weirtls.Conn, b []byte) { queued = max(queued, c.Raw().Stats().Queued) },
			OnClose: func(_ *weirtls.Conn, err error) { closed = true },
		})
		s.dial(at, &tls.Config{KeyLogWriter: &seal.log}, weirtls.Handler{
			OnHandshake: func(c *weirtls.Conn, _ tls.ConnectionState) {
				s.after(time.Second, func() {
					c.Raw().Pause()
					for range rounds {
						_ = c.Raw().Enqueue(seal.seal(handshakeRecord, keyUpdate))
						_ = c.Raw().Enqueue(seal.seal(dataRecord, []byte{0}))
					}
					s.end()
				})
			},
		})
		s.Cleanup(func() {
			if queued > most || !closed {
				t.Errorf("%d bytes of answers were queued; closed: %v", queued, closed)
			}
		})
	})
}
