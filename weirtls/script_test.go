package weirtls_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirnet/weir"
	"github.com/weirnet/weir/weirtest"
	"github.com/weirnet/weir/weirtls"
)

// certificate is self-signed, and valid when a bubble begins.
var certificate = sync.OnceValue(func() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
})

// script is a test of which both sides are on one loop, in memory and on the clock of a bubble.
type script struct {
	*testing.T
	loop *weir.Loop
}

// play has the loop run what setUp makes, until something closes or stops it. An hour without is a failure.
func play(t *testing.T, setUp func(s *script)) {
	t.Helper()
	certificate() // not on the clock of the bubble
	synctest.Test(t, func(t *testing.T) {
		l, err := weir.New(weir.Config{Kernel: weirtest.NewNetwork().Kernel()})
		if err != nil {
			t.Fatal(err)
		}
		l.AfterFunc(time.Hour, func() {
			t.Error("the loop has not ended")
			_ = l.Close()
		})
		setUp(&script{t, l})
		_ = l.Run(context.Background())
	})
}

// after has something happen later.
func (s *script) after(d time.Duration, f func()) { s.loop.AfterFunc(d, f) }

// end closes the loop when what was written has arrived.
func (s *script) end() { s.after(time.Minute, func() { _ = s.loop.Close() }) }

// serve listens with a configuration that has a certificate.
func (s *script) serve(cfg weirtls.Config, conn weir.ConnConfig, h weirtls.Handler) netip.AddrPort {
	s.Helper()
	if cfg.TLS == nil {
		cfg.TLS = &tls.Config{}
	}
	cfg.TLS.Certificates = []tls.Certificate{certificate()}
	ln, err := weirtls.Listen(s.loop, netip.MustParseAddrPort("127.0.0.1:0"), cfg, weir.ListenerConfig{Conn: conn},
		weirtls.ListenerHandler{Conn: h})
	if err != nil {
		s.Fatal(err)
	}
	return ln.Addr()
}

// dial connects to what serve listens at.
func (s *script) dial(to netip.AddrPort, config *tls.Config, h weirtls.Handler) *weirtls.Conn {
	s.Helper()
	if config == nil {
		config = &tls.Config{}
	}
	config.InsecureSkipVerify = true
	c, err := weirtls.Dial(s.loop, "tcp", to.String(), weirtls.Config{TLS: config}, weir.ConnConfig{}, h)
	if err != nil {
		s.Fatal(err)
	}
	return c
}

// plain connects without TLS, and sends what a test has made.
func (s *script) plain(to netip.AddrPort, h weir.ConnHandler, b []byte) {
	s.Helper()
	c, err := s.loop.DialTCP(netip.AddrPort{}, to, weir.ConnConfig{}, h)
	if err != nil {
		s.Fatal(err)
	}
	if _, err := c.Write(b); err != nil {
		s.Error(err)
	}
}
