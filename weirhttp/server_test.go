package weirhttp

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/quic-go/quic-go"

	"github.com/weirnet/weir/dgram"
)

// One handler answers all versions on one port number; those that came by TCP hear of HTTP/3.
func TestServerVersions(t *testing.T) {
	t.Parallel()
	v := serve(t, &Server{}, hello)
	_, port, _ := net.SplitHostPort(v.addr)
	for _, version := range versions {
		c := v.client(version)
		for range 2 {
			body, resp := v.get(c, "/")
			if body != "hello "+version || resp.Proto != version {
				t.Errorf("%s answered %q by %s", version, body, resp.Proto)
			}
			want := fmt.Sprintf(`h3=":%s"; ma=86400`, port)
			if version == "HTTP/3.0" {
				want = ""
			}
			if got := resp.Header.Get("Alt-Svc"); got != want {
				t.Errorf("%s: Alt-Svc %q, want %q", version, got, want)
			}
		}
	}
	st := v.Stats()
	one := ProtocolStats{Requests: 2, Conns: 1, Open: 1}
	if st.HTTP1 != one || st.HTTP2 != one || st.HTTP3 != one {
		t.Errorf("Stats: %+v", st)
	}
	if st.TCP.Open != 2 || st.TCP.Done != 2 || st.TCP.Sources != 1 || st.QUIC.Open != 1 || st.QUIC.Done != 1 || len(st.UDP) != 1 {
		t.Errorf("Stats: %+v", st)
	}
	if got := v.LocalAddr().String(); got != v.addr {
		t.Errorf("LocalAddr %s, want %s", got, v.addr)
	}
}

func TestServerAltSvc(t *testing.T) {
	t.Parallel()
	own := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/own" {
			w.Header().Set("Alt-Svc", "clear")
		}
	}
	v := serve(t, &Server{}, own)
	if _, resp := v.get(v.client("HTTP/2.0"), "/own"); len(resp.Header["Alt-Svc"]) != 1 || resp.Header.Get("Alt-Svc") != "clear" {
		t.Errorf("the handler's Alt-Svc became %q", resp.Header["Alt-Svc"])
	}
	for name, s := range map[string]*Server{"age": {AltSvcMaxAge: -1}, "no HTTP/3": {NoHTTP3: true}} {
		v := serve(t, s, own)
		if _, resp := v.get(v.client("HTTP/1.1"), "/"); resp.Header.Get("Alt-Svc") != "" {
			t.Errorf("%s: Alt-Svc %q", name, resp.Header.Get("Alt-Svc"))
		}
		if s.NoHTTP3 && len(v.Stats().UDP) != 0 {
			t.Error("UDP is served without HTTP/3")
		}
	}
}

// Bodies of several MiB, both ways at once.
func TestServerBodies(t *testing.T) {
	t.Parallel()
	v := serve(t, &Server{}, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		_, _ = io.Copy(w, r.Body)
	})
	body := make([]byte, 5<<20+1)
	_, _ = rand.Read(body)
	want := sha256.Sum256(body)
	var all sync.WaitGroup
	defer all.Wait()
	for _, version := range versions {
		c := v.client(version)
		all.Go(func() {
			resp, err := c.Post("https://"+v.addr, "application/octet-stream", bytes.NewReader(body))
			if err != nil {
				t.Error(version, err)
				return
			}
			defer resp.Body.Close()
			sum := sha256.New()
			if n, err := io.Copy(sum, resp.Body); err != nil || n != int64(len(body)) || [32]byte(sum.Sum(nil)) != want {
				t.Errorf("%s: %d bytes of %d came back, and %v", version, n, len(body), err)
			}
		})
	}
}

// "One that panics costs its own request: the others of its connection go on, over HTTP/2 and 3."
func TestServerPanic(t *testing.T) {
	t.Parallel()
	var log syncBuffer
	entered, leave := make(chan struct{}, len(versions)), make(chan struct{})
	v := serve(t, &Server{Logger: log.logger()}, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/panic":
			panic("oops")
		case "/abort":
			panic(http.ErrAbortHandler)
		case "/wait":
			entered <- struct{}{}
			<-leave
		}
		hello(w, r)
	})
	for _, version := range versions {
		c := v.client(version)
		waits := make(chan string, 1)
		go func() {
			body, _, err := v.tryGet(c, "/wait")
			waits <- fmt.Sprint(body, err)
		}()
		<-entered
		for _, path := range []string{"/panic", "/abort"} {
			if body, _, err := v.tryGet(c, path); err == nil {
				t.Errorf("%s %s: answered %q", version, path, body)
			}
		}
		leave <- struct{}{}
		if got := <-waits; got != "hello "+version+"<nil>" {
			t.Errorf("%s: the other request got %s", version, got)
		}
		if body, _ := v.get(c, "/"); body != "hello "+version {
			t.Errorf("%s: then %q", version, body)
		}
	}
	st := v.Stats()
	// A client may go over to another connection afterwards, or try once more: what counts is that none was closed.
	if st.HTTP2.Conns != 1 || st.HTTP3.Open != int(st.HTTP3.Conns) || st.Panics < 3 {
		t.Errorf("Stats: %+v", st)
	}
	if n := strings.Count(log.String(), "oops"); uint64(n) != st.Panics || !strings.Contains(log.String(), "level=ERROR") {
		t.Errorf("%d panics in the log, of %d:\n%s", n, st.Panics, &log)
	}
}

