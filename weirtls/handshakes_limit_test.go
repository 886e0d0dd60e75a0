package weirtls

import (
	"crypto/tls"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirnet/weir"
)

// slowPeer is a peer that is far away: what it writes arrives later.
type slowPeer struct {
	peer
	after time.Duration
}

func (s slowPeer) Write(b []byte) (int, error) {
	time.Sleep(s.after)
	return s.peer.Write(b)
}

// TestHandshakesPatience holds "the one that has waited longest for its peer, a second at least, gives way to the next":
// nobody who is only far away does, however few may be begun.
func TestHandshakesPatience(t *testing.T) {
	t.Parallel()
	inMemory(t, weir.Config{}, func(t *testing.T, p *place) {
		const clients = 20
		do(t, p.loop, func() { HandshakesOf(p.loop).SetMax(3) })
		at := p.serve(Config{TLS: serverTLS(0), HandshakeTimeout: time.Minute}, weir.ConnConfig{}, Handler{})
		done := make(chan error, clients)
		for range clients {
			go func() {
				c := tls.Client(slowPeer{p.dial(at), 300 * time.Millisecond}, clientTLS(0))
				err := c.Handshake()
				if err == nil {
					_ = c.CloseWrite()
					_, err = io.Copy(io.Discard, c)
				}
				_ = c.NetConn().Close()
				done <- err
			}()
		}
		for range clients {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if s := HandshakesOf(p.loop).Stats(); s.Done != clients || s.Failed[KindCrowded] > 0 || s.InProgress != 0 || s.Waiting != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestHandshakesCrowded has clients that stall after their first flight in all the places that there are. Another one
// waits a second for the first of them, and only that gives way.
func TestHandshakesCrowded(t *testing.T) {
	t.Parallel()
	inMemory(t, weir.Config{}, func(t *testing.T, p *place) {
		const most = 3
		do(t, p.loop, func() { HandshakesOf(p.loop).SetMax(most) })
		var crowded atomic.Int32
		at := p.serve(Config{TLS: serverTLS(0)}, weir.ConnConfig{}, Handler{OnClose: func(_ *Conn, err error) {
			if errors.Is(err, ErrCrowded) {
				crowded.Add(1)
			}
		}})
		for range most {
			c := p.dial(at)
			defer c.Close()
			go func() { _ = tls.Client(onlyOnce{peer: c, said: new(bool)}, clientTLS(0)).Handshake() }()
		}
		time.Sleep(100 * time.Millisecond)
		began := time.Now()
		c := tls.Client(p.dial(at), clientTLS(0))
		if err := c.Handshake(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took < 800*time.Millisecond || took > time.Second {
			t.Errorf("a newcomer waited %v, want what is left of a second", took)
		}
		time.Sleep(5 * time.Second)
		if n := crowded.Load(); n != 1 {
			t.Errorf("%d gave way to one", n)
		}
		_ = c.NetConn().Close()
	})
}

// onlyOnce says one thing, and then nothing more.
type onlyOnce struct {
	peer
	said *bool
}

func (o onlyOnce) Write(b []byte) (int, error) {
	if *o.said {
		return len(b), nil
	}
	*o.said = true
	return o.peer.Write(b)
}

// TestHandshakesAsClient holds "Those as the client are as many as the program begins": clients that stall do not keep
// the program from dialling.
func TestHandshakesAsClient(t *testing.T) {
	t.Parallel()
	inMemory(t, weir.Config{}, func(t *testing.T, p *place) {
		do(t, p.loop, func() { HandshakesOf(p.loop).SetMax(1) })
		at := p.serve(Config{TLS: serverTLS(0)}, weir.ConnConfig{}, Handler{})
		for range 5 {
			c := p.dial(at)
			defer c.Close()
			go func() { _ = tls.Client(onlyOnce{peer: c, said: new(bool)}, clientTLS(0)).Handshake() }()
		}
		time.Sleep(10 * time.Millisecond)
		to, accept := p.listen()
		go func() {
			c := stdConn(AsServer, accept(), serverTLS(0))
			_ = c.Handshake()
			_ = c.CloseWrite()
		}()
		began, done := time.Now(), make(chan time.Duration, 1)
		p.call(to, Config{TLS: clientTLS(0)}, weir.ConnConfig{}, Handler{
			OnHandshake: func(*Conn, tls.ConnectionState) { done <- time.Since(began) },
			OnClose:     func(_ *Conn, err error) { done <- -1 },
		})
		if took := <-done; took < 0 || took > 100*time.Millisecond {
			t.Errorf("its handshake took %v", took)
		}
	})
}

// TestHandshakesGivenUp: those that the program or the loop's end gives up are counted, and nothing is left in progress,
// also where a callback on a goroutine has yet to return.
func TestHandshakesGivenUp(t *testing.T) {
	t.Parallel()
	inMemory(t, weir.Config{}, func(t *testing.T, p *place) {
		asked := make(chan struct{})
		cfg := Config{Blocking: true, TLS: &tls.Config{GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
			close(asked)
			<-h.Context().Done()
			return nil, h.Context().Err()
		}}}
		at := p.serve(cfg, weir.ConnConfig{}, Handler{})
		quiet, asks := p.dial(at), p.dial(at)
		defer quiet.Close()
		defer asks.Close()
		go func() { _ = tls.Client(asks, clientTLS(0)).Handshake() }()
		<-asked
		h := HandshakesOf(p.loop)
		if s := h.Stats(); s.InProgress != 1 || s.Waiting != 1 {
			t.Errorf("before: %+v", s)
		}
		_ = p.loop.Close()
		<-p.loop.Done()
		if s := h.Stats(); s.GivenUp != 2 || s.InProgress != 0 || s.Waiting != 0 {
			t.Errorf("after: %+v", s)
		}
	})
}

// TestBlockingPeerEnds holds "Their contexts end with the connection, also where the peer ends it".
func TestBlockingPeerEnds(t *testing.T) {
	t.Parallel()
	onEachKernel(t, weir.Config{}, func(t *testing.T, p *place) {
		asked, closed := make(chan struct{}), make(chan error, 1)
		cfg := Config{Blocking: true, TLS: &tls.Config{GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
			close(asked)
			<-h.Context().Done()
			return nil, h.Context().Err()
		}}}
		at := p.serve(cfg, weir.ConnConfig{}, Handler{OnClose: func(_ *Conn, err error) { closed <- err }})
		c := p.dial(at)
		go func() { _ = tls.Client(onlyOnce{peer: c, said: new(bool)}, clientTLS(0)).Handshake() }()
		<-asked
		_ = c.CloseWrite()
		e, ok := errors.AsType[*HandshakeError](<-closed)
		if !ok || e.Kind != KindGone || !errors.Is(e, io.ErrUnexpectedEOF) {
			t.Errorf("OnClose has %v", e)
		}
		_ = c.Close()
	})
}

// TestHandshakesUnanswered holds "or at once if its peer has not said enough for an answer": records that are whole, and
// begin a message that never ends, cost their sender nothing, and keep nobody out.
func TestHandshakesUnanswered(t *testing.T) {
	t.Parallel()
	inMemory(t, weir.Config{}, func(t *testing.T, p *place) {
		do(t, p.loop, func() { HandshakesOf(p.loop).SetMax(2) })
		at := p.serve(Config{TLS: serverTLS(0)}, weir.ConnConfig{}, Handler{})
		for range 2 {
			c := p.dial(at)
			defer c.Close()
			_, _ = c.Write([]byte{22, 3, 1, 0, 4, 1, 0, 2, 0}) // a ClientHello of 512 bytes, of which nothing follows
		}
		time.Sleep(10 * time.Millisecond)
		began := time.Now()
		c := tls.Client(p.dial(at), clientTLS(0))
		if err := c.Handshake(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("a newcomer waited %v", took)
		}
		_ = c.NetConn().Close()
	})
}

// TestResumeAfterClose: a connection that was closed while its handshake was paused has no time limit any more.
func TestResumeAfterClose(t *testing.T) {
	t.Parallel()
	inMemory(t, weir.Config{}, func(t *testing.T, p *place) {
		at := p.serve(Config{TLS: serverTLS(0)}, weir.ConnConfig{}, Handler{OnOpen: func(c *Conn) {
			c.Pause()
			c.Loop().AfterFunc(time.Second, func() {
				_ = c.Close()
				c.Resume()
			})
		}})
		c := p.dial(at)
		_, _ = io.Copy(io.Discard, c)
		time.Sleep(time.Minute)
		if s := HandshakesOf(p.loop).Stats(); s.GivenUp != 1 || s.Failed != [Kinds]uint64{} {
			t.Errorf("%+v", s)
		}
		_ = c.Close()
	})
}

// TestBlockingOutlives: a callback that heeds no context, and outlasts the time limit of its handshake, does not have it
// fail a second time.
func TestBlockingOutlives(t *testing.T) {
	t.Parallel()
	inMemory(t, weir.Config{}, func(t *testing.T, p *place) {
		cfg := Config{Blocking: true, TLS: &tls.Config{GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
			time.Sleep(time.Minute)
			return nil, h.Context().Err()
		}}}
		at := p.serve(cfg, weir.ConnConfig{}, Handler{OnOpen: func(c *Conn) {
			c.Loop().AfterFunc(time.Second, func() { _ = c.Close() })
		}})
		c := p.dial(at)
		_ = tls.Client(c, clientTLS(0)).Handshake()
		time.Sleep(2 * time.Minute)
		if s := HandshakesOf(p.loop).Stats(); s.GivenUp != 1 || s.Failed != [Kinds]uint64{} || s.InProgress != 0 {
			t.Errorf("%+v", s)
		}
		_ = c.Close()
	})
}

// TestHandshakesCrumbs has clients in all the places that there are that were answered, and send now and then a record
// that has nothing in it: they, too, give way after a second.
func TestHandshakesCrumbs(t *testing.T) {
	t.Parallel()
	inMemory(t, weir.Config{}, func(t *testing.T, p *place) {
		const most = 3
		do(t, p.loop, func() { HandshakesOf(p.loop).SetMax(most) })
		at := p.serve(Config{TLS: serverTLS(0)}, weir.ConnConfig{}, Handler{})
		until := make(chan struct{})
		defer close(until)
		for range most {
			c := p.dial(at)
			defer c.Close()
			go func() { _ = tls.Client(onlyOnce{peer: c, said: new(bool)}, clientTLS(tls.VersionTLS13)).Handshake() }()
			go func() {
				for {
					select {
					case <-time.After(400 * time.Millisecond):
						_, _ = c.Write([]byte{typeChangeCipherSpec, 3, 3, 0, 1, 1})
					case <-until:
						return
					}
				}
			}()
		}
		time.Sleep(100 * time.Millisecond)
		began := time.Now()
		c := tls.Client(p.dial(at), clientTLS(0))
		if err := c.Handshake(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took < 800*time.Millisecond || took > time.Second {
			t.Errorf("a newcomer waited %v, want what is left of a second", took)
		}
		_ = c.NetConn().Close()
	})
}
