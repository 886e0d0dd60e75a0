package weirtls_test

import (
	"bytes"
	"crypto/tls"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/weirnet/weir"
	"github.com/weirnet/weir/weirtls"
)

// TestStopDeliversKept stops a loop while a connection is paused that keeps records it has read.
func TestStopDeliversKept(t *testing.T) {
	for name, end := range map[string]bool{"open": false, "the peer has ended": true} {
		t.Run(name, func(t *testing.T) {
			sent := bytes.Repeat([]byte("0123456789abcdef"), 60<<10/16)
			var got bytes.Buffer
			play(t, func(s *script) {
				at := s.serve(weirtls.Config{}, weir.ConnConfig{}, weirtls.Handler{
					OnData: func(c *weirtls.Conn, b []byte) {
						if got.Write(b); got.Len() == len(b) {
							c.Pause()
						}
					},
				})
				s.dial(at, nil, weirtls.Handler{
					OnHandshake: func(c *weirtls.Conn, _ tls.ConnectionState) {
						for piece := range slices.Chunk(sent, 1000) { // more than is decrypted at a time, and less than is read
							if _, err := c.Write(piece); err != nil {
								t.Error(err)
							}
						}
						if end {
							_ = c.CloseWrite()
						}
						s.after(time.Second, func() { s.loop.Stop(time.Minute) })
					},
					OnEnd: func(*weirtls.Conn) {},
				})
			})
			if !bytes.Equal(got.Bytes(), sent) {
				t.Errorf("%d bytes were delivered of %d", got.Len(), len(sent))
			}
		})
	}
}

// TestStopPausedHandshake stops a loop while a handshake is paused whose turn came, and the peer has sent something.
func TestStopPausedHandshake(t *testing.T) {
	play(t, func(s *script) {
		began := time.Now()
		ln, err := s.loop.ListenTCP(netip.MustParseAddrPort("127.0.0.1:0"), weir.ListenerConfig{}, weir.ListenerHandler{
			Conn: weir.ConnHandler{OnOpen: func(c *weir.Conn) { _, _ = c.Write([]byte("220 no TLS here\r\n")) }},
		})
		if err != nil {
			t.Fatal(err)
		}
		s.dial(ln.Addr(), nil, weirtls.Handler{OnOpen: func(c *weirtls.Conn) { c.Pause() }})
		s.after(time.Minute, func() { s.loop.Stop(time.Minute) }) // its time limit has stood still since
		s.Cleanup(func() {
			if d := time.Since(began); d > 90*time.Second {
				t.Errorf("stopped after %v", d)
			}
		})
	})
}
