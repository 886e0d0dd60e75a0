package weirhttp

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

var (
	errLimit    = errors.New("weirhttp: too many connections")
	errStopping = errors.New("weirhttp: shutting down")
)

// quicConns is the listener of http3, and knows the connections that came through it.
type quicConns struct {
	core     *core
	ln       *quic.Listener
	stopping atomic.Bool

	accepting context.Context // until stop
	halt      context.CancelFunc

	mu       sync.Mutex
	open     map[*quic.Conn]*quicConn // guarded by mu; out of their handshake
	contexts sync.WaitGroup           // those of admit that have not ended
}

func newQUICConns(c *core) *quicConns {
	q := &quicConns{core: c, open: map[*quic.Conn]*quicConn{}}
	q.accepting, q.halt = context.WithCancel(context.Background())
	return q
}

// mustRetry says whether a client has to show that its address is its own.
func (q *quicConns) mustRetry(remote net.Addr) bool {
	if q.stopping.Load() || !q.core.quic.crowded(remote) {
		return false
	}
	q.core.quic.retries.Add(1)
	return true
}

// admit lets a connection begin its handshake. The context that it is given ends when the connection does, or when the
// handshake fails.
func (q *quicConns) admit(ctx context.Context, info *quic.ClientInfo) (context.Context, error) {
	g := q.core.quic
	if q.stopping.Load() {
		g.refused.stopping.Add(1)
		return nil, errStopping
	}
	p, refused := g.enter(info.RemoteAddr)
	if p == nil {
		refused.Add(1)
		return nil, errLimit
	}
	if !p.try() {
		p.leave()
		g.refused.handshakes.Add(1)
		return nil, errLimit
	}
	c := &quicConn{core: q.core, pass: p}
	q.contexts.Add(1)
	context.AfterFunc(ctx, func() {
		defer q.contexts.Done()
		q.remove(c)
	})
	return context.WithValue(ctx, quicConnKey{}, c), nil
}

// Accept is for http3.
func (q *quicConns) Accept(ctx context.Context) (*quic.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(q.accepting, cancel)()
	if q.accepting.Err() != nil {
		return nil, quic.ErrServerClosed
	}
	conn, err := q.ln.Accept(ctx)
	switch {
	case err != nil && q.accepting.Err() != nil:
		return nil, quic.ErrServerClosed
	case err != nil:
		return nil, err
	}
	q.add(conn)
	return conn, nil
}

// Addr is that of the socket.
func (q *quicConns) Addr() net.Addr { return q.ln.Addr() }

// Close is part of what http3 asks for, but not called by it.
func (q *quicConns) Close() error { return q.ln.Close() }

func (q *quicConns) add(conn *quic.Conn) {
	c := quicConnOf(conn.Context())
	q.mu.Lock()
	defer q.mu.Unlock()
	if c.accepted(conn) {
		q.open[conn] = c
	}
}

func (q *quicConns) remove(c *quicConn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.open, c.gone())
}

// growWindow is called with locks of the connection held.
func (q *quicConns) growWindow(conn *quic.Conn, by uint64) bool {
	q.mu.Lock()
	c := q.open[conn]
	q.mu.Unlock()
	return c != nil && c.grow(by)
}

// stop has Accept return, and refuses who is new.
func (q *quicConns) stop() {
	q.stopping.Store(true)
	q.halt()
}

// closeLate closes those that came out of their handshake after stop, until the listener is closed.
func (q *quicConns) closeLate() {
	for {
		conn, err := q.ln.Accept(context.Background())
		if err != nil {
			return
		}
		_ = conn.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "")
	}
}

// all is those that are open now.
func (q *quicConns) all() []*quicConn {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := make([]*quicConn, 0, len(q.open))
	for _, c := range q.open {
		list = append(list, c)
	}
	return list
}
