package weirhttp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// place is an origin of a test, made of net/http and quic-go alone: TCP and QUIC on one port, each of which may be missing.
type place struct {
	t    *testing.T
	url  string
	pool *x509.CertPool
	cert tls.Certificate
	tcp  net.Listener
	udp  *net.UDPConn // nil: closed

	h3   *http3.Server
	ln   *quic.EarlyListener
	quic *quic.Transport
	done chan struct{}
}

// newPlace serves handler by TCP on a port of which UDP is free. altSvc is announced there; PORT stands for the port.
func newPlace(t *testing.T, handler http.Handler, altSvc string) *place {
	t.Helper()
	p := &place{t: t, pool: x509.NewCertPool()}
	for range 100 {
		tcp, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := tcp.Addr().(*net.TCPAddr).Port
		if p.udp, err = net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}); err != nil {
			_ = tcp.Close()
			continue
		}
		p.tcp = tcp
		break
	}
	if p.tcp == nil {
		t.Fatal("no port is free for TCP and UDP")
	}
	port := p.tcp.Addr().(*net.TCPAddr).Port
	altSvc = strings.ReplaceAll(altSvc, "PORT", fmt.Sprint(port))
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if altSvc != "" {
			w.Header().Set("Alt-Svc", altSvc)
		}
		handler.ServeHTTP(w, r)
	}))
	_ = srv.Listener.Close()
	srv.Listener = p.tcp
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	p.url = srv.URL
	p.pool.AddCert(srv.Certificate())
	p.cert = srv.TLS.Certificates[0]
	t.Cleanup(func() { _ = p.udp.Close() })
	return p
}

// serveQUIC answers HTTP/3 at the port.
func (p *place) serveQUIC(handler http.Handler) {
	p.t.Helper()
	p.quic = &quic.Transport{Conn: p.udp}
	config := http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{p.cert}})
	ln, err := p.quic.ListenEarly(config, &quic.Config{MaxIncomingStreams: 10})
	if err != nil {
		p.t.Fatal(err)
	}
	p.h3, p.ln = &http3.Server{Handler: handler}, ln
	done := make(chan struct{})
	p.done = done
	h3, transport := p.h3, p.quic
	go func() {
		defer close(done)
		_ = h3.ServeListener(ln)
	}()
	p.t.Cleanup(func() {
		_ = h3.Close()
		_ = transport.Close()
		<-done
	})
}

// crashQUIC ends HTTP/3 without a word, and opens the port anew.
func (p *place) crashQUIC() {
	p.t.Helper()
	addr := p.udp.LocalAddr().(*net.UDPAddr)
	_ = p.udp.Close()
	udp, err := net.ListenUDP("udp", addr)
	if err != nil {
		p.t.Fatal(err)
	}
	p.udp = udp
}

func (p *place) transport(mode HTTP3Mode) *Transport {
	tr := &Transport{TLSClientConfig: &tls.Config{RootCAs: p.pool}, HTTP3: mode, FallbackDelay: -1}
	p.t.Cleanup(func() { _ = tr.Close() })
	return tr
}

// get returns the protocol and the body of an answer.
func get(t *testing.T, tr http.RoundTripper, url string) (proto, body string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.Request != req {
		t.Error("Response.Request is not the request")
	}
	return res.Proto, string(b)
}

func wantProto(t *testing.T, tr http.RoundTripper, url, want string) {
	t.Helper()
	if proto, _ := get(t, tr, url); proto != want {
		t.Errorf("GET went by %s, want %s", proto, want)
	}
}

func say(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, text)
	})
}
