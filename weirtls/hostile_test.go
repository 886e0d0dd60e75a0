package weirtls

import (
	"crypto/tls"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/weirnet/weir"
)

// hostilePeer is a peer that says what it likes, drawn from a fuzzer's input.
type hostilePeer struct {
	manner byte   // what comes before, the version, and how it ends
	splits uint64 // seeds the sizes of the pieces
	said   []byte
}

// What a hostile peer begins with.
const (
	fromNothing     = iota // with what it says
	behindHello            // behind a good first flight
	overFlight             // its first flight is changed by what it says
	behindHandshake        // behind a good handshake, outside of TLS
	inStream               // all that passes is changed by what it says
	starts
)

func (h hostilePeer) start() int { return int(h.manner) % starts }

func (h hostilePeer) version() uint16 {
	if h.manner/starts%2 == 0 {
		return tls.VersionTLS13
	}
	return tls.VersionTLS12
}

// end is how it goes, when it has said everything.
func (h hostilePeer) end(c *weir.Conn) {
	switch h.manner / starts / 2 % 3 {
	case 0:
		_ = c.CloseWrite()
	case 1:
		_ = c.Reset()
	}
}

// over changes b by what the peer says, from an offset.
func (h hostilePeer) over(offset int, b []byte) {
	for i := range b {
		if at := offset + i; at < len(h.said) {
			b[i] ^= h.said[at]
		}
	}
}

// pieces has b written in pieces, a millisecond apart, and is how many there are.
func (h hostilePeer) pieces(s *scene, b []byte, write func([]byte), end func()) (n int) {
	r := rand.New(rand.NewPCG(h.splits, 1))
	most := 1 + r.IntN(1+len(b))
	for len(b) > 0 && n < 100 {
		k := min(1+r.IntN(most), len(b))
		if n == 99 {
			k = len(b)
		}
		piece := b[:k]
		s.after(time.Duration(n)*time.Millisecond, func() { write(piece) })
		b = b[k:]
		n++
	}
	s.after(time.Duration(n)*time.Millisecond, end)
	return n
}

// server has a hostile client.
func (h hostilePeer) server(s *scene) {
	e := newEar(s.t, "server")
	e.on("data", func(c *Conn) { _, _ = c.Write(e.data) })
	to := s.listen(Config{TLS: serverTLS(h.version())}, weir.ListenerConfig{}, e.handler())
	switch b := h.said; h.start() {
	case behindHandshake:
		h.afterHandshake(s, func(up Handler) { s.dial(to, Config{}, weir.ConnConfig{}, up) })
	case inStream:
		h.between(s, to, up)
	default:
		if h.start() != fromNothing {
			b = firstFlight(s.t, clientTLS(h.version()))
			if h.start() == behindHello {
				b = append(b, h.said...)
			} else {
				h.over(0, b)
			}
		}
		s.dialPlain(to, weir.ConnConfig{}, weir.ConnHandler{OnOpen: func(c *weir.Conn) {
			h.pieces(s, b, func(b []byte) { _, _ = c.Write(b) }, func() { h.end(c) })
		}})
	}
	h.check(s, e)
}

// client has a hostile server.
func (h hostilePeer) client(s *scene) {
	e := newEar(s.t, "client")
	e.on("handshake", func(c *Conn) { _, _ = c.Write([]byte("hello")) })
	cfg := Config{TLS: clientTLS(h.version())}
	switch h.start() {
	case behindHandshake, behindHello:
		h.afterHandshake(s, func(down Handler) { s.dial(s.serve(down), cfg, weir.ConnConfig{}, e.handler()) })
	case inStream, overFlight:
		r, at := s.relay(s.serve(Handler{OnData: func(c *Conn, b []byte) { _, _ = c.Write(b) }}))
		h.change(r, down)
		s.dial(at, cfg, weir.ConnConfig{}, e.handler())
	default:
		at := s.listenPlain(weir.ListenerConfig{}, weir.ConnHandler{OnOpen: func(c *weir.Conn) {
			h.pieces(s, h.said, func(b []byte) { _, _ = c.Write(b) }, func() { h.end(c) })
		}})
		s.dial(at, cfg, weir.ConnConfig{}, e.handler())
	}
	h.check(s, e)
}

// afterHandshake has a good peer turn bad when it is trusted.
func (h hostilePeer) afterHandshake(s *scene, begin func(Handler)) {
	begin(Handler{OnHandshake: func(c *Conn, _ tls.ConnectionState) {
		raw := c.Raw()
		h.pieces(s, h.said, func(b []byte) { _, _ = raw.Write(b) }, func() { h.end(raw) })
	}})
}

// between has a good client's stream changed on its way.
func (h hostilePeer) between(s *scene, to netip.AddrPort, w way) {
	r, at := s.relay(to)
	h.change(r, w)
	s.dial(at, Config{TLS: clientTLS(h.version())}, weir.ConnConfig{}, Handler{
		OnHandshake: func(c *Conn, _ tls.ConnectionState) { _, _ = c.Write([]byte("hello")) },
	})
}

func (h hostilePeer) change(r *relay, w way) {
	sizes := rand.New(rand.NewPCG(h.splits, 1))
	r.ways[w].change = h.over
	r.ways[w].split = func() int { return 1 + sizes.IntN(1000) }
}

// check runs the scene, in which the one that has the hostile peer is to end in time, and with a word.
func (h hostilePeer) check(s *scene, e *ear) {
	t := s.t
	var turns uint64
	s.after(15*time.Second, func() { turns = s.l.Turn() })
	s.after(20*time.Second, func() {
		if n := s.l.Turn() - turns; n > 3 {
			t.Errorf("%d turns in five seconds in which nothing was said", n)
		}
		_ = s.l.Close()
	})
	s.run()
	if n, most := s.l.Turn(), uint64(500+20*len(h.said)); n > most {
		t.Errorf("%d turns, want %d at most", n, most)
	}
	if e.closes != 1 && len(e.calls) > 0 || len(e.calls) == 0 && e.closes != 0 {
		t.Errorf("OnClose was called %d times, after %v", e.closes, e.calls)
	}
	if !isTold(e.err) {
		t.Errorf("OnClose has %v (%T)", e.err, e.err)
	}
	s.nothingLeft()
}
