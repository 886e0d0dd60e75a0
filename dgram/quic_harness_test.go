//go:build linux

package dgram

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
)

// quicTLS is what both ends need to know each other.
func quicTLS(t testing.TB) (server, client *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, DNSNames: []string{"test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	cert, err := x509.ParseCertificate(der)
	must(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	server = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, NextProtos: []string{"t"}}
	return server, &tls.Config{RootCAs: roots, ServerName: "test", NextProtos: []string{"t"}}
}

// transfer is one stream between two Conns, on which both ends send a payload at a time.
type transfer struct {
	server, client       *Conn
	serverTLS, clientTLS *tls.Config
	bytes                int
	patience             time.Duration // of either end, with a silent peer; the whole may take four times that
}

// run tells what became of it: nil if both payloads arrived whole. Everything is closed then.
func (x *transfer) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 4*x.patience, errors.New("the transfer is not over"))
	defer cancel()
	cfg := &quic.Config{HandshakeIdleTimeout: x.patience, MaxIdleTimeout: x.patience}
	server, client := &quic.Transport{Conn: x.server}, &quic.Transport{Conn: x.client}
	defer func() { _, _ = server.Close(), client.Close() }()
	served := make(chan error, 1)
	ctx, stop := context.WithCancel(ctx)
	go func() { served <- x.serve(ctx, server, cfg) }()
	dialled := x.dial(ctx, client, cfg)
	if dialled != nil {
		stop() // there may be nobody to serve
	}
	serving := <-served
	stop()
	if errors.Is(serving, context.Canceled) && dialled != nil {
		serving = nil
	}
	return errors.Join(dialled, serving)
}

func (x *transfer) serve(ctx context.Context, tr *quic.Transport, cfg *quic.Config) error {
	l, err := tr.Listen(x.serverTLS, cfg)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	defer l.Close()
	conn, err := l.Accept(ctx)
	if err != nil {
		return fmt.Errorf("accept: %w", err)
	}
	s, err := conn.AcceptStream(ctx)
	if err != nil {
		return fmt.Errorf("the server's stream: %w", err)
	}
	if err := x.exchange(ctx, s); err != nil {
		return fmt.Errorf("the server's exchange: %w", err)
	}
	receipt, err := conn.OpenUniStreamSync(ctx)
	if err == nil {
		err = receipt.Close()
	}
	if err != nil {
		return fmt.Errorf("the receipt: %w", err)
	}
	select {
	case <-conn.Context().Done(): // the client has it and closes
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (x *transfer) dial(ctx context.Context, tr *quic.Transport, cfg *quic.Config) error {
	to := x.server.LocalAddr().(*net.UDPAddr)
	conn, err := tr.Dial(ctx, to, x.clientTLS, cfg)
	if err != nil {
		return fmt.Errorf("dial: %w", err)
	}
	s, err := conn.OpenStreamSync(ctx)
	if err != nil {
		return fmt.Errorf("the client's stream: %w", err)
	}
	if err = x.exchange(ctx, s); err != nil {
		err = fmt.Errorf("the client's exchange: %w", err)
	} else if _, err = conn.AcceptUniStream(ctx); err != nil {
		err = fmt.Errorf("the server's receipt: %w", err)
	}
	return errors.Join(err, conn.CloseWithError(0, ""))
}

// exchange sends a payload, with its end, and receives the other's.
func (x *transfer) exchange(ctx context.Context, s *quic.Stream) error {
	if at, ok := ctx.Deadline(); ok {
		_ = s.SetDeadline(at)
	}
	want := make([]byte, x.bytes)
	_, _ = mathrand.NewChaCha8([32]byte{}).Read(want)
	sent := make(chan error, 1)
	go func() {
		_, err := s.Write(want)
		if err == nil {
			err = s.Close()
		}
		sent <- err
	}()
	got, err := io.ReadAll(s)
	if err == nil && !bytes.Equal(got, want) {
		err = fmt.Errorf("%d bytes arrive that are others than the %d sent", len(got), len(want))
	}
	if err != nil {
		s.CancelWrite(0)
	}
	return errors.Join(err, <-sent)
}
