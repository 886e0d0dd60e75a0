package weirtls_test

import (
	"crypto/tls"
	"errors"
	"net/netip"
	"syscall"
	"testing"

	"github.com/weirnet/weir"
	"github.com/weirnet/weir/weirtls"
)

// TestAcceptNeverOpen has a connection with the handler of Accept never come about.
func TestAcceptNeverOpen(t *testing.T) {
	play(t, func(s *script) {
		cfg := weirtls.Config{TLS: &tls.Config{Certificates: []tls.Certificate{certificate()}}}
		h, err := weirtls.Accept(cfg, weirtls.Handler{OnClose: func(_ *weirtls.Conn, err error) {
			if !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("closed: %v", err)
			}
			_ = s.loop.Close()
		}})
		if err != nil {
			t.Fatal(err)
		}
		ln, err := s.loop.ListenTCP(netip.MustParseAddrPort("127.0.0.1:0"), weir.ListenerConfig{}, weir.ListenerHandler{})
		if err != nil {
			t.Fatal(err)
		}
		_ = ln.Close() // nobody listens there
		if _, err := s.loop.DialTCP(netip.AddrPort{}, ln.Addr(), weir.ConnConfig{}, h); err != nil {
			t.Fatal(err)
		}
	})
}
