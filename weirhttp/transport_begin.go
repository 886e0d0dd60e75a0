package weirhttp

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/weirnet/weir/dgram"
)

const (
	defaultHandshakeTimeout       = 10 * time.Second
	defaultClientIdleTimeout      = 90 * time.Second
	defaultFallbackDelay          = 300 * time.Millisecond
	defaultMaxOrigins             = 256
	defaultMaxResponseHeaderBytes = 1 << 20
)

// begin fills in what the program left open, at the first request.
func (t *Transport) begin() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return ErrTransportClosed
	}
	if t.begun {
		return nil
	}
	t.begun = true
	t.HandshakeTimeout = orDefault(t.HandshakeTimeout, defaultHandshakeTimeout)
	t.IdleTimeout = orDefault(t.IdleTimeout, defaultClientIdleTimeout)
	t.FallbackDelay = orDefault(t.FallbackDelay, defaultFallbackDelay)
	t.MaxOrigins = max(orDefault(t.MaxOrigins, defaultMaxOrigins), 1)
	t.MaxResponseHeaderBytes = orDefault(t.MaxResponseHeaderBytes, defaultMaxResponseHeaderBytes)
	if t.TLSClientConfig == nil {
		t.TLSClientConfig = &tls.Config{}
	}
	if t.Logger == nil {
		t.Logger = slog.New(slog.DiscardHandler)
	}
	if t.now == nil {
		t.now = time.Now
	}
	if t.tcp = t.TCP; t.tcp == nil {
		t.tcp = t.ownTCP()
	}
	t.h3 = &http3.Transport{DisableCompression: t.DisableCompression, MaxResponseHeaderBytes: t.MaxResponseHeaderBytes}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return nil
}

func orDefault[T ~int | ~int64](value, standard T) T {
	if value == 0 {
		return standard
	}
	return value
}

// ownTCP is like http.DefaultTransport.
func (t *Transport) ownTCP() *http.Transport {
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           100,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    defaultHandshakeTimeout,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: int64(t.MaxResponseHeaderBytes),
		DisableCompression:     t.DisableCompression,
		TLSClientConfig:        t.TLSClientConfig.Clone(),
	}
}

// socket is the QUIC transport that all connections share, opened by the first.
func (t *Transport) socket() (*quic.Transport, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return nil, ErrTransportClosed
	case t.quic != nil:
		return t.quic, nil
	}
	udp, err := dgram.Listen(t.ctx, "udp", ":0", t.UDP)
	if err != nil {
		return nil, err
	}
	t.udp, t.quic = udp, &quic.Transport{Conn: udp}
	return t.quic, nil
}

// CloseIdleConnections closes the connections that no request is on.
func (t *Transport) CloseIdleConnections() {
	t.mu.Lock()
	begun := t.begun
	for e := t.recent.Front(); e != nil; e = e.Next() {
		if o := e.Value.(*origin); o.client != nil && o.client.requests == 0 {
			o.drop()
		}
	}
	t.mu.Unlock()
	if begun {
		t.tcp.CloseIdleConnections()
	}
}

// Close closes all QUIC connections, which their peers are told, and the socket; requests on them fail. Connections over
// TCP are closed when they are idle. A second Close does nothing.
func (t *Transport) Close() error {
	t.mu.Lock()
	if t.closed || !t.begun {
		t.closed = true
		t.mu.Unlock()
		return nil
	}
	t.closed = true
	t.cancel()
	for e := t.recent.Front(); e != nil; e = e.Next() {
		e.Value.(*origin).drop()
	}
	transport, udp := t.quic, t.udp
	t.mu.Unlock()

	t.work.Wait()
	if t.TCP == nil {
		t.tcp.CloseIdleConnections()
	}
	if transport == nil {
		return nil
	}
	_ = transport.Close()
	return udp.Close()
}
