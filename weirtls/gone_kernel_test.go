package weirtls_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/weirnet/weir"
	"github.com/weirnet/weir/weirtls"
)

// TestGoneAfterEnd has a peer go away after its close_notify, which a write is the first to find out.
func TestGoneAfterEnd(t *testing.T) {
	l, err := weir.New(weir.Config{})
	if err != nil {
		t.Fatal(err)
	}
	closed := false
	cfg := weirtls.Config{TLS: &tls.Config{Certificates: []tls.Certificate{certificate()}}}
	ln, err := weirtls.Listen(l, netip.MustParseAddrPort("127.0.0.1:0"), cfg, weir.ListenerConfig{}, weirtls.ListenerHandler{
		Conn: weirtls.Handler{
			OnEnd: func(c *weirtls.Conn) {
				l.AfterFunc(100*time.Millisecond, func() { // the peer has closed its socket
					for range 2 {
						_, _ = c.Write([]byte("is anybody there"))
						c.Raw().Flush()
						time.Sleep(20 * time.Millisecond) // the first is answered by a reset, the second fails
					}
				})
			},
			OnClose: func(_ *weirtls.Conn, err error) {
				closed = err != weir.ErrClosed
				_ = l.Close()
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	l.AfterFunc(5*time.Second, func() { _ = l.Close() })
	go func() {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		s := tls.Client(c, &tls.Config{InsecureSkipVerify: true})
		_ = s.Handshake()
		_ = s.CloseWrite()
		_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		_, _ = io.Copy(io.Discard, c) // unread tickets would have the close be a reset
		_ = s.Close()
	}()
	_ = l.Run(context.Background())
	if !closed {
		t.Error("OnClose has not told that the peer is gone")
	}
}
