package weirtls

import (
	"crypto/tls"
	"fmt"
	"testing"
	"time"

	"github.com/weirnet/weir"
)

// pauseCalls are those in which a connection can be paused, and what a server is told of that is told all.
var pauseCalls = []string{"open", "handshake", "data", "end"}

// TestPause: one that is paused in a call is told nothing for as long, and all when it is resumed, as if it had not been.
func TestPause(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, version uint16) {
		for _, role := range []Role{AsServer, AsClient} {
			for _, in := range pauseCalls {
				for _, size := range []int{1000, 100_000} { // with the end in one read, and not
					t.Run(fmt.Sprint(role, " in ", in, " of ", size), func(t *testing.T) {
						playOnBoth(t, func(s *scene) { pauseIn(s, version, role, in, size) })
					})
				}
			}
		}
	})
}

// pauseIn has one side paused in a call, while the other does what it has to do, and ends.
func pauseIn(s *scene, version uint16, role Role, in string, size int) {
	t := s.t
	message := pattern(size)
	e, other := newEar(t, role.String()), newEar(t, "the other")
	paused := 0
	e.on(in, func(c *Conn) {
		if paused++; paused > 1 {
			return
		}
		c.Pause()
		if !c.Paused() {
			t.Error("it is not paused")
		}
		e.quiet = true
		s.after(100*time.Millisecond, func() { e.quiet = false; c.Resume() })
	})
	if in != "end" {
		e.on("end", func(c *Conn) { must(t, c.Close()) })
	} else {
		end := e.do["end"]
		e.on("end", func(c *Conn) { end(c); must(t, c.Close()) })
	}
	other.on("handshake", func(c *Conn) {
		n, err := c.Write(message)
		if n != len(message) || err != nil {
			t.Errorf("Write: %d, %v", n, err)
		}
		must(t, c.CloseWrite())
	})
	if version == tls.VersionTLS12 {
		other.on("handshake", func(c *Conn) { _, _ = c.Write(message); must(t, c.Close()) })
	}
	server, client := e, other
	if role == AsClient {
		server, client = other, e
	}
	to := s.listen(Config{TLS: serverTLS(version)}, weir.ListenerConfig{}, server.handler())
	s.dial(to, Config{TLS: clientTLS(version)}, weir.ConnConfig{}, client.handler())
	s.runUntilOver(e, other)
	e.told("open handshake data end close", nil)
	same(t, "what was received", e.data, message)
	other.closed(nil)
	s.nothingLeft()
}

// TestPauseInHandshake: a server that is paused by a callback of TLS, which is in the middle of a handshake, goes on with
// it when it is resumed.
func TestPauseInHandshake(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, version uint16) {
		playOnBoth(t, func(s *scene) {
			server, client := newEar(t, "server"), newEar(t, "client")
			cfg := serverTLS(version)
			asked := 0
			cfg.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
				asked++
				server.conn.Pause()
				server.quiet = true
				s.after(100*time.Millisecond, func() { server.quiet = false; server.conn.Resume() })
				return nil, nil
			}
			server.on("data", func(c *Conn) { _, _ = c.Write(server.data) })
			client.on("handshake", func(c *Conn) { _, _ = c.Write([]byte("hello")) })
			client.on("data", func(c *Conn) {
				if len(client.data) == 5 {
					must(t, c.Close())
				}
			})
			to := s.listen(Config{TLS: cfg}, weir.ListenerConfig{}, server.handler())
			s.dial(to, Config{TLS: clientTLS(version)}, weir.ConnConfig{}, client.handler())
			s.runUntilOver(server, client)
			if asked != 1 {
				t.Errorf("asked %d times", asked)
			}
			server.told("open handshake data end close", nil)
			client.closed(nil)
			same(t, "the echo", client.data, []byte("hello"))
		})
	})
}

// "Paused connections in a queue of handshakes stay paused": of a burst that is paused in OnOpen none goes on, others
// do, and all do once they are resumed.
func TestPausedBurst(t *testing.T) {
	t.Parallel()
	playOnBoth(t, func(s *scene) {
		const burst = 32
		var paused []*Conn
		done := 0
		pausing := true
		to := s.serve(Handler{
			OnOpen: func(c *Conn) {
				if pausing {
					c.Pause()
					paused = append(paused, c)
				}
			},
			OnHandshake: func(c *Conn, _ tls.ConnectionState) {
				if c.Paused() {
					t.Error("the handshake of one that is paused is done")
				}
				done++
			},
		})
		for range burst {
			s.dial(to, Config{}, weir.ConnConfig{}, Handler{})
		}
		var other *Conn
		s.when(func() bool { return len(paused) == burst }, func() {
			s.after(100*time.Millisecond, func() {
				if done != 0 {
					t.Errorf("%d handshakes are done", done)
				}
				pausing = false
				other = s.dial(to, Config{}, weir.ConnConfig{}, Handler{})
			})
		})
		s.when(func() bool { return done > 0 }, func() {
			if _, ok := other.ConnectionState(); !ok || done != 1 {
				t.Errorf("%d handshakes are done, want that of the one that was not paused", done)
			}
			for _, c := range paused {
				c.Resume()
			}
		})
		s.when(func() bool { return done > burst }, func() { _ = s.l.Close() })
		s.run()
	})
}

