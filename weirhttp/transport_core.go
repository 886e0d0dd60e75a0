package weirhttp

import (
	"cmp"
	"container/list"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/weirnet/weir/dgram"
)

const (
	defaultOriginHandshake = 10 * time.Second
	defaultOriginIdle      = 90 * time.Second
	defaultFallbackDelay   = 300 * time.Millisecond
	defaultMaxOrigins      = 256
	defaultMaxOriginConns  = 100
	defaultResponseHeader  = 1 << 20
)

// transportCore is a Transport that has begun. What a request does on its way is in exchange, what is known of an origin in
// origin; this holds them together.
type transportCore struct {
	// Set once.
	mode       HTTP3Mode
	tls        *tls.Config // of QUIC
	verifies   bool        // the certificate shows whose server it is
	tcp        *http.Transport
	ownTCP     bool
	handshake  time.Duration
	idle       time.Duration // 0: none
	delay      time.Duration // 0: none
	maxOrigins int
	maxConns   int
	udpConfig  dgram.Config
	log        *slog.Logger
	now        func() time.Time
	silence    time.Duration
	h3         *http3.Transport // makes client connections
	ctx        context.Context  // of dials; ends with Close
	cancel     context.CancelFunc
	work       sync.WaitGroup // dials and connections; none is added once closed but by one of them

	opening sync.Mutex // held while the socket is opened

	mu      sync.Mutex
	closed  bool                        // guarded by mu, as all below
	origins map[originKey]*list.Element // of *origin
	recent  list.List                   // of *origin, the one used last first
	conns   map[*originConn]struct{}    // those that are not closed
	counts  TransportStats
	udp     *dgram.Conn     // with quic, once a dial has opened it
	quic    *quic.Transport //
}

func newTransportCore(t *Transport) *transportCore {
	c := &transportCore{
		mode:       t.HTTP3,
		tls:        &tls.Config{},
		tcp:        t.TCP,
		handshake:  min(cmp.Or(timeoutOr(t.HandshakeTimeout, defaultOriginHandshake), noHandshake), noHandshake),
		idle:       timeoutOr(t.IdleTimeout, defaultOriginIdle),
		delay:      timeoutOr(t.FallbackDelay, defaultFallbackDelay),
		maxOrigins: limitOr(t.MaxOrigins, defaultMaxOrigins),
		maxConns:   limitOr(t.MaxConns, defaultMaxOriginConns),
		udpConfig:  t.UDP,
		log:        cmp.Or(t.Logger, slog.New(slog.DiscardHandler)),
		now:        t.now,
		silence:    cmp.Or(t.silence, defaultSilence),
		origins:    map[originKey]*list.Element{},
		conns:      map[*originConn]struct{}{},
	}
	if t.TLSClientConfig != nil {
		c.tls = t.TLSClientConfig.Clone()
	}
	c.verifies = !c.tls.InsecureSkipVerify || c.tls.VerifyConnection != nil || c.tls.VerifyPeerCertificate != nil
	if c.now == nil {
		c.now = time.Now
	}
	headers := limitOr(t.MaxResponseHeaderBytes, defaultResponseHeader)
	if c.tcp == nil {
		c.tcp, c.ownTCP = c.newTCP(headers, t.DisableCompression), true
	}
	c.h3 = &http3.Transport{DisableCompression: t.DisableCompression, MaxResponseHeaderBytes: headers}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// newTCP is like http.DefaultTransport.
func (c *transportCore) newTCP(headers int, plain bool) *http.Transport {
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           100,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: int64(headers),
		DisableCompression:     plain,
		TLSClientConfig:        c.tls.Clone(),
	}
}

// socket is what all QUIC connections share. The first dial opens it.
func (c *transportCore) socket() (*quic.Transport, error) {
	c.opening.Lock()
	defer c.opening.Unlock()
	c.mu.Lock()
	open := c.quic
	c.mu.Unlock()
	if open != nil {
		return open, nil
	}
	udp, err := dgram.Listen(c.ctx, "udp", ":0", c.udpConfig) // IPv6 and IPv4
	if err != nil {
		var errIPv4 error
		if udp, errIPv4 = dgram.Listen(c.ctx, "udp4", ":0", c.udpConfig); errIPv4 != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.udp, c.quic = udp, &quic.Transport{Conn: udp}
	return c.quic, nil
}
