package weirtls

import (
	"bytes"
	"crypto/tls"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirnet/weir"
)

// stall is a peer, or a program, that has TLS wait.
type stall struct {
	name  string
	begin func(s *stalled)
	turns int // that the stall itself makes in two seconds
}

// stalled is a scene that stalls: nothing is told before the sample but what the stall says.
type stalled struct {
	scene
	blocking bool
	early    []string // calls that came before the sample was over, and should not have
	over     bool
	reached  func() bool // the stall is what it claims to be; nil: it is
}

// handler hears of what must not be told in a stall; the calls in may, of a space between, may come.
func (s *stalled) handler(may string, h Handler) Handler {
	note := func(call string) {
		if !s.over && !slices.Contains(strings.Fields(may), call) {
			s.early = append(s.early, call)
		}
	}
	onHandshake, onEnd := h.OnHandshake, h.OnEnd
	h.OnHandshake = func(c *Conn, state tls.ConnectionState) {
		if note("handshake"); onHandshake != nil {
			onHandshake(c, state)
		}
	}
	h.OnEnd = func(c *Conn) {
		if note("end"); onEnd != nil {
			onEnd(c)
		}
	}
	h.OnClose = func(_ *Conn, err error) { note("close: " + errText(err)) }
	return h
}

func errText(err error) string {
	if err == nil {
		return "nil"
	}
	return err.Error()
}

// plain hears of a plain connection that it is over, which in a stall it is not.
func (s *stalled) plain(h weir.ConnHandler) weir.ConnHandler {
	h.OnClose = func(_ *weir.Conn, err error) {
		if !s.over {
			s.early = append(s.early, "the peer's close: "+errText(err))
		}
	}
	return h
}

func (s *stalled) config(cfg *tls.Config) Config {
	return Config{TLS: cfg, Blocking: s.blocking, HandshakeTimeout: -1}
}

// serve is a server that is not to tell anything but what may come.
func (s *stalled) serve(may string, h Handler) (addr string, dial func(h weir.ConnHandler) *weir.Conn) {
	to := s.listen(s.config(serverTLS(0)), weir.ListenerConfig{}, s.handler(may, h))
	return to.String(), func(h weir.ConnHandler) *weir.Conn {
		return s.dialPlain(to, weir.ConnConfig{}, s.plain(h))
	}
}

// says has a plain connection begin with b.
func says(b []byte) func(c *weir.Conn) {
	return func(c *weir.Conn) { _, _ = c.Write(b) }
}

// stalls are what P4 is about.
func stalls() []stall {
	return append([]stall{
		{"a client paused in OnOpen, its server says nothing", stallPausedClient, 0},
		{"a client that says nothing", stallMute, 0},
		{"a server that says nothing", stallMuteServer, 0},
		{"a client that says a byte a second", stallSlow, 8},
		{"a flight that the peer does not read", stallUnread, 0},
		{"half a hello", stallHalf, 0},
		{"a hello, and no more", stallHello, 0},
	}, pausedStalls()...)
}

func stallPausedClient(s *stalled) {
	to := s.listenPlain(weir.ListenerConfig{}, s.plain(weir.ConnHandler{
		OnData: func(*weir.Conn, []byte) { s.early = append(s.early, "a hello") },
	}))
	opened := false
	s.dial(to, s.config(clientTLS(0)), weir.ConnConfig{}, s.handler("", Handler{
		OnOpen: func(c *Conn) { opened = true; c.Pause() },
	}))
	s.reached = func() bool { return opened }
}

func stallMute(s *stalled) {
	_, dial := s.serve("", Handler{})
	dial(weir.ConnHandler{})
}

func stallMuteServer(s *stalled) {
	heard := 0
	to := s.listenPlain(weir.ListenerConfig{}, s.plain(weir.ConnHandler{OnData: func(_ *weir.Conn, b []byte) { heard += len(b) }}))
	s.dial(to, s.config(clientTLS(0)), weir.ConnConfig{}, s.handler("", Handler{}))
	s.reached = func() bool { return heard > 0 }
}

func stallSlow(s *stalled) {
	_, dial := s.serve("", Handler{})
	hello := firstFlight(s.t, clientTLS(0))
	dial(weir.ConnHandler{OnOpen: func(c *weir.Conn) {
		s.l.Every(time.Second, func() {
			_, _ = c.Write(hello[:1])
			hello = hello[1:]
		})
	}})
}

