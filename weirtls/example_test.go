package weirtls_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"log"
	"net/netip"

	"github.com/weirnet/weir"
	"github.com/weirnet/weir/weirtls"
)

// An echo server over TLS.
func Example() {
	certificate, err := tls.LoadX509KeyPair("cert.pem", "key.pem")
	if err != nil {
		log.Print(err)
		return
	}
	loop, err := weir.New(weir.Config{})
	if err != nil {
		log.Fatal(err)
	}
	cfg := weirtls.Config{TLS: &tls.Config{Certificates: []tls.Certificate{certificate}}}
	_, err = weirtls.Listen(loop, netip.MustParseAddrPort("127.0.0.1:9443"), cfg, weir.ListenerConfig{}, // weir:port as in the text
		weirtls.ListenerHandler{Conn: weirtls.Handler{
			OnData: func(c *weirtls.Conn, b []byte) {
				if _, err := c.Write(b); err != nil { // the client reads too slowly: see OnDrain and Pause
					_ = c.Reset()
				}
			},
			OnClose: func(c *weirtls.Conn, err error) {
				if err != nil {
					log.Print(c, ": ", err) // a handshake that failed, a client that did not say farewell
				}
			},
		}})
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(loop.Run(context.Background()))
}

// A connection that begins without TLS, as mail's and databases' do: the client asks for it by a line.
func ExampleStartTLS() {
	cfg := weirtls.Config{TLS: &tls.Config{GetCertificate: certificateFor}}
	encrypted := weirtls.Handler{
		OnData: func(c *weirtls.Conn, b []byte) { _, _ = c.Write(b) },
	}
	plain := weir.ConnHandler{
		OnData: func(c *weir.Conn, b []byte) {
			rest, asked := bytes.CutPrefix(b, []byte("STARTTLS\r\n"))
			if !asked {
				_, _ = c.Write([]byte("500 say STARTTLS\r\n"))
				return
			}
			_, _ = c.Write([]byte("220 go ahead\r\n"))
			if _, err := weirtls.StartTLS(c, weirtls.AsServer, rest, cfg, encrypted); err != nil {
				log.Print(err)
				_ = c.Close()
			}
		},
	}
	_ = plain // for Loop.ListenTCP
}

func certificateFor(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, nil }
