package weirtls

import (
	"crypto"
	"crypto/tls"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/weirnet/weir"
)

// TestHandshakeTimeout holds "HandshakeTimeout is how long a handshake may take in all. Default: 10 s", and negative is
// none, whatever the peer says meanwhile.
func TestHandshakeTimeout(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		limit    time.Duration
		want     time.Duration // 0: none
		blocking bool
	}{
		{"default", 0, 10 * time.Second, false},
		{"set", 3 * time.Second, 3 * time.Second, false},
		{"none", -1, 0, false},
		{"blocking", 0, 10 * time.Second, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			playInMemory(t, func(s *scene) {
				server, client := newEar(t, "server"), newEar(t, "client")
				begin := time.Now()
				var took []time.Duration
				for _, e := range []*ear{server, client} {
					e.on("close", func(*Conn) { took = append(took, time.Since(begin)) })
				}
				to := s.listen(Config{TLS: serverTLS(0), HandshakeTimeout: c.limit, Blocking: c.blocking}, weir.ListenerConfig{}, server.handler())
				hello := firstFlight(t, clientTLS(0))
				s.dialPlain(to, weir.ConnConfig{}, weir.ConnHandler{OnOpen: func(p *weir.Conn) {
					s.l.Every(time.Second, func() {
						_, _ = p.Write(hello[:1])
						hello = hello[1:]
					})
				}})
				silent := s.listenPlain(weir.ListenerConfig{}, weir.ConnHandler{})
				s.dial(silent, Config{HandshakeTimeout: c.limit, Blocking: c.blocking}, weir.ConnConfig{}, client.handler())
				s.runFor(time.Minute)
				for i, e := range []*ear{server, client} {
					if c.want == 0 {
						if took[i] != time.Minute {
							t.Errorf("%s: failed after %v with %v", e.name, took[i], e.err)
						}
						continue
					}
					e.failed(KindTimeout)
					if !errors.Is(e.err, weir.ErrTimeout) || took[i] != c.want {
						t.Errorf("%s: failed after %v with %v, want a timeout after %v", e.name, took[i], e.err, c.want)
					}
				}
				s.nothingLeft()
			})
		})
	}
}

// TestTimeoutIsOver: the limit of the handshake is none of what follows.
func TestTimeoutIsOver(t *testing.T) {
	t.Parallel()
	playInMemory(t, func(s *scene) {
		server, client := newEar(t, "server"), newEar(t, "client")
		s.dial(s.serve(server.handler()), Config{}, weir.ConnConfig{}, client.handler())
		s.after(time.Hour, func() {
			if server.closes+client.closes > 0 {
				t.Errorf("closed, with %v and %v", server.err, client.err)
			}
			must(t, client.conn.Close())
		})
		s.runFor(2 * time.Hour)
		server.told("open handshake end close", nil)
		client.told("open handshake close", nil)
	})
}

// TestCrowded holds "when full, the one that has waited longest for its peer gives way".
func TestCrowded(t *testing.T) {
	t.Parallel()
	playOnBoth(t, func(s *scene) {
		const most = 4
		HandshakesOf(s.l).SetMax(most)
		var ears []*ear
		hello := firstFlight(t, clientTLS(0))
		stall := func() {
			e := newEar(t, "server")
			ears = append(ears, e)
			s.dialPlain(s.serve(e.handler()), weir.ConnConfig{}, weir.ConnHandler{OnOpen: says(hello)})
		}
		begun := func() int { return int(HandshakesOf(s.l).Stats().Begun) }
		for i := range most {
			s.when(func() bool { return begun() == i }, stall) // one behind the other
		}
		client := newEar(t, "client")
		s.when(func() bool { return begun() == most }, func() {
			for _, e := range ears {
				if e.closes > 0 {
					t.Errorf("closed before it was full: %v", e.err)
				}
			}
			stall()
		})
		s.when(func() bool { return begun() > most }, func() {
			ears[0].failed(KindCrowded)
			if !errors.Is(ears[0].err, ErrCrowded) {
				t.Errorf("OnClose has %v", ears[0].err)
			}
			for i, e := range ears[1:] {
				if e.closes > 0 {
					t.Errorf("%d of those that came later was closed: %v", i+1, e.err)
				}
			}
			if st := HandshakesOf(s.l).Stats(); st.InProgress != most || st.Failed[KindCrowded] != 1 {
				t.Errorf("%+v", st)
			}
			client.on("handshake", func(c *Conn) { must(t, c.Close()) })
			s.dial(s.serve(Handler{}), Config{}, weir.ConnConfig{}, client.handler())
		})
		s.when(func() bool { return client.closes > 0 }, func() { _ = s.l.Close() })
		s.run()
		client.told("open handshake close", nil)
		s.nothingLeft()
	})
}

