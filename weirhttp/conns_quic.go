package weirhttp

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

var (
	errLimit    = errors.New("weirhttp: too many connections")
	errStopping = errors.New("weirhttp: shutting down")
)

// quicConns is the listener of http3, and knows the connections that came through it.
type quicConns struct {
	core *core
	ln   *quic.Listener // set once, before listening is closed

	listening chan struct{}
	ready     chan *quic.Conn // out of their handshake
	stopping  chan struct{}   // closed by stop
	broken    chan struct{}   // closed when ln accepts no more
	err       error           // why; set before broken is closed

	mu       sync.Mutex
	open     map[*quic.Conn]*quicConn // guarded by mu; out of their handshake
	contexts sync.WaitGroup           // those of admit that have not ended, and what accepts
}

func newQUICConns(c *core) *quicConns {
	return &quicConns{
		core: c, open: map[*quic.Conn]*quicConn{},
		listening: make(chan struct{}), ready: make(chan *quic.Conn), stopping: make(chan struct{}), broken: make(chan struct{}),
	}
}

func (q *quicConns) isStopping() bool { return hasEnded(q.stopping) }

// mustRetry says whether a client has to show that its address is its own.
func (q *quicConns) mustRetry(remote net.Addr) bool {
	if q.isStopping() || !q.core.quic.crowded(remote) {
		return false
	}
	q.core.quic.retries.Add(1)
	return true
}

// admit lets a connection begin its handshake. The context that it is given ends when the connection does, or when the
// handshake fails.
func (q *quicConns) admit(ctx context.Context, info *quic.ClientInfo) (context.Context, error) {
	g := q.core.quic
	if q.isStopping() {
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
	c := &quicConn{core: q.core, admission: p}
	q.contexts.Add(1)
	context.AfterFunc(ctx, func() {
		defer q.contexts.Done()
		q.remove(c)
	})
	q.contexts.Go(func() { q.acceptAlong(ctx) })
	return context.WithValue(ctx, quicConnKey{}, c), nil
}

// listen accepts from a listener, until it is closed.
func (q *quicConns) listen(ln *quic.Listener) {
	q.ln = ln
	close(q.listening)
	q.contexts.Go(q.accept)
}

func (q *quicConns) accept() {
	defer close(q.broken)
	for {
		conn, err := q.ln.Accept(context.Background())
		if err != nil {
			q.err = err
			return
		}
		q.deliver(conn)
	}
}

// acceptAlong accepts one that came out of its handshake, while the one that it is for has not ended. The listener's
// queue is short, and refuses who does not fit; so there is somebody for each that may come.
func (q *quicConns) acceptAlong(ctx context.Context) {
	select {
	case <-q.listening: // the first may be there before the listener is
	case <-ctx.Done():
		return
	}
	if conn, err := q.ln.Accept(ctx); err == nil {
		q.deliver(conn)
	}
}

// deliver has http3 have a connection, unless it wants no more.
func (q *quicConns) deliver(conn *quic.Conn) {
	q.add(conn)
	select {
	case q.ready <- conn:
	case <-q.stopping:
		_ = conn.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "")
	}
}

// Accept is for http3.
func (q *quicConns) Accept(ctx context.Context) (*quic.Conn, error) {
	if q.isStopping() {
		return nil, quic.ErrServerClosed
	}
	select {
	case conn := <-q.ready:
		return conn, nil
	case <-q.stopping:
		return nil, quic.ErrServerClosed
	case <-q.broken:
		return nil, q.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
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

// stop has Accept return, and refuses who is new. It is called once.
func (q *quicConns) stop() { close(q.stopping) }

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
