package weirtls

import (
	"crypto/tls"
	"net"

	"github.com/weirnet/weir"
)

// Dial connects to an address, as weir's Dial does, and begins TLS as the client. Where Config.TLS names no server, the
// host of the address is the one whose certificate is asked for. A failure is told by OnClose.
//
//   - Errors: a Config that makes no sense; those of weir's Dial.
func Dial(l *weir.Loop, network, address string, cfg Config, conn weir.ConnConfig, h Handler) (*Conn, error) {
	cfg, err := cfg.forAddress(network, address)
	if err != nil {
		return nil, err
	}
	set, err := cfg.resolve(AsClient, h)
	if err != nil {
		return nil, err
	}
	c := newConn(l, set)
	raw, err := l.Dial(network, address, conn, below(c.open))
	if err != nil {
		return nil, err
	}
	c.attach(raw)
	return c, nil
}

// forAddress is the Config with the host of a TCP address as the ServerName, if it has none.
func (c Config) forAddress(network, address string) (Config, error) {
	if network == "unix" || c.TLS != nil && c.TLS.ServerName != "" {
		return c, nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return c, &weir.OpError{Op: "dial", Net: network, Name: address, Err: err}
	}
	if c.TLS = c.TLS.Clone(); c.TLS == nil { // as that of nil is
		c.TLS = &tls.Config{}
	}
	c.TLS.ServerName = host
	return c, nil
}