func stallUnread(s *stalled) {
	cfg := serverTLS(0)
	chain := &cfg.Certificates[0]
	chain.Certificate = append(slices.Clip(chain.Certificate), bytes.Repeat([]byte{7}, 200<<10))
	to := s.listen(s.config(cfg), weir.ListenerConfig{Conn: weir.ConnConfig{SendBufferBytes: 1, RecvBufferBytes: 1}}, s.handler("", Handler{}))
	c := s.dialPlain(to, weir.ConnConfig{RecvBufferBytes: 1}, s.plain(weir.ConnHandler{OnOpen: says(firstFlight(s.t, clientTLS(0)))}))
	c.Pause()
	s.reached = func() bool { return s.l.Stats().Streams.QueuedBytes > 0 }
}

func stallHalf(s *stalled) {
	_, dial := s.serve("", Handler{})
	hello := firstFlight(s.t, clientTLS(0))
	dial(weir.ConnHandler{OnOpen: says(hello[:len(hello)/2])})
}

func stallHello(s *stalled) {
	_, dial := s.serve("", Handler{})
	heard := 0
	dial(weir.ConnHandler{
		OnOpen: says(firstFlight(s.t, clientTLS(0))),
		OnData: func(_ *weir.Conn, b []byte) { heard += len(b) },
	})
	s.reached = func() bool { return heard > 0 }
}

// pausedStalls are a server that is paused somewhere, while its peer goes on, or hangs up.
func pausedStalls() (all []stall) {
	for _, where := range []string{"before", "in", "after"} {
		for _, peer := range []string{"goes on", "ends", "closes"} {
			all = append(all, stall{"paused " + where + " the handshake, the peer " + peer, func(s *stalled) { stallPaused(s, where, peer) }, 0})
		}
	}
	return all
}

// stallPaused pauses a server. Its peer has TLS, too, and says a lot once it can; what it does at the end is done below,
// without a close_notify, when the server has been paused for a while.
func stallPaused(s *stalled, where, peer string) {
	var server *Conn
	pause := func(at string) {
		if at == where {
			server.Pause()
		}
	}
	cfg := serverTLS(0)
	cfg.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		if !s.blocking {
			pause("in")
			return nil, nil
		}
		paused := make(chan struct{}) // the connection is the loop's
		_ = s.l.Post(func() { pause("in"); close(paused) })
		<-paused
		return nil, nil
	}
	may := ""
	if where == "after" {
		may = "handshake"
	}
	to := s.listen(s.config(cfg), weir.ListenerConfig{}, s.handler(may, Handler{
		OnOpen:      func(c *Conn) { server = c; pause("before") },
		OnHandshake: func(*Conn, tls.ConnectionState) { pause("after") },
		OnData:      func(*Conn, []byte) { s.early = append(s.early, "data") },
	}))
	client := s.dial(to, s.config(clientTLS(0)), weir.ConnConfig{}, Handler{
		OnHandshake: func(c *Conn, _ tls.ConnectionState) { _, _ = c.Write(pattern(300 << 10)) },
	})
	s.after(50*time.Millisecond, func() {
		switch peer {
		case "ends":
			_ = client.Raw().CloseWrite()
		case "closes":
			_ = client.Raw().Close()
		}
	})
	s.reached = func() bool { return server != nil && server.Paused() }
}

// sample plays a stall, and looks at it for two seconds.
func (x stall) sample(t *testing.T, s *stalled, begin, end func()) {
	t.Helper()
	x.begin(s)
	const settled, sampled = 200 * time.Millisecond, 2 * time.Second
	s.after(settled, func() {
		if s.reached != nil && !s.reached() {
			t.Error("the stall has not come about")
		}
		begin()
	})
	s.after(settled+sampled, func() {
		end()
		if len(s.early) > 0 {
			t.Errorf("told before the sample was over: %q", s.early)
		}
		s.over = true
		_ = s.l.Close()
	})
	s.run()
	s.nothingLeft()
}

// TestNoSpin holds "a peer that stalls costs memory and nothing else": no turn of the loop is made for it.
func TestNoSpin(t *testing.T) {
	t.Parallel()
	for _, x := range stalls() {
		for _, blocking := range []bool{false, true} {
			name := x.name
			if blocking {
				name += ", blocking"
			}
			t.Run(name, func(t *testing.T) {
				playInMemory(t, func(s *scene) {
					var turns uint64
					x.sample(t, &stalled{scene: *s, blocking: blocking},
						func() { turns = s.l.Turn() },
						func() { turns = s.l.Turn() - turns })
					if most := uint64(x.turns + 2); turns > most {
						t.Errorf("%d turns in two seconds, want %d at most", turns, most)
					}
				})
			})
		}
	}
}
