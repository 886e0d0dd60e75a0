package weirtls

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirnet/weir"
	"github.com/weirnet/weir/weirtest"
)

var loopback = netip.MustParseAddrPort("127.0.0.1:0")

// place is where a test's connections are: in memory, with a clock that stands still while anything runs, or on this
// machine. Peers are blocking connections on goroutines of the test's own.
type place struct {
	t     *testing.T
	loop  *weir.Loop // of weirtls
	peers *weir.Loop // of the peers, in memory

	blocking bool // what weirtls is told
}

// onEachKernel runs a test in memory, in a bubble, and on the real kernel. Kernel is set in cfg.
func onEachKernel(t *testing.T, cfg weir.Config, test func(t *testing.T, p *place)) {
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		inMemory(t, cfg, test)
	})
	t.Run("kernel", func(t *testing.T) {
		t.Parallel()
		test(t, onMachine(t, cfg))
	})
}

func inMemory(t *testing.T, cfg weir.Config, test func(t *testing.T, p *place)) {
	certificates() // not on the clock of the bubble
	synctest.Test(t, func(t *testing.T) {
		k := weirtest.NewNetwork().Kernel()
		cfg.Kernel = k
		test(t, &place{t: t, loop: runLoop(t, cfg), peers: runLoop(t, weir.Config{Kernel: k})})
	})
}

func onMachine(t *testing.T, cfg weir.Config) *place {
	return &place{t: t, loop: runLoop(t, cfg)}
}

// runLoop runs a loop until the test ends.
func runLoop(t *testing.T, cfg weir.Config) *weir.Loop {
	t.Helper()
	l, err := weir.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- l.Run(context.Background()) }()
	t.Cleanup(func() {
		_ = l.Close()
		if err := <-done; err != nil {
			t.Errorf("the loop ended with %v", err)
		}
	})
	return l
}

// do runs f on a loop, and waits for it.
func do(t *testing.T, l *weir.Loop, f func()) {
	t.Helper()
	done := make(chan struct{})
	err := l.Post(func() {
		defer close(done)
		f()
	})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-done:
	case <-l.Done():
		t.Error("the loop has ended")
	}
}

// peer is what both kernels' connections of a test have.
type peer interface {
	net.Conn
	CloseWrite() error
}

// patience is for what hangs on the real clock; in memory it is a bubble that tells.
const patience = 30 * time.Second

// dial connects a peer.
func (p *place) dial(to netip.AddrPort) peer {
	p.t.Helper()
	if p.peers != nil {
		return p.dialBridge(to)
	}
	c, err := net.DialTimeout("tcp", to.String(), patience)
	if err != nil {
		p.t.Fatal(err)
	}
	return p.keep(c.(*net.TCPConn))
}

// listen has peers accepted, of which accept returns the next.
func (p *place) listen() (at netip.AddrPort, accept func() peer) {
	p.t.Helper()
	if p.peers != nil {
		return p.listenBridges()
	}
	ln, err := net.Listen("tcp", loopback.String())
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = ln.Close() })
	return ln.Addr().(*net.TCPAddr).AddrPort(), func() peer {
		_ = ln.(*net.TCPListener).SetDeadline(time.Now().Add(patience))
		c, err := ln.Accept()
		if err != nil {
			p.t.Fatal(err)
		}
		return p.keep(c.(*net.TCPConn))
	}
}

func (p *place) keep(c *net.TCPConn) peer {
	_ = c.SetDeadline(time.Now().Add(patience))
	p.t.Cleanup(func() { _ = c.Close() })
	return c
}

// serve has weirtls listen.
func (p *place) serve(cfg Config, conn weir.ConnConfig, h Handler) (at netip.AddrPort) {
	p.t.Helper()
	cfg.Blocking = cfg.Blocking || p.blocking
	do(p.t, p.loop, func() {
		ln, err := Listen(p.loop, loopback, cfg, weir.ListenerConfig{Conn: conn}, ListenerHandler{Conn: h})
		if err != nil {
			p.t.Error(err)
			return
		}
		at = ln.Addr()
	})
	if !at.IsValid() {
		p.t.FailNow()
	}
	return at
}

// call has weirtls dial.
func (p *place) call(to netip.AddrPort, cfg Config, conn weir.ConnConfig, h Handler) {
	p.t.Helper()
	cfg.Blocking = cfg.Blocking || p.blocking
	do(p.t, p.loop, func() {
		if _, err := Dial(p.loop, "tcp", to.String(), cfg, conn, h); err != nil {
			p.t.Error(err)
		}
	})
	if p.t.Failed() {
		p.t.FailNow()
	}
}

// stdConn is the standard library's side of a connection.
func stdConn(r Role, c peer, cfg *tls.Config) *tls.Conn {
	w := &witness{peer: c}
	if r == AsServer {
		return tls.Server(w, cfg)
	}
	return tls.Client(w, cfg)
}

// witness sees the end of the connection below a tls.Conn.
type witness struct {
	peer
	ended atomic.Bool
}

func (w *witness) Read(b []byte) (int, error) {
	n, err := w.peer.Read(b)
	if err == io.EOF {
		w.ended.Store(true)
	}
	return n, err
}

func versionName(v uint16) string {
	if v == 0 {
		return "any version"
	}
	return fmt.Sprint(tls.VersionName(v))
}
