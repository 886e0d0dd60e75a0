package weirtls

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirnet/weir"
	"github.com/weirnet/weir/weirtest"
)

// eachVersion runs a test over TLS 1.2 and 1.3.
func eachVersion(t *testing.T, test func(t *testing.T, version uint16)) {
	for _, v := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(strings.ReplaceAll(tls.VersionName(v), " ", ""), func(t *testing.T) { test(t, v) })
	}
}

// firstFlight is what a client says first.
func firstFlight(t testing.TB, cfg *tls.Config) []byte {
	t.Helper()
	c := &deaf{}
	_ = tls.Client(c, cfg).Handshake()
	if len(c.said) == 0 {
		t.Fatal("the client says nothing")
	}
	return c.said
}

// deaf is a net.Conn that hears nothing.
type deaf struct {
	net.Conn
	said []byte
}

func (c *deaf) Read([]byte) (int, error)    { return 0, io.ErrClosedPipe }
func (c *deaf) Write(b []byte) (int, error) { c.said = append(c.said, b...); return len(b), nil }
func (c *deaf) Close() error                { return nil }

// scene is a loop, and what is on it. All of it is for the loop's goroutine, which is that of the test.
type scene struct {
	t     *testing.T
	l     *weir.Loop
	faked bool // the clock
}

// playInMemory plays a scene on a network in memory, in a bubble.
func playInMemory(t *testing.T, play func(s *scene)) {
	t.Helper()
	certificates() // not on the clock of the bubble
	synctest.Test(t, func(t *testing.T) { play(newScene(t, weirtest.NewNetwork().Kernel())) })
}

// playOnBoth plays a scene in memory, and on the machine's kernel.
func playOnBoth(t *testing.T, play func(s *scene)) {
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		playInMemory(t, play)
	})
	t.Run("kernel", func(t *testing.T) {
		t.Parallel()
		play(newScene(t, nil))
	})
}

func newScene(t *testing.T, k *weir.Kernel) *scene {
	t.Helper()
	l, err := weir.New(weir.Config{Kernel: k})
	if errors.Is(err, weir.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return &scene{t, l, k != nil}
}

// run runs the loop until something ends it.
func (s *scene) run() {
	s.t.Helper()
	limit := time.Minute
	if s.faked {
		limit = 30 * 24 * time.Hour
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), limit, errors.New("nothing ended the loop"))
	defer cancel()
	if err := s.l.Run(ctx); err != nil {
		s.t.Error(err)
	}
}

// after runs fn once so much time is over; at the end of its story a test stops the loop so.
func (s *scene) after(d time.Duration, fn func()) { s.l.AfterFunc(d, fn) }

// when runs fn once something has come about, however long that takes.
func (s *scene) when(so func() bool, fn func()) {
	var tick *weir.Timer
	tick = s.l.Every(5*time.Millisecond, func() {
		if so() {
			tick.Stop()
			fn()
		}
	})
}

// runUntilOver runs the loop until all of them are closed, and closes it.
func (s *scene) runUntilOver(all ...*ear) {
	s.t.Helper()
	s.when(func() bool { return !slices.ContainsFunc(all, func(e *ear) bool { return e.closes == 0 }) },
		func() { _ = s.l.Close() })
	s.run()
}

// runFor runs the loop so long, and closes it.
func (s *scene) runFor(d time.Duration) {
	s.t.Helper()
	s.after(d, func() { _ = s.l.Close() })
	s.run()
}

// listen has a server, and is its address.
func (s *scene) listen(cfg Config, listen weir.ListenerConfig, h Handler) netip.AddrPort {
	s.t.Helper()
	ln, err := Listen(s.l, loopback, cfg, listen, ListenerHandler{Conn: h})
	if err != nil {
		s.t.Fatal(err)
	}
	return ln.Addr()
}

// serve is a server with the default settings.
func (s *scene) serve(h Handler) netip.AddrPort {
	s.t.Helper()
	return s.listen(Config{TLS: serverTLS(0)}, weir.ListenerConfig{}, h)
}

