//go:build linux && perf

package lab

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// tlsLab is the programs, and the one certificate that all servers of a test have.
type tlsLab struct {
	t         *testing.T
	dir, cert string
}

func newTLSLab(t *testing.T) tlsLab {
	t.Helper()
	dir := build(t)
	cert := filepath.Join(dir, "cert.pem")
	if err := writeCertificate(cert); err != nil {
		t.Fatal(err)
	}
	return tlsLab{t, dir, cert}
}

// in is the lab for a part of the test, whose programs end with it.
func (l tlsLab) in(t *testing.T) tlsLab {
	l.t = t
	return l
}

func (l tlsLab) server(cpu int, program string, args ...string) *child {
	l.t.Helper()
	return start(l.t, cpu, filepath.Join(l.dir, program), append([]string{"-cert", l.cert}, args...)...)
}

// load has processor 1.
func (l tlsLab) load(s *child, do string, conns int, args ...string) *child {
	l.t.Helper()
	args = append([]string{"-addr", s.first, "-do", do, "-conns", strconv.Itoa(conns)}, args...)
	return start(l.t, 1, filepath.Join(l.dir, "tlsload"), args...)
}

// loadCost is what a server pays for one of what a load counts.
func (l tlsLab) loadCost(s *child, do string, conns int, args ...string) float64 {
	l.t.Helper()
	load := l.load(s, do, conns, args...)
	defer load.stop()
	return cost(s, load)
}

// writeCertificate makes a key of ECDSA over P-256, and signs its certificate with it.
func writeCertificate(name string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	text = append(text, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})...)
	return os.WriteFile(name, text, 0o600)
}