// TestPausedInTheQueue: one that is paused while it waits for its turn does not have it before it is resumed.
func TestPausedInTheQueue(t *testing.T) {
	t.Parallel()
	playInMemory(t, func(s *scene) {
		const crowd = 8
		var servers []*Conn
		asked, resumed := 0, false
		cfg := serverTLS(0)
		cfg.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
			if asked++; asked == 1 {
				for _, c := range servers {
					c.Pause()
				}
			} else if !resumed {
				t.Error("the handshake of one that is paused begins")
			}
			return nil, nil
		}
		to := s.listen(Config{TLS: cfg}, weir.ListenerConfig{}, Handler{OnOpen: func(c *Conn) { servers = append(servers, c) }})
		s.l.AfterFunc(time.Second, func() {
			resumed = true
			for _, c := range servers {
				c.Resume()
			}
		})
		for range crowd {
			s.dial(to, Config{}, weir.ConnConfig{}, Handler{})
		}
		s.runFor(2 * time.Second)
		if asked != crowd || HandshakesOf(s.l).Stats().Done != 2*crowd {
			t.Errorf("%d have begun, %+v", asked, HandshakesOf(s.l).Stats())
		}
	})
}

// TestPausedClient: clients that are paused in OnOpen say nothing before they are resumed.
func TestPausedClient(t *testing.T) {
	t.Parallel()
	playOnBoth(t, func(s *scene) {
		const burst = 32
		var paused []*Conn
		heard, resumed := 0, false
		to := s.listenPlain(weir.ListenerConfig{}, weir.ConnHandler{OnData: func(c *weir.Conn, _ []byte) {
			if heard++; !resumed {
				t.Error("one that is paused says something")
			}
			_ = c.Close()
		}})
		for range burst {
			s.dial(to, Config{}, weir.ConnConfig{}, Handler{OnOpen: func(c *Conn) { c.Pause(); paused = append(paused, c) }})
		}
		s.when(func() bool { return len(paused) == burst }, func() {
			s.after(100*time.Millisecond, func() {
				resumed = true
				for _, c := range paused {
					c.Resume()
				}
			})
		})
		s.when(func() bool { return heard == burst }, func() { _ = s.l.Close() })
		s.run()
	})
}

// TestPauseStopsTheClock holds "while the connection is paused it does not count, and begins again after".
func TestPauseStopsTheClock(t *testing.T) {
	t.Parallel()
	playInMemory(t, func(s *scene) {
		server := newEar(t, "server")
		begin := time.Now()
		var failed time.Duration
		server.on("open", func(c *Conn) { s.after(6*time.Second, c.Pause) })
		server.on("close", func(*Conn) { failed = time.Since(begin); _ = s.l.Close() })
		s.after(time.Hour, func() { server.conn.Resume() })
		s.dialPlain(s.serve(server.handler()), weir.ConnConfig{}, weir.ConnHandler{})
		s.after(2*time.Hour, func() { _ = s.l.Close() })
		s.run()
		server.failed(KindTimeout)
		if failed != time.Hour+10*time.Second {
			t.Errorf("failed after %v, want 10 s after it was resumed", failed)
		}
	})
}

// TestPausedReset: one that is paused hears of a reset at once.
func TestPausedReset(t *testing.T) {
	t.Parallel()
	playOnBoth(t, func(s *scene) {
		left := 2
		for _, in := range []string{"open", "handshake"} {
			server := newEar(t, "paused in "+in)
			server.on(in, func(c *Conn) { c.Pause() })
			client := s.dial(s.serve(server.handler()), Config{}, weir.ConnConfig{}, Handler{})
			s.when(func() bool { return server.conn != nil && server.conn.Paused() }, func() { _ = client.Reset() })
			s.when(func() bool { return server.closes > 0 }, func() {
				if server.err == nil {
					t.Errorf("%s: closed without an error", server.name)
				}
				if left--; left == 0 {
					_ = s.l.Close()
				}
			})
		}
		s.run()
	})
}