func (s *scene) dial(to netip.AddrPort, cfg Config, conn weir.ConnConfig, h Handler) *Conn {
	s.t.Helper()
	if cfg.TLS == nil {
		cfg.TLS = clientTLS(0)
	}
	c, err := Dial(s.l, "tcp", to.String(), cfg, conn, h)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// listenPlain has a listener without TLS.
func (s *scene) listenPlain(cfg weir.ListenerConfig, h weir.ConnHandler) netip.AddrPort {
	s.t.Helper()
	ln, err := s.l.ListenTCP(loopback, cfg, weir.ListenerHandler{Conn: h})
	if err != nil {
		s.t.Fatal(err)
	}
	return ln.Addr()
}

func (s *scene) dialPlain(to netip.AddrPort, cfg weir.ConnConfig, h weir.ConnHandler) *weir.Conn {
	s.t.Helper()
	c, err := s.l.DialTCP(netip.AddrPort{}, to, cfg, h)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// ear notes what a connection tells, and does what a test wants done then.
type ear struct {
	t      *testing.T
	name   string
	conn   *Conn
	calls  []string // data of calls in a row is one
	data   []byte
	state  tls.ConnectionState
	closes int
	err    error
	in     bool // a callback runs
	quiet  bool // the connection is not to tell of anything but its close
	do     map[string]func(c *Conn)
}

// newEar hears of one connection: a listener's if only one comes.
func newEar(t *testing.T, name string) *ear {
	return &ear{t: t, name: name, do: make(map[string]func(*Conn))}
}

// on has something done in the calls of that name: open, handshake, data, drain, end, stop, close.
func (e *ear) on(call string, do func(c *Conn)) *ear {
	e.do[call] = do
	return e
}

func (e *ear) heard(c *Conn, call string) {
	switch {
	case e.in:
		e.t.Errorf("%s: %s is called in a callback", e.name, call)
	case e.closes > 0:
		e.t.Errorf("%s: %s is called after OnClose", e.name, call)
	case e.quiet && call != "close":
		e.t.Errorf("%s: %s is called, after %v", e.name, call, e.calls)
	}
	e.conn = c
	if call != "data" || len(e.calls) == 0 || e.calls[len(e.calls)-1] != "data" {
		e.calls = append(e.calls, call)
	}
	if call == "close" {
		e.closes++
	}
	if do := e.do[call]; do != nil {
		e.in = true
		defer func() { e.in = false }()
		do(c)
	}
}

// handler notes everything. What a nil function would do it does, too, unless the test does something there.
func (e *ear) handler() Handler {
	return Handler{
		OnOpen: func(c *Conn) { e.heard(c, "open") },
		OnHandshake: func(c *Conn, state tls.ConnectionState) {
			e.state = state
			e.heard(c, "handshake")
		},
		OnData: func(c *Conn, b []byte) {
			e.data = append(e.data, b...)
			e.heard(c, "data")
		},
		OnDrain: func(c *Conn) { e.heard(c, "drain") },
		OnEnd: func(c *Conn) {
			e.heard(c, "end")
			if e.do["end"] == nil {
				_ = c.Close()
			}
		},
		OnStop: func(c *Conn) { e.heard(c, "stop") },
		OnClose: func(c *Conn, err error) {
			e.err = err
			e.heard(c, "close")
		},
	}
}

// told fails unless the connection has told just that, and was closed with an error that matches.
func (e *ear) told(calls string, err error) {
	e.t.Helper()
	if got := strings.Join(e.calls, " "); got != calls {
		e.t.Errorf("%s: told %q, want %q", e.name, got, calls)
	}
	e.closed(err)
}

// closed fails unless the connection was closed once, with an error that matches; nil matches no error.
func (e *ear) closed(want error) {
	e.t.Helper()
	if e.closes != 1 {
		e.t.Errorf("%s: OnClose was called %d times, after %v", e.name, e.closes, e.calls)
		return
	}
	if want == nil && e.err != nil || !errors.Is(e.err, want) {
		e.t.Errorf("%s: OnClose has %v, want %v", e.name, e.err, want)
	}
}

// failed fails unless the handshake did, in that way.
func (e *ear) failed(kind Kind) *HandshakeError {
	e.t.Helper()
	var h *HandshakeError
	if !errors.As(e.err, &h) {
		e.t.Errorf("%s: OnClose has %v after %v, want a failed handshake of kind %v", e.name, e.err, e.calls, kind)
		return &HandshakeError{}
	}
	if h.Kind != kind {
		e.t.Errorf("%s: kind %v of %v, want %v", e.name, h.Kind, h, kind)
	}
	if slices.Contains(e.calls, "handshake") {
		e.t.Errorf("%s: both done and failed: %v", e.name, e.calls)
	}
	return h
}

// isTold tells that an error is one of those that OnClose may have.
func isTold(err error) bool {
	var h *HandshakeError
	var op *weir.OpError
	return err == nil || errors.As(err, &h) || errors.As(err, &op) || errors.Is(err, ErrTruncated) ||
		errors.Is(err, weir.ErrClosed)
}

// nothingLeft fails unless all connections and handshakes of the loop are over.
func (s *scene) nothingLeft() {
	s.t.Helper()
	if st := s.l.Stats().Streams; st.Open != 0 || st.QueuedBytes != 0 {
		s.t.Errorf("%d connections are open, %d bytes queued", st.Open, st.QueuedBytes)
	}
	st := HandshakesOf(s.l).Stats()
	if st.InProgress != 0 || st.Waiting != 0 {
		s.t.Errorf("%d handshakes are in progress, %d wait", st.InProgress, st.Waiting)
	}
}

// pattern is n bytes of which none can be missing unseen.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8)
	}
	return b
}

// same fails unless the bytes are those.
func same(t *testing.T, what string, got, want []byte) {
	t.Helper()
	if !slices.Equal(got, want) {
		i := 0
		for i < min(len(got), len(want)) && got[i] == want[i] {
			i++
		}
		t.Errorf("%s: %d bytes, want %d; the first that differs is %d", what, len(got), len(want), i)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}
