package weirtls

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/weirnet/weir"
)

// TestStartTLSTwice: a connection is TLS's once.
func TestStartTLSTwice(t *testing.T) {
	t.Parallel()
	inMemory(t, weir.Config{}, func(t *testing.T, p *place) {
		cfg := Config{TLS: serverTLS(0)}
		second, closed := make(chan error, 1), make(chan struct{})
		at := p.serve(cfg, weir.ConnConfig{}, Handler{
			OnHandshake: func(c *Conn, _ tls.ConnectionState) {
				_, err := StartTLS(c.Raw(), AsServer, nil, cfg, Handler{})
				second <- err
				_ = c.Close()
			},
			OnClose: func(*Conn, error) { close(closed) },
		})
		c := tls.Client(p.dial(at), clientTLS(0))
		_ = c.Handshake()
		if err := <-second; !errors.Is(err, errTwice) {
			t.Errorf("the second is answered %v", err)
		}
		_ = c.Close()
		<-closed
	})
}

// TestStartErrors: what cannot be begun is answered at once, and says what is wrong.
func TestStartErrors(t *testing.T) {
	t.Parallel()
	l, err := weir.New(weir.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	listen := func(cfg *tls.Config) error {
		_, err := Listen(l, loopback, Config{TLS: cfg}, weir.ListenerConfig{}, ListenerHandler{})
		return err
	}
	dial := func(address string, cfg *tls.Config) error {
		_, err := Dial(l, "tcp", address, Config{TLS: cfg}, weir.ConnConfig{}, Handler{})
		return err
	}
	for _, row := range []struct {
		name, want string
		err        error
	}{
		{"server without a certificate", "certificate", listen(&tls.Config{})},
		{"server without anything", "certificate", listen(nil)},
		{"renegotiation", "Renegotiation", dial("127.0.0.1:1", &tls.Config{Renegotiation: tls.RenegotiateOnceAsClient})}, // weir:port nobody is asked
		{"no port", "missing port", dial("nonsense", nil)},
		{"role", "role(7)", func() error { _, err := Config{}.resolve(7, Handler{}); return err }()},
		{"client without a name", "ServerName", func() error { _, err := Config{}.resolve(AsClient, Handler{}); return err }()},
	} {
		if row.err == nil || !strings.Contains(row.err.Error(), row.want) {
			t.Errorf("%s: %v, want something with %q", row.name, row.err, row.want)
		}
	}
}

// TestConnOf holds "the connection that a callback of Config.TLS is about, by ClientHelloInfo.Conn".
func TestConnOf(t *testing.T) {
	t.Parallel()
	for _, blocking := range []bool{false, true} {
		inMemory(t, weir.Config{}, func(t *testing.T, p *place) {
			told := make(chan any, 1)
			cfg := serverTLS(0)
			cfg.GetConfigForClient = func(h *tls.ClientHelloInfo) (*tls.Config, error) {
				if h.Conn.RemoteAddr().(*net.TCPAddr).Port == 0 || h.Conn.LocalAddr().(*net.TCPAddr).Port == 0 {
					t.Error("the connection has no addresses")
				}
				c, ok := ConnOf(h.Conn)
				if !ok {
					t.Error("it has no Conn")
				}
				told <- c.Data
				return nil, nil
			}
			at := p.serve(Config{TLS: cfg, Blocking: blocking}, weir.ConnConfig{}, Handler{OnOpen: func(c *Conn) { c.Data = "mine" }})
			c := tls.Client(p.dial(at), clientTLS(0))
			if err := c.Handshake(); err != nil {
				t.Error(err)
			}
			if got := <-told; got != "mine" {
				t.Errorf("its Data is %v", got)
			}
			_ = c.Close()
		})
	}
	if _, ok := ConnOf(nil); ok {
		t.Error("nothing has a Conn")
	}
}

// TestHalfCloseOfOld holds "a peer may end at once, too, instead of answering": one of the standard library answers.
func TestHalfCloseOfOld(t *testing.T) {
	t.Parallel()
	onEachKernel(t, weir.Config{}, func(t *testing.T, p *place) {
		to, accept := p.listen()
		go func() {
			c := stdConn(AsServer, accept(), serverTLS(tls.VersionTLS12))
			b, _ := io.ReadAll(c)
			_, _ = c.Write(append([]byte("you said "), b...))
			_ = c.Close()
		}()
		var got []byte
		closed := make(chan error, 1)
		p.call(to, Config{TLS: clientTLS(0)}, weir.ConnConfig{}, Handler{
			OnHandshake: func(c *Conn, _ tls.ConnectionState) {
				_, _ = c.Write([]byte("hello"))
				_ = c.CloseWrite()
			},
			OnData:  func(_ *Conn, b []byte) { got = append(got, b...) },
			OnClose: func(_ *Conn, err error) { closed <- err },
		})
		if err := <-closed; err != nil || string(got) != "you said hello" {
			t.Errorf("%q, %v", got, err)
		}
	})
}
