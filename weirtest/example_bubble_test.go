package weirtest_test

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirnet/weir"
	"github.com/weirnet/weir/weirtest"
)

// A server that gives up a quiet client after an hour: in a bubble the hour is over at once, and exactly.
func ExampleNetwork() {
	test := func(t *testing.T) { // TestQuietClient
		synctest.Test(t, func(t *testing.T) {
			loop, err := weir.New(weir.Config{Kernel: weirtest.NewNetwork().Kernel()}) // in the bubble
			if err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			server, err := loop.ListenTCP(netip.MustParseAddrPort("127.0.0.1:0"),
				weir.ListenerConfig{Conn: weir.ConnConfig{IdleTimeout: time.Hour}},
				weir.ListenerHandler{Conn: weir.ConnHandler{
					OnClose: func(_ *weir.Conn, err error) {
						if after := time.Since(begin); after != time.Hour || !errors.Is(err, weir.ErrTimeout) {
							t.Errorf("closed after %v with %v, want a timeout after an hour", after, err)
						}
						loop.Stop(-1)
					},
				}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := loop.DialTCP(netip.AddrPort{}, server.Addr(), weir.ConnConfig{}, weir.ConnHandler{}); err != nil {
				t.Fatal(err)
			}
			if err := loop.Run(context.Background()); err != nil {
				t.Fatal(err)
			}
		})
	}
	_ = test
	// Output:
}
