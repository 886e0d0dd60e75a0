package weirhttp

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// tlsListener accepts connections within the limits, and returns those whose handshake is over. A goroutine accepts, and
// there is one for each handshake; all of them end with Close.
type tlsListener struct {
	net.Listener
	core   *core
	config *tls.Config
	ready  chan net.Conn

	ctx    context.Context // until Close
	cancel context.CancelFunc
	ended  chan struct{} // closed when nothing is accepted any more
	err    error         // why; set before ended is closed
	shakes sync.WaitGroup
}

func newTLSListener(c *core, config *tls.Config, l net.Listener) *tlsListener {
	t := &tlsListener{Listener: l, core: c, config: config, ready: make(chan net.Conn), ended: make(chan struct{})}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	go t.accept()
	return t
}

// Accept returns a *tls.Conn.
func (t *tlsListener) Accept() (net.Conn, error) {
	select {
	case c := <-t.ready:
		return c, nil
	case <-t.ended:
		return nil, t.err
	}
}

// Close ends the handshakes in progress, too.
func (t *tlsListener) Close() error {
	t.cancel()
	return t.Listener.Close()
}

// wait waits for all goroutines, after Close.
func (t *tlsListener) wait() {
	<-t.ended
	t.shakes.Wait()
}

// accept ends when the listener is closed, or broken for good.
func (t *tlsListener) accept() {
	defer close(t.ended)
	var rest restAfter
	for {
		conn, err := t.Listener.Accept()
		if err != nil {
			if t.ctx.Err() != nil || isDead(err) {
				t.err = err
				return
			}
			t.core.log.Warn("weirhttp: accepting failed", "address", t.Addr(), "error", err)
			rest.wait(t.ctx)
			continue
		}
		rest = 0
		t.let(conn)
	}
}

// let has a connection in, or resets it.
func (t *tlsListener) let(conn net.Conn) {
	p, refused := t.core.tcp.enter(conn.RemoteAddr())
	if p == nil {
		refused.Add(1)
		if c, ok := conn.(interface{ SetLinger(int) error }); ok {
			_ = c.SetLinger(0)
		}
		_ = conn.Close()
		return
	}
	t.shakes.Go(func() { t.shake(conn, p) })
}

// shake waits for the slot of a handshake, makes it, and passes the connection on.
func (t *tlsListener) shake(raw net.Conn, p *admission) {
	counted := &countedConn{Conn: raw, left: []func(){p.leave}}
	ctx, cancel := t.ctx, context.CancelFunc(func() {})
	if d := t.core.handshakeTimeout; d > 0 {
		ctx, cancel = context.WithTimeout(ctx, d)
	}
	defer cancel()
	if p.wait(ctx) != nil {
		if t.ctx.Err() != nil {
			t.core.tcp.refused.stopping.Add(1)
		} else {
			t.core.tcp.refused.handshakes.Add(1)
		}
		_ = counted.Close()
		return
	}
	conn := tls.Server(counted, t.config)
	err := conn.HandshakeContext(ctx)
	p.shaken(err == nil)
	if err != nil {
		t.core.log.Debug("weirhttp: handshake failed", "remote", raw.RemoteAddr(), "error", err)
		answerPlain(err)
		_ = counted.Close()
		return
	}
	counted.left = append(counted.left, t.core.counts.opened(kindOf(conn)))
	select {
	case t.ready <- conn:
	case <-t.ended:
		_ = conn.Close()
	}
}

// answerPlain tells a client that forgot about TLS.
func answerPlain(err error) {
	var e tls.RecordHeaderError
	if !errors.As(err, &e) || e.Conn == nil {
		return
	}
	switch string(e.RecordHeader[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO", "DELET", "PATCH":
		_ = e.Conn.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = io.WriteString(e.Conn, "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"+
			"This port speaks https, not http.\n")
	}
}

func kindOf(c *tls.Conn) int {
	if c.ConnectionState().NegotiatedProtocol == "h2" {
		return kindHTTP2
	}
	return kindHTTP1
}

// countedConn tells when it is closed.
type countedConn struct {
	net.Conn
	once sync.Once
	left []func()
}

func (c *countedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		for _, f := range c.left {
			f()
		}
	})
	return err
}
