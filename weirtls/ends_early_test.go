package weirtls

import (
	"crypto/tls"
	"strings"
	"testing"
	"time"

	"github.com/weirnet/weir"
)

// gulp keeps what is written to it together, until it is told to let it go.
type gulp struct {
	peer
	held []byte
	hold bool
}

func (g *gulp) Write(b []byte) (int, error) {
	if g.hold {
		g.held = append(g.held, b...)
		return len(b), nil
	}
	return g.peer.Write(b)
}

// TestBlockingEndsEarly has a client that has ended before the server is done, which ends, too, with OnHandshake.
func TestBlockingEndsEarly(t *testing.T) {
	t.Parallel()
	inMemory(t, weir.Config{}, func(t *testing.T, p *place) {
		cfg := serverTLS(tls.VersionTLS13)
		cfg.ClientAuth = tls.RequestClientCert
		cfg.VerifyConnection = func(tls.ConnectionState) error { time.Sleep(50 * time.Millisecond); return nil }
		got, closed := "", make(chan error, 1)
		at := p.serve(Config{TLS: cfg, Blocking: true}, weir.ConnConfig{}, Handler{
			OnHandshake: func(c *Conn, _ tls.ConnectionState) { _ = c.CloseWrite() },
			OnData:      func(_ *Conn, b []byte) { got += string(b); time.Sleep(10 * time.Millisecond) },
			OnEnd:       func(*Conn) { got += "." },
			OnClose:     func(_ *Conn, err error) { closed <- err },
		})
		g := &gulp{peer: p.dial(at)}
		ccfg := clientTLS(tls.VersionTLS13)
		ccfg.VerifyConnection = func(tls.ConnectionState) error { g.hold = true; return nil }
		c := tls.Client(g, ccfg)
		if err := c.Handshake(); err != nil {
			t.Fatal(err)
		}
		request := strings.Repeat("x", 1000)
		for range 60 {
			_, _ = c.Write([]byte(request))
		}
		_ = c.CloseWrite()
		g.hold = false
		_, _ = g.Write(g.held)
		_ = g.CloseWrite()
		if err := <-closed; err != nil || got != strings.Repeat(request, 60)+"." {
			t.Errorf("got %d, and %v", len(got), err)
		}
		_ = g.peer.Close()
	})
}
