package weirhttp

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/weirnet/weir/dgram"
)

// quicServer serves HTTP/3 on a socket.
type quicServer struct {
	core   *core
	socket net.PacketConn // owned
	tr     *quic.Transport
	conns  *quicConns
	h3     *http3.Server
	served chan struct{} // closed when serve is over
}

// newQUICServer closes the socket only later: not where it fails.
func newQUICServer(c *core, base *tls.Config, socket net.PacketConn, h http.Handler) (*quicServer, error) {
	q := &quicServer{core: c, socket: socket, conns: newQUICConns(c), served: make(chan struct{})}
	guard := newGuard()
	q.tr = &quic.Transport{
		Conn:                  socket,
		ConnectionIDGenerator: guard,
		StatelessResetKey:     new(quic.StatelessResetKey),
		TokenGeneratorKey:     new(quic.TokenGeneratorKey),
		VerifySourceAddress:   q.conns.mustRetry,
		ConnContext:           q.conns.admit,
	}
	_, _ = rand.Read(q.tr.StatelessResetKey[:]) // never fails
	_, _ = rand.Read(q.tr.TokenGeneratorKey[:])

	// Not ListenEarly: who has not shown that it can receive at its address is not worth goroutines of HTTP/3.
	if filtered, ok := socket.(interface{ SetFilter(dgram.Filter) }); ok {
		filtered.SetFilter(guard.pass)
	}
	ln, err := q.tr.Listen(quicConfig(base), q.conns.config())
	if err != nil {
		_ = q.tr.Close()
		return nil, err
	}
	q.conns.listen(ln)
	q.h3 = &http3.Server{
		Handler:        h,
		MaxHeaderBytes: c.headerBytes,
		Logger:         c.log,
		ConnContext: func(ctx context.Context, conn *quic.Conn) context.Context {
			return c.context(ctx, conn.LocalAddr(), conn.RemoteAddr())
		},
	}
	return q, nil
}

const (
	maxUniStreams   = 16               // HTTP/3 has three, and clients open some that mean nothing
	noHandshake     = 24 * time.Hour   // stands for none: QUIC has to have one
	serverKeepAlive = 15 * time.Second // as TCP's is
)

// config is that of a connection.
func (q *quicConns) config() *quic.Config {
	handshake := cmp.Or(q.core.handshakeTimeout, noHandshake)
	idle := cmp.Or(q.core.idleTimeout, defaultIdleTimeout) // a peer that answers nothing is not idle but gone
	return &quic.Config{
		HandshakeIdleTimeout: handshake / 2, // and twice that in all
		MaxIdleTimeout:       idle,
		// A handler may be silent for longer. What is idle is for quicConn to say.
		KeepAlivePeriod:                min(serverKeepAlive, idle/2),
		MaxIncomingStreams:             int64(q.core.requests),
		MaxIncomingUniStreams:          maxUniStreams,
		InitialStreamReceiveWindow:     firstStreamWindow,
		MaxStreamReceiveWindow:         maxStreamWindow,
		InitialConnectionReceiveWindow: firstConnWindow,
		MaxConnectionReceiveWindow:     maxConnWindow,
		AllowConnectionWindowIncrease:  q.growWindow,
	}
}

// serve returns http.ErrServerClosed after shutdown, or why the socket is of no use any more.
func (q *quicServer) serve() error {
	defer close(q.served)
	return q.h3.ServeListener(q.conns)
}

// shutdown refuses new connections, and closes those that there are once they are done, or when ctx ends.
func (q *quicServer) shutdown(ctx context.Context) {
	q.conns.stop()
	<-q.served // from here on http3 counts its connections down only
	q.conns.watch()
	handlers := make(chan struct{}) // ends with the last handler, which may be after shutdown
	go func() {
		defer close(handlers)
		_ = q.h3.Shutdown(context.Background()) // GOAWAY
	}()
	if q.conns.drain(ctx) {
		select {
		case <-handlers:
		case <-ctx.Done():
		}
	}
	q.conns.closeAll()
	_ = q.conns.ln.Close()
	_ = q.tr.Close()
	_ = q.socket.Close()
	q.conns.contexts.Wait()
}
