package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"
)

// ownCertificate makes a self-signed certificate, and keeps it.
type ownCertificate struct {
	dir   string // where it is kept; "": nowhere
	names []string
	now   time.Time
	warn  func(format string, args ...any)
}

const (
	ownLife   = 90 * 24 * time.Hour
	ownRenew  = 30 * 24 * time.Hour // it is made anew when less is left
	maxNames  = 32
	maxPEM    = 64 << 10
	keptInPEM = "serve.pem" // certificate and key in one file, so that they never differ
)

// cacheDir is where the user's caches of weir are, "" where the system does not tell.
func cacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "weir")
}

// ownNames are those that this machine is called by.
func ownNames(host string) []string {
	names := []string{"localhost", "127.0.0.1", "::1"}
	machine, _ := os.Hostname()
	for _, name := range []string{machine, host} {
		if ip := net.ParseIP(name); ip != nil {
			name = ip.String() // as a certificate tells it
		}
		if isName(name) && !isUnspecified(name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// isName says that a certificate can have the name: it is an address without zone, or letters, digits, hyphens, dots.
func isName(s string) bool {
	return net.ParseIP(s) != nil || s != "" && len(s) < 254 && !slices.ContainsFunc([]byte(s), func(c byte) bool {
		return !(c == '-' || c == '.' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z')
	})
}

// get returns the certificate that is kept, or makes one. Where it cannot be kept it lasts as long as the program.
func (o *ownCertificate) get() (*certificate, error) {
	file := filepath.Join(o.dir, keptInPEM)
	if o.dir != "" {
		pair, err := readPair(file)
		switch {
		case err == nil && o.isGood(pair.Leaf):
			return &certificate{pair, "in " + word(file)}, nil
		case err == nil:
			o.names = union(o.names, namesOf(pair.Leaf)) // so that others who want their names do not change it back
		case !errors.Is(err, fs.ErrNotExist):
			o.warn("%s is of no use and made anew: %w", word(file), bare(err))
		}
	}
	text, err := makePair(o.names, o.now)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(text, text)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	if o.dir == "" {
		err = errors.New("the system names no cache folder")
	} else {
		err = keep(file, text)
	}
	if err != nil {
		o.warn("the certificate is made anew at each start, as it cannot be kept: %w", err)
		return &certificate{pair, "for this run alone"}, nil
	}
	return &certificate{pair, "in " + word(file)}, nil
}

// isGood says that the certificate has all names and time left.
func (o *ownCertificate) isGood(leaf *x509.Certificate) bool {
	has := namesOf(leaf)
	for _, name := range o.names {
		if !slices.Contains(has, name) {
			return false
		}
	}
	return !o.now.Before(leaf.NotBefore) && o.now.Add(ownRenew).Before(leaf.NotAfter)
}

func namesOf(leaf *x509.Certificate) []string {
	names := slices.Clone(leaf.DNSNames)
	for _, ip := range leaf.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

func union(names, more []string) []string {
	for _, name := range more {
		if len(names) < maxNames && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// readPair reads a file that nobody else can have read.
func readPair(file string) (pair tls.Certificate, err error) {
	info, err := os.Lstat(file)
	if err != nil {
		return pair, err
	}
	if !info.Mode().IsRegular() {
		return pair, errors.New("it is no plain file")
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return pair, fmt.Errorf("others may have read the key, as its mode is %#o", info.Mode().Perm())
	}
	f, err := os.Open(file)
	if err != nil {
		return pair, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxPEM))
	if err != nil {
		return pair, err
	}
	return tls.X509KeyPair(text, text)
}

// makePair makes a key and a certificate of these names, as PEM.
func makePair(names []string, now time.Time) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial.Add(serial, big.NewInt(1)),
		Subject:      pkix.Name{CommonName: "weir serve"},
		NotBefore:    now.Add(-time.Hour), // clocks differ
		NotAfter:     now.Add(ownLife),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		// No authority: who trusts it trusts this one server only.
		BasicConstraintsValid: true,
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return append(text, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})...), nil
}

// keep writes the file such that it is there as a whole or not at all, for the user only.
func keep(file string, text []byte) (err error) {
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".serve-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	return err
}
