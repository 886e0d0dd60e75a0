package weirtls

import (
	"crypto/tls"
	"io"
	"testing"
	"time"

	"github.com/weirnet/weir"
)

// TestHandshakesLane has a hundred handshakes begin at once, of which each holds the loop for a millisecond, beside a
// connection of the same listener that is open. That waits for one or two of them, not for all, and the handshakes are
// served meanwhile, in the order in which they came.
func TestHandshakesLane(t *testing.T) {
	t.Parallel()
	const clients, step = 100, time.Millisecond
	inMemory(t, weir.Config{SlowCallback: -1}, func(t *testing.T, p *place) {
		storm := false
		cfg := serverTLS(0)
		cfg.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
			if storm {
				time.Sleep(step)
			}
			return nil, nil
		}
		at := p.serve(Config{TLS: cfg}, weir.ConnConfig{}, Handler{OnData: func(c *Conn, b []byte) { _, _ = c.Write(b) }})
		open := tls.Client(p.dial(at), clientTLS(0))
		if err := open.Handshake(); err != nil {
			t.Error(err)
			return
		}
		do(t, p.loop, func() { storm = true })
		done := make(chan time.Duration, clients)
		began := time.Now()
		for range clients {
			go func() {
				c := tls.Client(p.dial(at), clientTLS(0))
				if err := c.Handshake(); err != nil {
					t.Error(err)
				}
				_, _ = c.Write([]byte("x"))
				_, _ = io.ReadFull(c, make([]byte, 1)) // the server has done its part
				done <- time.Since(began)
				_ = c.NetConn().Close()
			}()
		}
		var longest time.Duration
		echoes, b := 0, make([]byte, 1)
		for len(done) < clients {
			sent := time.Now()
			if _, err := open.Write(b); err != nil {
				t.Error(err)
				return
			}
			if _, err := io.ReadFull(open, b); err != nil {
				t.Error(err)
				return
			}
			longest = max(longest, time.Since(sent))
			echoes++
			time.Sleep(step / 4)
		}
		t.Logf("%d echoes, the slowest after %v", echoes, longest)
		if most := 2 * step; longest > most {
			t.Errorf("an echo took %v beside the storm, want %v at most", longest, most)
		}
		if echoes < clients/4 {
			t.Errorf("%d echoes in a storm of %v", echoes, clients*step)
		}
		_ = open.NetConn().Close()
	})
}
