package weirtls

import (
	"crypto/tls"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirnet/weir"
	"github.com/weirnet/weir/weirtest"
)

// TestCloseNotifyBothWays: the last that each side says is a close_notify, whoever closes.
func TestCloseNotifyBothWays(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, version uint16) {
		for _, role := range []Role{AsServer, AsClient} {
			t.Run(role.String(), func(t *testing.T) {
				playInMemory(t, func(s *scene) {
					server, client := newEar(t, "server"), newEar(t, "client")
					closing := server
					if role == AsClient {
						closing = client
					}
					s.after(time.Second, func() {
						_, _ = closing.conn.Write([]byte("farewell"))
						must(t, closing.conn.Close())
					})
					r, at := s.relay(s.listen(Config{TLS: serverTLS(version)}, weir.ListenerConfig{}, server.handler()))
					s.dial(at, Config{TLS: clientTLS(version)}, weir.ConnConfig{}, client.handler())
					var took time.Duration
					begin := time.Now()
					closing.on("close", func(*Conn) { took = time.Since(begin) })
					s.runFor(time.Minute)
					if took != time.Second {
						t.Errorf("closed after %v, want at once", took)
					}
					server.closed(nil)
					client.closed(nil)
					for w, name := range []string{"client", "server"} {
						all := recordsOf(r.ways[w].seen)
						want := record{21, 18 + 8} // TLS 1.2: an alert, with the nonce's explicit part and the tag
						if version == tls.VersionTLS13 {
							want = record{23, 19}
						}
						if last := all[len(all)-1]; last != want && !(version == tls.VersionTLS12 && last.kind == 21) {
							t.Errorf("the %s's last record is %v of %v, want %v", name, last, all, want)
						}
					}
				})
			})
		}
	})
}

// TestCloseUnanswered holds "CloseTimeout is how long Close waits for a peer that … does not end its own direction".
func TestCloseUnanswered(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		limit time.Duration
		want  time.Duration
		err   error
	}{
		{"default", 0, 10 * time.Second, weir.ErrTimeout},
		{"set", 3 * time.Second, 3 * time.Second, weir.ErrTimeout},
		{"none", -1, time.Minute, nil}, // the peer's close
	} {
		for _, queued := range []int{0, 4 << 20} { // the peer takes all, or not
			t.Run(c.name, func(t *testing.T) {
				playInMemory(t, func(s *scene) {
					server, client := newEar(t, "server"), newEar(t, "client")
					var closed, took time.Duration
					begin := time.Now()
					server.on("close", func(*Conn) { took = time.Since(begin) - closed })
					client.on("handshake", func(c *Conn) { c.Pause() })
					s.after(time.Second, func() {
						if queued > 0 {
							_, _ = server.conn.Write(pattern(queued))
						}
						closed = time.Since(begin)
						must(t, server.conn.Close())
					})
					s.after(c.want+time.Second+time.Millisecond, func() {
						if c.limit >= 0 && server.closes == 0 {
							t.Error("it still waits")
						}
						client.conn.Resume()
					})
					to := s.listen(Config{TLS: serverTLS(0), CloseTimeout: c.limit}, weir.ListenerConfig{}, server.handler())
					s.dial(to, Config{}, weir.ConnConfig{}, client.handler())
					s.runFor(time.Hour)
					server.told("open handshake close", c.err)
					if took < c.want || took > c.want+time.Millisecond {
						t.Errorf("waited for %v, want %v", took, c.want)
					}
					s.nothingLeft()
				})
			})
		}
	}
}

// TestCloseWhilePeerTalks: a peer that goes on sending after Close gets what it was sent last, and no reset before.
func TestCloseWhilePeerTalks(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, version uint16) {
		playOnBoth(t, func(s *scene) {
			server, client := newEar(t, "server"), newEar(t, "client")
			message := pattern(100_000)
			server.on("data", func(c *Conn) {
				n, err := c.Write(message)
				if n != len(message) || err != nil {
					t.Errorf("Write: %d, %v", n, err)
				}
				must(t, c.Close())
				server.quiet = true
			})
			talking := true
			client.on("handshake", func(c *Conn) {
				c.Pause() // what comes last is read late
				s.after(200*time.Millisecond, c.Resume)
				s.l.Every(time.Millisecond, func() {
					if talking {
						_, _ = c.Write(pattern(10_000))
					}
				})
			})
			client.on("end", func(c *Conn) {
				talking = false
				must(t, c.Close())
			})
			to := s.listen(Config{TLS: serverTLS(version)}, weir.ListenerConfig{}, server.handler())
			s.dial(to, Config{TLS: clientTLS(version)}, weir.ConnConfig{}, client.handler())
			s.runUntilOver(server, client)
			client.told("open handshake data end close", nil)
			same(t, "what was sent last", client.data, message)
			server.told("open handshake data close", nil)
			s.nothingLeft()
		})
	})
}

