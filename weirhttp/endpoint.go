package weirhttp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
)

// endpoint is what one call of Serve serves: a TCP listener, and a UDP socket or none.
type endpoint struct {
	core   *core
	addr   net.Addr
	tcp    *tlsListener
	web    *http.Server
	quic   *quicServer // nil: none
	altSvc string      // "": none

	ctx    context.Context // ends when all is to be closed at once
	cancel context.CancelFunc
	once   sync.Once     // of shutdown
	gone   chan struct{} // closed when all is closed
}

// newEndpoint closes nothing where it fails.
func newEndpoint(c *core, base *tls.Config, tcp net.Listener, udp net.PacketConn) (*endpoint, error) {
	e := &endpoint{core: c, addr: tcp.Addr(), gone: make(chan struct{})}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	base = survivingTLS(base, c.tlsPanicked)
	if udp != nil {
		q, err := newQUICServer(c, base, udp, http.HandlerFunc(e.serveHTTP))
		if err != nil {
			e.cancel()
			return nil, err
		}
		e.quic, e.altSvc = q, altSvcHeader(udp.LocalAddr(), c.altSvcMaxAge)
	}
	config := tcpConfig(base)
	e.web = newWebServer(c, config, http.HandlerFunc(e.serveHTTP))
	e.tcp = newTLSListener(c, config, tcp)
	return e, nil
}

// serve returns when neither is served any longer, because of shutdown, or because one of them broke.
func (e *endpoint) serve() (err error) {
	parts := 1
	errs := make(chan error, 2)
	go func() { errs <- broke("TCP", e.web.Serve(e.tcp)) }()
	if e.quic != nil {
		parts++
		go func() { errs <- broke("UDP", e.quic.serve()) }()
	}
	for range parts {
		if one := <-errs; one != nil && err == nil { // the other ends with it
			err = one
			e.core.log.Error("weirhttp: a socket broke", "address", e.addr, "error", err)
			e.cancel()
			e.shutdown()
		}
	}
	if err != nil {
		<-e.gone
	}
	return err
}

// broke is nil where what was served ended as it was told to.
func broke(what string, err error) error {
	if err == nil || errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("weirhttp: serving %s: %w", what, err)
}

// shutdown begins to shut down; gone tells when that is over.
func (e *endpoint) shutdown() {
	e.once.Do(func() { go e.end() })
}

func (e *endpoint) end() {
	defer close(e.gone)
	defer e.cancel()
	var both sync.WaitGroup
	both.Go(func() {
		if e.web.Shutdown(e.ctx) != nil {
			_ = e.web.Close()
		}
		_ = e.tcp.Close() // where it was not served yet
		e.tcp.wait()
	})
	if e.quic != nil {
		both.Go(func() { e.quic.shutdown(e.ctx) })
	}
	both.Wait()
}