func TestServerConfig(t *testing.T) {
	t.Parallel()
	cert := []tls.Certificate{testCert()}
	for name, tt := range map[string]struct {
		s    *Server
		want error
	}{
		"no TLSConfig":   {&Server{}, errNoCertificate},
		"no certificate": {&Server{TLSConfig: &tls.Config{}}, errNoCertificate},
		"no TLS 1.3":     {&Server{TLSConfig: &tls.Config{Certificates: cert, MaxVersion: tls.VersionTLS12}}, errNoTLS13},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.s.Addr = "127.0.0.1:0"
			if err := tt.s.ListenAndServe(); !errors.Is(err, tt.want) {
				t.Errorf("ListenAndServe: %v", err)
			}
			tcp, udp, err := Listen(t.Context(), tt.s.Addr, dgram.Config{})
			if err != nil {
				t.Fatal(err)
			}
			if err := tt.s.Serve(tcp, udp); !errors.Is(err, tt.want) {
				t.Errorf("Serve: %v", err)
			}
			if _, err := tcp.Accept(); !errors.Is(err, net.ErrClosed) {
				t.Errorf("Serve left the listener open: %v", err)
			}
			if _, err := udp.WriteTo(nil, udp.LocalAddr()); !errors.Is(err, net.ErrClosed) {
				t.Errorf("Serve left the socket open: %v", err)
			}
		})
	}
	if err := (&Server{}).Serve(nil, nil); !errors.Is(err, errNoListener) {
		t.Errorf("Serve without a listener: %v", err)
	}
}

// TLSConfig is cloned, its other protocols stay, and GetConfigForClient is asked for both.
func TestServerTLSConfig(t *testing.T) {
	t.Parallel()
	theirs := &tls.Config{Certificates: []tls.Certificate{testCert()}, NextProtos: []string{"h3", "acme-tls/1"}}
	mine := &tls.Config{
		NextProtos:         []string{"http/1.1", "acme-tls/1"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return theirs, nil },
	}
	second := &Server{Handler: http.HandlerFunc(hello), TLSConfig: mine}
	tcp, udp, err := Listen(t.Context(), "127.0.0.1:0", dgram.Config{})
	if err != nil {
		t.Fatal(err)
	}
	v := serveOn(t, second, tcp, udp)
	for _, version := range versions {
		if body, _ := v.get(v.client(version), "/"); body != "hello "+version {
			t.Errorf("%s: %q", version, body)
		}
	}
	for proto, want := range map[string]bool{"acme-tls/1": true, "h3": false} {
		c, err := tls.Dial("tcp", v.addr, servingClientTLS(proto))
		if (err == nil) != want {
			t.Errorf("%s by TCP: %v", proto, err)
		}
		if err == nil {
			_ = c.Close()
		}
	}
	if !slices.Equal(mine.NextProtos, []string{"http/1.1", "acme-tls/1"}) || mine.MinVersion != 0 {
		t.Errorf("the TLSConfig was changed: %q", mine.NextProtos)
	}
	if !slices.Equal(theirs.NextProtos, []string{"h3", "acme-tls/1"}) || theirs.MinVersion != 0 {
		t.Errorf("what GetConfigForClient returned was changed: %q", theirs.NextProtos)
	}
	old := servingClientTLS()
	old.MaxVersion = tls.VersionTLS11
	old.MinVersion = tls.VersionTLS10
	if c, err := tls.Dial("tcp", v.addr, old); err == nil {
		_ = c.Close()
		t.Error("TLS 1.1 is spoken")
	}
}

