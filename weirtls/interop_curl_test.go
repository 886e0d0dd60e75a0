package weirtls

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/weirnet/weir"
)

// serveHTTP answers each request with a short text, and closes.
func (p *place) serveHTTP(cfg *tls.Config) (at netip.AddrPort, end func() *story) {
	p.t.Helper()
	a := newActor(program{})
	h := a.handler()
	h.OnData = func(c *Conn, b []byte) {
		a.onData(c, b)
		if !bytes.Contains(a.data, []byte("\r\n\r\n")) {
			return
		}
		const text = "hello from weirtls\n"
		_, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(text), text)
		a.wrong = errors.Join(a.wrong, err)
		_ = c.Close()
	}
	return p.serve(Config{TLS: cfg}, weir.ConnConfig{}, h), func() *story { return <-a.over }
}

func curl(t *testing.T, at netip.AddrPort, files pemFiles, args ...string) (said string) {
	t.Helper()
	args = append([]string{"-q", "-sSv", "--noproxy", "*", "--max-time", "30", "--cacert", files.ca,
		"--resolve", fmt.Sprintf("%s:%d:%s", serverName, at.Port(), at.Addr())}, args...)
	return start(t, "curl", args...).finish()
}

// TestCurl has curl get something by HTTP/1.1 over each version.
func TestCurl(t *testing.T) {
	need(t, "curl")
	for name, version := range map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := onMachine(t, weir.Config{})
			cfg := serverTLS(0)
			cfg.NextProtos = []string{"http/1.1"}
			at, end := p.serveHTTP(cfg)
			said := curl(t, at, writePEM(t), "--tlsv"+name, "--tls-max", name, fmt.Sprintf("https://%s:%d/", serverName, at.Port()))
			s := end()
			for _, want := range []string{"hello from weirtls\n", "HTTP/1.1 200 OK"} {
				if !strings.Contains(said, want) {
					t.Errorf("no %q; curl said:\n%s", want, said)
				}
			}
			if st := s.state; st.Version != version || st.NegotiatedProtocol != "http/1.1" || st.ServerName != serverName || s.err != nil {
				t.Errorf("the server has %s", s.summary())
			}
		})
	}
}

// TestCurlWithoutTLS holds "A client that spoke HTTP has been answered, in HTTP, that this is an HTTPS server".
func TestCurlWithoutTLS(t *testing.T) {
	need(t, "curl")
	p := onMachine(t, weir.Config{})
	at, end := p.serveHTTP(serverTLS(0))
	said := curl(t, at, writePEM(t), fmt.Sprintf("http://%s:%d/", serverName, at.Port()))
	for _, want := range []string{"400 Bad Request", "Client sent an HTTP request to an HTTPS server."} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q; curl said:\n%s", want, said)
		}
	}
	e, ok := errors.AsType[*HandshakeError](end().err)
	if !ok || e.Kind != KindNotTLS {
		t.Errorf("OnClose has %v", e)
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](e); !ok {
		t.Errorf("%v matches no tls.RecordHeaderError", e)
	}
}
