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
	cfg.TLS = withServerName(cfg.TLS, network, address)
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

// withServerName is the config with the host of a TCP address as its ServerName, if it has none.
func withServerName(config *tls.Config, network, address string) *tls.Config {
	if config != nil && config.ServerName != "" || network == "unix" {
		return config
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return config // Dial tells what is wrong with it
	}
	config = config.Clone() // nil stays nil
	if config == nil {
		config = &tls.Config{}
	}
	config.ServerName = host
	return config
}