// TestHalfClose holds "Over TLS 1.3 writing goes on, until CloseWrite or Close", in both directions.
func TestHalfClose(t *testing.T) {
	t.Parallel()
	for _, role := range []Role{AsServer, AsClient} { // of the one that ends first
		t.Run(role.String(), func(t *testing.T) {
			playOnBoth(t, func(s *scene) {
				first, last := newEar(t, "first"), newEar(t, "last")
				message := pattern(300_000)
				first.on("handshake", func(c *Conn) {
					_, _ = c.Write(message)
					must(t, c.CloseWrite())
					if n, err := c.Write(message); n > 0 || err == nil {
						t.Errorf("Write after CloseWrite: %d, %v", n, err)
					}
				})
				last.on("end", func(c *Conn) {
					same(t, "what came before the end", last.data, message)
					s.after(100*time.Millisecond, func() {
						n, err := c.Write(message)
						if n != len(message) || err != nil {
							t.Errorf("Write: %d, %v", n, err)
						}
						must(t, c.CloseWrite())
					})
				})
				first.on("end", func(*Conn) {}) // both directions are over
				server, client := first, last
				if role == AsClient {
					server, client = last, first
				}
				to := s.listen(Config{TLS: serverTLS(tls.VersionTLS13)}, weir.ListenerConfig{}, server.handler())
				s.dial(to, Config{}, weir.ConnConfig{}, client.handler())
				s.runUntilOver(first, last)
				first.told("open handshake data end close", nil)
				last.told("open handshake data end close", nil)
				same(t, "what came after the end", first.data, message)
			})
		})
	}
}

// TestHalfClose12 holds "over TLS 1.2, which has no half-closed connections, the connection is closed after it".
func TestHalfClose12(t *testing.T) {
	t.Parallel()
	playOnBoth(t, func(s *scene) {
		server, client := newEar(t, "server"), newEar(t, "client")
		client.on("handshake", func(c *Conn) {
			_, _ = c.Write([]byte("hello"))
			must(t, c.CloseWrite())
		})
		server.on("end", func(*Conn) {})
		to := s.listen(Config{TLS: serverTLS(tls.VersionTLS12)}, weir.ListenerConfig{}, server.handler())
		s.dial(to, Config{}, weir.ConnConfig{}, client.handler())
		s.runUntilOver(server, client)
		server.told("open handshake data end close", nil)
		client.told("open handshake end close", nil)
		same(t, "what came", server.data, []byte("hello"))
	})
}

// TestStopSaysGoodbye: a Stop of the loop ends its connections as TLS wants it, behind what OnStop writes.
func TestStopSaysGoodbye(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, version uint16) {
		for _, role := range []Role{AsServer, AsClient} {
			t.Run(role.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					net := weirtest.NewNetwork()
					stopped, other := newScene(t, net.Kernel()), newScene(t, net.Kernel())
					e, peer := newEar(t, "stopped"), newEar(t, "the peer")
					e.on("stop", func(c *Conn) { _, _ = c.Write([]byte("farewell")) })
					peer.on("close", func(*Conn) { _ = other.l.Close() })
					serverConfig, clientConfig := Config{TLS: serverTLS(version)}, Config{TLS: clientTLS(version)}
					if role == AsServer {
						to := stopped.listen(serverConfig, weir.ListenerConfig{}, e.handler())
						other.dial(to, clientConfig, weir.ConnConfig{}, peer.handler())
					} else {
						to := other.listen(serverConfig, weir.ListenerConfig{}, peer.handler())
						stopped.dial(to, clientConfig, weir.ConnConfig{}, e.handler())
					}
					done := make(chan struct{})
					go func() { defer close(done); other.run() }()
					stopped.after(time.Second, func() { stopped.l.Stop(5 * time.Second) })
					begin := time.Now()
					stopped.run()
					if took := time.Since(begin); took != time.Second {
						t.Errorf("stopped after %v", took)
					}
					<-done
					e.told("open handshake stop close", nil)
					peer.told("open handshake data end close", nil)
					same(t, "what OnStop wrote", peer.data, []byte("farewell"))
				})
			})
		}
	})
}
