package weirhttp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/weirnet/weir/dgram"
)

func servingClientTLS(protos ...string) *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(testCert().Leaf)
	return &tls.Config{RootCAs: roots, ServerName: "localhost", NextProtos: protos}
}

// serving is a Server that serves.
type serving struct {
	*Server
	t      *testing.T
	addr   string
	result chan error
}

// serve has s serve h on a port of its own until the test ends.
func serve(t *testing.T, s *Server, h http.HandlerFunc) *serving {
	t.Helper()
	s.Handler = h
	s.TLSConfig = &tls.Config{Certificates: []tls.Certificate{testCert()}}
	tcp, udp, err := Listen(t.Context(), "127.0.0.1:0", dgram.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return serveOn(t, s, tcp, udp)
}

func serveOn(t *testing.T, s *Server, tcp net.Listener, udp net.PacketConn) *serving {
	t.Helper()
	v := &serving{Server: s, t: t, addr: tcp.Addr().String(), result: make(chan error, 1)}
	go func() { v.result <- s.Serve(tcp, udp) }()
	t.Cleanup(func() {
		_ = s.Close()
		if err := <-v.result; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("Serve: %v", err)
		}
		// net/http does not wait for a connection that was about to close by itself.
		eventually(t, "the last connection to be closed", func() bool { return s.Stats().TCP.Open == 0 })
		if st := s.Stats(); st.QUIC.Open != 0 || st.TCP.Handshakes != 0 || st.QUIC.Handshakes != 0 || st.HTTP3.Open != 0 {
			t.Errorf("after Close: %+v", st)
		}
	})
	eventually(t, "the Server to serve", func() bool { return s.LocalAddr() != nil })
	return v
}

// versions are the protocols, as clients are made for them.
var versions = [...]string{"HTTP/1.1", "HTTP/2.0", "HTTP/3.0"}

// client speaks one version. It has a connection of its own.
func (v *serving) client(version string) *http.Client {
	v.t.Helper()
	if version == "HTTP/3.0" {
		rt := &http3.Transport{TLSClientConfig: servingClientTLS()}
		v.t.Cleanup(func() { _ = rt.Close() })
		return &http.Client{Transport: rt, Timeout: 2 * patience}
	}
	rt := &http.Transport{TLSClientConfig: servingClientTLS(), Protocols: new(http.Protocols)}
	rt.Protocols.SetHTTP1(version == "HTTP/1.1")
	rt.Protocols.SetHTTP2(version == "HTTP/2.0")
	v.t.Cleanup(rt.CloseIdleConnections)
	return &http.Client{Transport: rt, Timeout: 2 * patience}
}

// get returns the body of an answer, which must have come by the client's version.
func (v *serving) get(c *http.Client, path string) (string, *http.Response) {
	v.t.Helper()
	body, resp, err := v.tryGet(c, path)
	if err != nil {
		v.t.Fatal(err)
	}
	return body, resp
}

func (v *serving) tryGet(c *http.Client, path string) (string, *http.Response, error) {
	resp, err := c.Get("https://" + v.addr + path)
	if err != nil {
		return "", nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), resp, err
}

// dialTLS opens a connection of HTTP/1.1 or another protocol.
func (v *serving) dialTLS(proto string) *tls.Conn {
	v.t.Helper()
	c, err := tls.Dial("tcp", v.addr, servingClientTLS(proto))
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() { _ = c.Close() })
	return c
}

// dialQUIC opens a connection that speaks HTTP/3 as far as the test goes.
func (v *serving) dialQUIC(ctx context.Context, cfg *quic.Config) (*quic.Conn, error) {
	v.t.Helper()
	c, err := quic.DialAddr(ctx, v.addr, servingClientTLS("h3"), cfg)
	if err == nil {
		v.t.Cleanup(func() { _ = c.CloseWithError(0, "") })
	}
	return c, err
}

// isClosed waits until the peer has closed the connection.
func isClosed(t *testing.T, c net.Conn) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(patience))
	_, err := io.Copy(io.Discard, c)
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		t.Fatal("the connection stays open")
	}
}

// isQUICClosed waits until the peer has closed the connection without error.
func isQUICClosed(t *testing.T, c *quic.Conn) {
	t.Helper()
	select {
	case <-c.Context().Done():
	case <-time.After(patience):
		t.Fatal("the connection stays open")
	}
	e, ok := errors.AsType[*quic.ApplicationError](context.Cause(c.Context()))
	if !ok || !e.Remote || e.ErrorCode != quic.ApplicationErrorCode(http3.ErrCodeNoError) {
		t.Fatalf("the connection ended by %v, not by the server with H3_NO_ERROR", context.Cause(c.Context()))
	}
}

func hello(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "hello "+r.Proto) }
