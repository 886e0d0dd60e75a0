package weirtls

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"sync"
	"time"
)

// names of the server.
const (
	serverName = "weir.test"
	otherName  = "other.test"
)

// pki is what a run's certificates come from. It is made once; all of it is read only.
type pki struct {
	roots     *x509.CertPool // the authority
	authority *x509.Certificate
	server    tls.Certificate // of serverName, 127.0.0.1 and ::1
	other     tls.Certificate // of otherName
	client    tls.Certificate
	chain     tls.Certificate // a client's, with a chain that takes several records
	stranger  tls.Certificate // a client's of another authority
}

var certificates = sync.OnceValue(func() *pki {
	ca, stranger := newAuthority("weir test"), newAuthority("stranger")
	p := &pki{
		roots: x509.NewCertPool(), authority: ca.cert,
		server:   ca.issue("server", x509.ExtKeyUsageServerAuth, 0, serverName),
		other:    ca.issue("other", x509.ExtKeyUsageServerAuth, 0, otherName),
		client:   ca.issue("client", x509.ExtKeyUsageClientAuth, 0),
		chain:    ca.issue("client with a chain", x509.ExtKeyUsageClientAuth, 40<<10),
		stranger: stranger.issue("stranger's client", x509.ExtKeyUsageClientAuth, 0),
	}
	p.roots.AddCert(ca.cert)
	return p
})

// authority signs certificates.
type authority struct {
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	serial int64
}

func newAuthority(name string) *authority {
	a := &authority{key: newKey()}
	template := a.template(name)
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		panic(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		panic(err)
	}
	return a
}

// template is valid now, and at the time that a bubble begins.
func (a *authority) template(name string) *x509.Certificate {
	a.serial++
	return &x509.Certificate{
		SerialNumber: big.NewInt(a.serial),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:     time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
	}
}

// issue makes a certificate, with so many bytes of others behind it.
func (a *authority) issue(name string, use x509.ExtKeyUsage, extra int, dns ...string) tls.Certificate {
	key := newKey()
	template := a.template(name)
	template.ExtKeyUsage, template.DNSNames = []x509.ExtKeyUsage{use}, dns
	template.KeyUsage = x509.KeyUsageDigitalSignature
	if len(dns) > 0 {
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		panic(err)
	}
	c := tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	for ; extra > 0; extra -= len(a.cert.Raw) {
		c.Certificate = append(c.Certificate, a.cert.Raw)
	}
	if c.Leaf, err = x509.ParseCertificate(der); err != nil {
		panic(err)
	}
	return c
}

func newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
}

// serverTLS and clientTLS are configurations that get on with each other, at one version where that is not 0.
func serverTLS(version uint16) *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{certificates().server},
		MinVersion:   version, MaxVersion: version,
	}
}

func clientTLS(version uint16) *tls.Config {
	return &tls.Config{
		RootCAs: certificates().roots, ServerName: serverName,
		MinVersion: version, MaxVersion: version,
	}
}

// roleTLS is that of a side.
func roleTLS(r Role, version uint16) *tls.Config {
	if r == AsServer {
		return serverTLS(version)
	}
	return clientTLS(version)
}

// opposite is the other side.
func opposite(r Role) Role {
	if r == AsServer {
		return AsClient
	}
	return AsServer
}

var versions = []uint16{tls.VersionTLS12, tls.VersionTLS13}
