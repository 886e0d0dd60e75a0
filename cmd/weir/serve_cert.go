package main

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// certificate is what the server shows, with its key.
type certificate struct {
	pair   tls.Certificate // with its Leaf
	origin string          // where it is from, to show
}

// fingerprint is what browsers show of a certificate.
func (c *certificate) fingerprint() string {
	sum := sha256.Sum256(c.pair.Leaf.Raw)
	return strings.ReplaceAll(fmt.Sprintf("% X", sum), " ", ":")
}

// spki is the hash of the public key, as Chromium takes it in --ignore-certificate-errors-spki-list.
func (c *certificate) spki() string {
	sum := sha256.Sum256(c.pair.Leaf.RawSubjectPublicKeyInfo)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// givenCertificate is the one of --cert and --key, nil where there is none.
func (cfg serveConfig) givenCertificate() (*certificate, error) {
	if cfg.cert == "" {
		return nil, nil
	}
	return loadCertificate(cfg.cert, cfg.key, time.Now())
}

// ownCertificate is one that it makes, or has made and kept.
func (cfg serveConfig) ownCertificate(stderr io.Writer) (*certificate, error) {
	own := ownCertificate{dir: cacheDir(), names: ownNames(cfg.address.host), now: time.Now()}
	own.warn = func(format string, args ...any) {
		fmt.Fprintf(stderr, "weir: warning: %s\n", oneLine(fmt.Errorf(format, args...)))
	}
	return own.get()
}

// loadCertificate reads a pair of files. Its errors say which one is wrong.
func loadCertificate(certFile, keyFile string, now time.Time) (*certificate, error) {
	cert, err := readPEM(certFile)
	if err != nil {
		return nil, fmt.Errorf("--cert %q: %w", certFile, bare(err))
	}
	key, err := readPEM(keyFile)
	if err != nil {
		return nil, fmt.Errorf("--key %q: %w", keyFile, bare(err))
	}
	if !hasBlock(cert, "CERTIFICATE") {
		return nil, fmt.Errorf("--cert %q: there is no certificate in PEM form in it", certFile)
	}
	if !hasBlock(key, "PRIVATE KEY") {
		return nil, fmt.Errorf("--key %q: there is no private key in PEM form in it", keyFile)
	}
	if bytes.Contains(key, []byte("ENCRYPTED")) {
		return nil, fmt.Errorf("--key %q: the key is encrypted; openssl pkey -in %s -out plain.pem makes one that is not", keyFile, keyFile)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("--cert %q with --key %q: %s", certFile, keyFile, strings.TrimPrefix(err.Error(), "tls: "))
	}
	switch leaf := pair.Leaf; {
	case now.After(leaf.NotAfter):
		return nil, fmt.Errorf("--cert %q: the certificate has expired on %s", certFile, leaf.NotAfter.UTC().Format(time.DateOnly))
	case now.Before(leaf.NotBefore):
		return nil, fmt.Errorf("--cert %q: the certificate is not valid before %s", certFile, leaf.NotBefore.UTC().Format(time.DateOnly))
	}
	return &certificate{pair, "of " + word(certFile)}, nil
}

// maxGivenPEM is more than any chain of certificates takes.
const maxGivenPEM = 1 << 20

// readPEM reads a file, which may be a pipe, as a shell has for the output of a command.
func readPEM(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxGivenPEM+1))
	if err == nil && len(text) > maxGivenPEM {
		err = fmt.Errorf("it is larger than %s", shortBytes(maxGivenPEM))
	}
	return text, err
}

// hasBlock looks for a PEM block of a type that ends so.
func hasBlock(text []byte, kind string) bool {
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			return false
		}
		if strings.HasSuffix(block.Type, kind) {
			return true
		}
		text = rest
	}
}
