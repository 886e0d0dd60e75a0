package weirtls

import (
	"crypto/tls"
	"fmt"
	"testing"
	"time"

	"github.com/weirnet/weir"
)

// TestEndInCall: Close and Reset in each call, after a Pause or not, end the connection with nil, and nothing more is
// called.
func TestEndInCall(t *testing.T) {
	t.Parallel()
	ends := map[string]func(c *Conn) error{
		"Close": (*Conn).Close,
		"Reset": (*Conn).Reset,
		"Pause and Close": func(c *Conn) error {
			c.Pause()
			return c.Close()
		},
		"Pause and Reset": func(c *Conn) error {
			c.Pause()
			return c.Reset()
		},
	}
	eachVersion(t, func(t *testing.T, version uint16) {
		for _, role := range []Role{AsServer, AsClient} {
			for _, in := range []string{"open", "TLS", "handshake", "data", "drain", "end", "stop"} {
				for how, end := range ends {
					t.Run(fmt.Sprint(role, " ", how, " in ", in), func(t *testing.T) {
						playInMemory(t, func(s *scene) { endIn(s, version, role, in, end) })
					})
				}
			}
		}
	})
}

// endIn has one side end in a call. Each says a lot, and the other ends when it has heard that.
func endIn(s *scene, version uint16, role Role, in string, end func(*Conn) error) {
	t := s.t
	message := pattern(100_000)
	e, other := newEar(t, role.String()), newEar(t, "the other")
	ended := 0
	endNow := func(c *Conn) {
		if ended++; ended > 1 {
			return
		}
		must(t, end(c))
		if c.Close() != weir.ErrClosed {
			t.Error("Close after it is not refused")
		}
		if _, err := c.Write(message[:1]); err == nil {
			t.Error("Write after it is not refused")
		}
		e.quiet = true
	}
	write := func(c *Conn) {
		for range 100 {
			if n, err := c.Write(message); n < len(message) || err != nil {
				return // and OnDrain comes
			}
		}
		t.Error("there is no end to what Write takes")
	}
	e.on("handshake", write)
	other.on("handshake", write)
	other.on("data", func(c *Conn) {
		if len(other.data) >= len(message) && in != "stop" && in != "drain" {
			_ = c.CloseWrite()
		}
	})
	if in != "TLS" {
		before := e.do[in]
		e.on(in, func(c *Conn) {
			if before != nil {
				before(c)
			}
			endNow(c)
		})
	}
	server, client := e, other
	serverConfig, clientConfig := serverTLS(version), clientTLS(version)
	if role == AsClient {
		server, client = other, e
		if in == "TLS" {
			clientConfig.VerifyConnection = func(tls.ConnectionState) error { endNow(e.conn); return nil }
		}
	} else if in == "TLS" {
		serverConfig.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { endNow(e.conn); return nil, nil }
	}
	small := weir.ConnConfig{WriteBufferBytes: 50_000} // so that OnDrain comes
	to := s.listen(Config{TLS: serverConfig}, weir.ListenerConfig{Conn: small}, server.handler())
	s.dial(to, Config{TLS: clientConfig}, small, client.handler())
	s.after(time.Second, func() { s.l.Stop(-1) })
	s.run()
	if ended == 0 {
		t.Errorf("%s was not called: %v", in, e.calls)
	}
	e.closed(nil)
	if other.closes != 1 {
		t.Errorf("the other was closed %d times", other.closes)
	}
	s.nothingLeft()
}

// TestConnectionStateInHandshake: a callback of TLS, which runs in the middle of a handshake, may ask its connection
// what it is, and is told that there is nothing yet.
func TestConnectionStateInHandshake(t *testing.T) {
	t.Parallel()
	playOnBoth(t, func(s *scene) {
		left := 2
		for _, blocking := range []bool{false, true} {
			server := newEar(t, "server")
			asked := make(chan bool, 1)
			cfg := serverTLS(0)
			cfg.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
				if !blocking { // else it is not the loop's goroutine
					_, ok := server.conn.ConnectionState()
					asked <- ok
				}
				return nil, nil
			}
			server.on("open", func(c *Conn) {
				if _, ok := c.ConnectionState(); ok {
					t.Error("there is a state in OnOpen")
				}
				s.after(time.Millisecond, func() { _, _ = c.ConnectionState() }) // in the middle
			})
			server.on("handshake", func(c *Conn) {
				state, ok := c.ConnectionState()
				if !ok || !state.HandshakeComplete || state.Version != server.state.Version {
					t.Errorf("the state is %v, %v", state, ok)
				}
				select {
				case ok := <-asked:
					if ok {
						t.Error("there is a state in the middle of the handshake")
					}
				default:
					if !blocking {
						t.Error("the callback was not called")
					}
				}
				must(t, c.Close())
			})
			to := s.listen(Config{TLS: cfg, Blocking: blocking}, weir.ListenerConfig{}, server.handler())
			s.dial(to, Config{}, weir.ConnConfig{}, Handler{})
			s.when(func() bool { return server.closes > 0 }, func() {
				server.closed(nil)
				if left--; left == 0 {
					_ = s.l.Close()
				}
			})
		}
		s.run()
	})
}
