package weirhttp

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"slices"

	"github.com/quic-go/quic-go/http3"
)

var (
	errNoCertificate = errors.New("weirhttp: Server.TLSConfig has neither Certificates nor GetCertificate nor GetConfigForClient")
	errNoTLS13       = errors.New("weirhttp: Server.TLSConfig.MaxVersion leaves out TLS 1.3, which HTTP/3 needs: raise it, or set NoHTTP3")
)

// checkTLS refuses what no client could connect to.
func checkTLS(c *tls.Config, quic bool) error {
	switch {
	case c == nil, len(c.Certificates) == 0 && c.GetCertificate == nil && c.GetConfigForClient == nil:
		return errNoCertificate
	case quic && c.MaxVersion != 0 && c.MaxVersion < tls.VersionTLS13:
		return errNoTLS13
	}
	return nil
}

// tcpConfig is the Server's for TCP.
func tcpConfig(base *tls.Config) *tls.Config {
	c := base.Clone()
	// Of HTTP it is the newest first. Other protocols stay, as a TLSConfig of autocert answers acme-tls/1 with them. The array
	// is a new one: Clone shares it with base, which GetConfigForClient may return to many handshakes at once.
	c.NextProtos = []string{"h2", "http/1.1"}
	for _, p := range base.NextProtos {
		if p != http3.NextProtoH3 && !slices.Contains(c.NextProtos, p) {
			c.NextProtos = append(c.NextProtos, p)
		}
	}
	c.MinVersion = max(c.MinVersion, tls.VersionTLS12)
	return forClient(c, tcpConfig)
}

// quicConfig is the Server's for QUIC.
func quicConfig(base *tls.Config) *tls.Config {
	c := base.Clone()
	c.MinVersion = tls.VersionTLS13
	return http3.ConfigureTLSConfig(c)
}

// forClient has what GetConfigForClient returns changed in the same way.
func forClient(c *tls.Config, change func(*tls.Config) *tls.Config) *tls.Config {
	if get := c.GetConfigForClient; get != nil {
		c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			its, err := get(hello)
			if its == nil || err != nil {
				return its, err
			}
			return change(its), nil
		}
	}
	return c
}

// survivingTLS has a panic of one of the program's functions fail the handshake alone. crypto/tls calls them on goroutines
// of its own under QUIC, where nobody else could recover.
func survivingTLS(base *tls.Config, tell func(panicked any)) *tls.Config {
	c := base.Clone()
	if get := c.GetCertificate; get != nil {
		c.GetCertificate = func(hello *tls.ClientHelloInfo) (_ *tls.Certificate, err error) {
			defer failed(&err, tell)
			return get(hello)
		}
	}
	if get := c.GetConfigForClient; get != nil {
		c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (_ *tls.Config, err error) {
			defer failed(&err, tell)
			its, err := get(hello)
			if its == nil || err != nil {
				return its, err
			}
			return survivingTLS(its, tell), nil
		}
	}
	if verify := c.VerifyPeerCertificate; verify != nil {
		c.VerifyPeerCertificate = func(raw [][]byte, chains [][]*x509.Certificate) (err error) {
			defer failed(&err, tell)
			return verify(raw, chains)
		}
	}
	if verify := c.VerifyConnection; verify != nil {
		c.VerifyConnection = func(state tls.ConnectionState) (err error) {
			defer failed(&err, tell)
			return verify(state)
		}
	}
	return c
}

var errTLSPanic = errors.New("weirhttp: a function of Server.TLSConfig panicked")

// failed is deferred by what may panic.
func failed(err *error, tell func(panicked any)) {
	if p := recover(); p != nil {
		*err = errTLSPanic
		tell(p)
	}
}