// TestHandshakesInOrder: of those that are ready at once the first that came is the first served.
func TestHandshakesInOrder(t *testing.T) {
	t.Parallel()
	playInMemory(t, func(s *scene) {
		const storm = 20
		var opened, served []string
		cfg := serverTLS(0)
		cfg.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			served = append(served, hello.ServerName)
			time.Sleep(3 * time.Millisecond) // more than the bound gives at a time
			return nil, nil
		}
		to := s.listen(Config{TLS: cfg}, weir.ListenerConfig{}, Handler{})
		for i := range storm {
			own := clientTLS(0)
			own.InsecureSkipVerify, own.ServerName = true, string(rune('a'+i))
			hello := firstFlight(t, own)
			s.dialPlain(to, weir.ConnConfig{}, weir.ConnHandler{OnOpen: func(c *weir.Conn) {
				opened = append(opened, own.ServerName)
				_, _ = c.Write(hello)
			}})
		}
		s.runFor(time.Second)
		if len(opened) != storm || !slices.Equal(opened, served) {
			t.Errorf("came %v\nserved %v", opened, served)
		}
	})
}

// waitingSigner asks somebody else, who takes his time.
type waitingSigner struct {
	crypto.Signer
	wait func() error
}

func (w waitingSigner) Sign(rand io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	if err := w.wait(); err != nil {
		return nil, err
	}
	return w.Signer.Sign(rand, digest, opts)
}

func slowlySigned(wait func() error) *tls.Config {
	cfg := serverTLS(0)
	cfg.Certificates = slices.Clone(cfg.Certificates)
	key := cfg.Certificates[0].PrivateKey.(crypto.Signer)
	cfg.Certificates[0].PrivateKey = waitingSigner{key, wait}
	return cfg
}

// TestSlowSigner: with Blocking the loop goes on while a signature takes a second, and other connections with it.
func TestSlowSigner(t *testing.T) {
	t.Parallel()
	playInMemory(t, func(s *scene) {
		const clients = 10
		to := s.listen(Config{TLS: slowlySigned(func() error { time.Sleep(time.Second); return nil }), Blocking: true},
			weir.ListenerConfig{}, Handler{})
		begin := time.Now()
		done, ticks := 0, 0
		for range clients {
			s.dial(to, Config{}, weir.ConnConfig{}, Handler{OnHandshake: func(c *Conn, _ tls.ConnectionState) {
				if took := time.Since(begin); took != time.Second {
					t.Errorf("done after %v", took)
				}
				done++
				must(t, c.Close())
			}})
		}
		s.l.Every(10*time.Millisecond, func() { ticks++ })
		s.runFor(2 * time.Second)
		if done != clients || ticks < 199 {
			t.Errorf("%d handshakes are done, %d ticks", done, ticks)
		}
		s.nothingLeft()
	})
}

// TestFloodInHandshake: while a handshake has what it needs, and waits for others, its peer can fill no memory.
func TestFloodInHandshake(t *testing.T) {
	t.Parallel()
	playInMemory(t, func(s *scene) {
		stuck := make(chan struct{})
		to := s.listen(Config{TLS: slowlySigned(func() error { <-stuck; return errGivenUp }), Blocking: true}, weir.ListenerConfig{}, Handler{})
		hello := firstFlight(t, clientTLS(0))
		s.dialPlain(to, weir.ConnConfig{}, weir.ConnHandler{OnOpen: func(c *weir.Conn) {
			_ = c.Enqueue(hello)
			s.after(100*time.Millisecond, func() { _ = c.Enqueue(make([]byte, 10<<20)) })
		}})
		s.after(time.Second, func() {
			if n := s.l.Stats().Streams.ReadBytes; n > 200_000 {
				t.Errorf("%d bytes were read", n)
			}
			close(stuck)
		})
		s.runFor(2 * time.Second)
		s.nothingLeft()
	})
}

// TestStuckSigner holds "Their contexts end with the connection": who waits for that is gone with it.
func TestStuckSigner(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		end  func(s *scene, server *Conn, client *Conn)
		want time.Duration
		kind Kind
		nil_ bool
	}{
		{"the limit", func(*scene, *Conn, *Conn) {}, 10 * time.Second, KindTimeout, false},
		{"Close", func(_ *scene, server, _ *Conn) { _ = server.Close() }, time.Second, 0, true},
		{"Reset", func(_ *scene, server, _ *Conn) { _ = server.Reset() }, time.Second, 0, true},
		{"the peer's reset", func(_ *scene, _, client *Conn) { _ = client.Reset() }, time.Second, KindGone, false},
		{"the loop's end", func(s *scene, _, _ *Conn) { _ = s.l.Close() }, time.Second, KindGone, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			playInMemory(t, func(s *scene) {
				begin := time.Now()
				left := make(chan time.Duration, 1)
				cfg := serverTLS(0)
				cfg.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
					<-hello.Context().Done()
					left <- time.Since(begin)
					return nil, hello.Context().Err()
				}
				server := newEar(t, "server")
				to := s.listen(Config{TLS: cfg, Blocking: true}, weir.ListenerConfig{}, server.handler())
				client := s.dial(to, Config{HandshakeTimeout: -1}, weir.ConnConfig{}, Handler{})
				s.after(time.Second, func() { c.end(s, server.conn, client) })
				s.runFor(20 * time.Second)
				if took := <-left; took != c.want {
					t.Errorf("the callback was left after %v, want %v", took, c.want)
				}
				if c.nil_ {
					if server.closes != 1 {
						t.Error("OnClose was not called")
					}
				} else {
					server.failed(c.kind)
				}
				s.nothingLeft()
			})
		})
	}
}