// "One of its functions that panics fails the handshake that it was asked for."
func TestServerTLSPanic(t *testing.T) {
	t.Parallel()
	panicFor := func(hello *tls.ClientHelloInfo, name string) {
		if hello.ServerName == name {
			panic("oops")
		}
	}
	var log syncBuffer
	s := &Server{Handler: http.HandlerFunc(hello), Logger: log.logger(), TLSConfig: &tls.Config{
		GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			panicFor(h, "config.test")
			return &tls.Config{
				GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
					panicFor(h, "certificate.test")
					c := testCert()
					return &c, nil
				},
				VerifyConnection: func(st tls.ConnectionState) error {
					panicFor(&tls.ClientHelloInfo{ServerName: st.ServerName}, "connection.test")
					return nil
				},
			}, nil
		},
	}}
	tcp, udp, err := Listen(t.Context(), "127.0.0.1:0", dgram.Config{})
	if err != nil {
		t.Fatal(err)
	}
	v := serveOn(t, s, tcp, udp)
	for i, name := range []string{"config.test", "certificate.test", "connection.test"} {
		config := servingClientTLS("h3", "h2")
		config.ServerName, config.InsecureSkipVerify = name, true
		if c, err := tls.Dial("tcp", v.addr, config); err == nil {
			_, err = c.Read(make([]byte, 1)) // TLS 1.3 tells a client of it behind its handshake
			_ = c.Close()
			if err == nil {
				t.Errorf("%s: TCP connects", name)
			}
		}
		if c, err := quic.DialAddr(t.Context(), v.addr, config, nil); err == nil {
			<-c.Context().Done()
		}
		if n := strings.Count(log.String(), "panic=oops"); n != 2*(i+1) {
			t.Errorf("%s: %d panics in the log", name, n)
		}
	}
	for _, version := range versions {
		v.get(v.client(version), "/")
	}
}

type contextKey struct{}

func TestServerConnContext(t *testing.T) {
	t.Parallel()
	v := serve(t, &Server{ConnContext: func(ctx context.Context, local, remote net.Addr) context.Context {
		return context.WithValue(ctx, contextKey{}, local.String()+" "+remote.String())
	}}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Context().Value(contextKey{}).(string)+" "+r.RemoteAddr)
	})
	for _, version := range versions {
		body, _ := v.get(v.client(version), "/")
		local, remote, _ := strings.Cut(body, " ")
		one, two, _ := strings.Cut(remote, " ")
		if local != v.addr || one != two || !strings.HasPrefix(one, "127.0.0.1:") {
			t.Errorf("%s: %q", version, body)
		}
	}
}

// One Server serves several addresses, each with its own Alt-Svc, and stops as one.
func TestServerSeveral(t *testing.T) {
	t.Parallel()
	var s Server
	v := serve(t, &s, hello)
	tcp, udp, err := Listen(t.Context(), "127.0.0.1:0", dgram.Config{})
	if err != nil {
		t.Fatal(err)
	}
	w := serveOn(t, &s, tcp, udp)
	eventually(t, "both addresses", func() bool { return len(s.Stats().UDP) == 2 })
	for _, x := range []*serving{v, w} {
		_, port, _ := net.SplitHostPort(x.addr)
		if _, resp := x.get(x.client("HTTP/2.0"), "/"); !strings.Contains(resp.Header.Get("Alt-Svc"), port) {
			t.Errorf("%s: Alt-Svc %q", x.addr, resp.Header.Get("Alt-Svc"))
		}
		x.get(x.client("HTTP/3.0"), "/")
	}
	if st := s.Stats(); st.HTTP2.Requests != 2 || st.HTTP3.Requests != 2 {
		t.Errorf("Stats: %+v", st)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// Whatever breaks of the two, Serve says so, and leaves nothing open.
func TestServerBreaks(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"TCP", "UDP"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			tcp, udp, err := Listen(t.Context(), "127.0.0.1:0", dgram.Config{})
			if err != nil {
				t.Fatal(err)
			}
			s := &Server{Handler: http.HandlerFunc(hello), TLSConfig: &tls.Config{Certificates: []tls.Certificate{testCert()}}}
			result := make(chan error, 1)
			go func() { result <- s.Serve(tcp, udp) }()
			v := &serving{Server: s, t: t, addr: tcp.Addr().String()}
			v.get(v.client("HTTP/3.0"), "/")
			if what == "TCP" {
				_ = tcp.Close()
			} else {
				_ = udp.Close()
			}
			if err := <-result; err == nil || !strings.Contains(err.Error(), what) {
				t.Errorf("Serve: %v", err)
			}
			if _, err := tcp.Accept(); !errors.Is(err, net.ErrClosed) {
				t.Errorf("TCP: %v", err)
			}
			if _, err := udp.WriteTo(nil, udp.LocalAddr()); !errors.Is(err, net.ErrClosed) {
				t.Errorf("UDP: %v", err)
			}
			if s.LocalAddr() != nil {
				t.Error("it still has an address")
			}
		})
	}
}
