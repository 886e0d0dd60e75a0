package weirtls

import (
	"context"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/weirnet/weir"
)

// bridge is a connection of a loop as a net.Conn, without deadlines.
type bridge struct {
	raw    *weir.Conn
	sender *weir.ConnSender
	addrs  [2]netip.AddrPort // local, remote
	open   chan struct{}     // closed when the connection is there, or failed

	mu     sync.Mutex
	change *sync.Cond
	in     []byte // guarded by mu, as all that follows
	end    error
	closed bool // OnClose was called
}

// newBridge has a handler for the connection that it is to be.
func newBridge() (*bridge, weir.ConnHandler) {
	b := &bridge{open: make(chan struct{})}
	b.change = sync.NewCond(&b.mu)
	opened := sync.OnceFunc(func() { close(b.open) })
	return b, weir.ConnHandler{
		OnOpen: func(c *weir.Conn) {
			b.raw, b.sender = c, c.Sender()
			b.addrs = [2]netip.AddrPort{c.LocalAddr(), c.RemoteAddr()}
			opened()
		},
		OnData: func(_ *weir.Conn, data []byte) {
			b.note(func() { b.in = append(b.in, data...) })
		},
		OnEnd: func(*weir.Conn) {
			b.note(func() { b.end = io.EOF })
		},
		OnClose: func(_ *weir.Conn, err error) {
			b.note(func() {
				b.closed = true
				if err == nil {
					err = io.EOF
				}
				if b.end == nil {
					b.end = err
				}
			})
			opened()
		},
	}
}

func (b *bridge) note(f func()) {
	b.mu.Lock()
	f()
	b.mu.Unlock()
	b.change.Broadcast()
}

func (b *bridge) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.in) == 0 && b.end == nil && !b.closed {
		b.change.Wait()
	}
	if len(b.in) == 0 {
		return 0, b.end
	}
	n := copy(p, b.in)
	b.in = b.in[n:]
	return n, nil
}

func (b *bridge) Write(p []byte) (int, error) {
	if err := b.sender.WriteContext(context.Background(), p); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (b *bridge) CloseWrite() error { return b.post((*weir.Conn).CloseWrite) }
func (b *bridge) Close() error      { return b.post((*weir.Conn).Close) }

func (b *bridge) post(f func(*weir.Conn) error) error {
	return b.raw.Loop().Post(func() { _ = f(b.raw) })
}

func (b *bridge) LocalAddr() net.Addr            { return net.TCPAddrFromAddrPort(b.addrs[0]) }
func (b *bridge) RemoteAddr() net.Addr           { return net.TCPAddrFromAddrPort(b.addrs[1]) }
func (*bridge) SetDeadline(time.Time) error      { return nil }
func (*bridge) SetReadDeadline(time.Time) error  { return nil }
func (*bridge) SetWriteDeadline(time.Time) error { return nil }

func (p *place) dialBridge(to netip.AddrPort) peer {
	p.t.Helper()
	b, h := newBridge()
	do(p.t, p.peers, func() {
		if _, err := p.peers.DialTCP(netip.AddrPort{}, to, weir.ConnConfig{}, h); err != nil {
			p.t.Error(err)
			h.OnClose(nil, err)
		}
	})
	<-b.open
	if b.raw == nil {
		p.t.Fatal("the peer was not let in")
	}
	return b
}

func (p *place) listenBridges() (at netip.AddrPort, accept func() peer) {
	p.t.Helper()
	accepted := make(chan *bridge, 100)
	do(p.t, p.peers, func() {
		ln, err := p.peers.ListenTCP(loopback, weir.ListenerConfig{}, weir.ListenerHandler{Conn: weir.ConnHandler{
			OnOpen: func(c *weir.Conn) {
				b, h := newBridge()
				c.SetHandler(h)
				h.OnOpen(c)
				accepted <- b
			},
		}})
		if err != nil {
			p.t.Error(err)
			return
		}
		at = ln.Addr()
	})
	if !at.IsValid() {
		p.t.FailNow()
	}
	return at, func() peer { return <-accepted }
}

// take returns what has come, without waiting.
func (b *bridge) take() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	in := b.in
	b.in = nil
	return in
}
