package weirhttp

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/quic-go/quic-go"

	"github.com/weirnet/weir/dgram"
)

// "Listen opens a TCP listener and a UDP socket on the same host and port."
func TestListen(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"127.0.0.1:0", "[::1]:0", "localhost:0", ":0", "0.0.0.0:0"} {
		t.Run(address, func(t *testing.T) {
			t.Parallel()
			tcp, udp, err := Listen(t.Context(), address, dgram.Config{})
			if err != nil {
				if strings.Contains(address, "::1") {
					t.Skip("no IPv6 here: ", err)
				}
				t.Fatal(err)
			}
			defer tcp.Close()
			defer udp.Close()
			a, b := netip.MustParseAddrPort(tcp.Addr().String()), netip.MustParseAddrPort(udp.LocalAddr().String())
			if a.Port() != b.Port() || a.Port() == 0 || a.Addr().Unmap().IsUnspecified() != b.Addr().Unmap().IsUnspecified() {
				t.Errorf("TCP is at %v, UDP at %v", a, b)
			}
			if !a.Addr().IsUnspecified() && a != b {
				t.Errorf("TCP is at %v, UDP at %v", a, b)
			}
		})
	}
}

// What is taken is told by which of the two it is, and the other is closed again.
func TestListenTaken(t *testing.T) {
	t.Parallel()
	tcp, udp, err := Listen(t.Context(), "127.0.0.1:0", dgram.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	address := tcp.Addr().String()
	_, _, err = Listen(t.Context(), address, dgram.Config{})
	if err == nil || !strings.Contains(err.Error(), "TCP") || !strings.Contains(err.Error(), address) {
		t.Errorf("TCP is taken: %v", err)
	}
	_ = tcp.Close()
	_, _, err = Listen(t.Context(), address, dgram.Config{})
	if err == nil || !strings.Contains(err.Error(), "UDP") || !strings.Contains(err.Error(), address) {
		t.Errorf("UDP is taken: %v", err)
	}
	again, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatalf("TCP was left open: %v", err)
	}
	_ = again.Close()
}

// Clients of both families come to a wildcard address.
func TestServerFamilies(t *testing.T) {
	t.Parallel()
	s := &Server{Addr: ":0", Handler: http.HandlerFunc(hello), TLSConfig: &tls.Config{Certificates: []tls.Certificate{testCert()}}}
	result := make(chan error, 1)
	go func() { result <- s.ListenAndServe() }()
	eventually(t, "an address", func() bool { return s.LocalAddr() != nil })
	_, port, _ := net.SplitHostPort(s.LocalAddr().String())
	for _, host := range []string{"127.0.0.1", "::1"} {
		v := &serving{Server: s, t: t, addr: net.JoinHostPort(host, port)}
		if probe, err := net.Listen("tcp", net.JoinHostPort(host, "0")); err != nil {
			t.Logf("no %s here: %v", host, err)
			continue
		} else {
			_ = probe.Close()
		}
		for _, version := range versions {
			if body, _ := v.get(v.client(version), "/"); body != "hello "+version {
				t.Errorf("%s by %s: %q", host, version, body)
			}
		}
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-result; !errors.Is(err, http.ErrServerClosed) {
		t.Errorf("ListenAndServe: %v", err)
	}
}

func TestServerNoHTTP3(t *testing.T) {
	t.Parallel()
	s := &Server{Addr: "127.0.0.1:0", NoHTTP3: true, TLSConfig: &tls.Config{Certificates: []tls.Certificate{testCert()}, MaxVersion: tls.VersionTLS12}}
	result := make(chan error, 1)
	go func() { result <- s.ListenAndServe() }()
	eventually(t, "an address", func() bool { return s.LocalAddr() != nil })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if c, err := quic.DialAddr(ctx, s.LocalAddr().String(), servingClientTLS("h3"), &quic.Config{HandshakeIdleTimeout: short}); err == nil {
		_ = c.CloseWithError(0, "")
		t.Error("there is QUIC")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-result; !errors.Is(err, http.ErrServerClosed) {
		t.Errorf("ListenAndServe: %v", err)
	}
}
