package weirtest_test

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/weirnet/weir"
	"github.com/weirnet/weir/fault"
	"github.com/weirnet/weir/weirtest"
)

// EchoServer is what is to be tested.
func EchoServer(l *weir.Loop, addr string) (*weir.UDP, error) {
	return l.ListenUDP(netip.MustParseAddrPort(addr), weir.UDPConfig{}, weir.UDPHandler{
		OnDatagram: func(u *weir.UDP, d *weir.Datagram) { _ = u.Reply(d, d.Payload) },
	})
}

// An echo server and its client in memory, where the first answer is lost on the way. The client asks again after
// ten milliseconds.
func Example() {
	plan, err := fault.Parse("send#2=drop")
	if err != nil {
		panic(err)
	}
	network := weirtest.NewNetwork()
	loop, err := weir.New(weir.Config{Kernel: network.Kernel(), Faults: plan})
	if err != nil {
		panic(err)
	}
	server, err := EchoServer(loop, "127.0.0.1:53") // weir:port in memory
	if err != nil {
		panic(err)
	}
	client, err := loop.DialUDP(netip.AddrPort{}, server.LocalAddr(), weir.UDPConfig{}, weir.UDPHandler{
		OnDatagram: func(_ *weir.UDP, d *weir.Datagram) {
			fmt.Printf("%s\n", d.Payload)
			_ = loop.Close()
		},
	})
	if err != nil {
		panic(err)
	}
	asked := 0
	ask := func() {
		asked++
		_ = client.Send(fmt.Appendf(nil, "question %d", asked), netip.AddrPort{})
	}
	ask()
	loop.Every(10*time.Millisecond, ask)
	if err := loop.Run(context.Background()); err != nil {
		panic(err)
	}
	fmt.Println(loop.Faults().Dropped(), "datagram dropped")
	// Output:
	// question 2
	// 1 datagram dropped
}

// The echo server with each call failing in turn, as a test of its package has it.
func ExampleSweep() {
	test := func(t *testing.T) { // TestEchoServerSurvives
		weirtest.Sweep(t, weirtest.Scenario{
			Setup: func(l *weir.Loop) (func(error) error, error) {
				balance, broken := weirtest.Balance{}, false
				server, err := EchoServer(l, "127.0.0.1:0")
				if err != nil {
					return nil, err
				}
				client, err := l.DialUDP(netip.AddrPort{}, server.LocalAddr(), weir.UDPConfig{}, weir.UDPHandler{
					OnDatagram: func(*weir.UDP, *weir.Datagram) { balance.Delivered++ },
					OnClose:    func(_ *weir.UDP, err error) { broken = err != nil },
				})
				if err != nil {
					return nil, err
				}
				for range 20 {
					if client.Send([]byte("ping"), netip.AddrPort{}) == nil {
						balance.Accepted++
					}
				}
				return func(ended error) error {
					if balance.Stats = client.Stats(); ended != nil || broken {
						return nil // the fault has ended it, as it may
					}
					return balance.Check()
				}, nil
			},
		})
	}
	_ = test
	// Output:
}

// A stream echo server with each call failing in turn: what its clients wrote is read, or counted as not sent.
func ExampleStreamBalance() {
	test := func(t *testing.T) { // TestEchoSurvives
		weirtest.Sweep(t, weirtest.Scenario{
			Setup: func(l *weir.Loop) (func(error) error, error) {
				balance, broken := weirtest.StreamBalance{}, false
				write := func(c *weir.Conn, b []byte) {
					n, _ := c.Write(b)
					balance.Accepted += n
				}
				onClose := func(_ *weir.Conn, err error) { broken = broken || err != nil }
				ln, err := l.ListenTCP(netip.MustParseAddrPort("127.0.0.1:0"), weir.ListenerConfig{}, weir.ListenerHandler{
					OnError: func(*weir.Listener, error) { broken = true },
					OnClose: func(_ *weir.Listener, err error) { broken = broken || err != nil },
					Conn: weir.ConnHandler{
						OnData:  func(c *weir.Conn, b []byte) { balance.Delivered += len(b); write(c, b) },
						OnClose: onClose,
					},
				})
				if err != nil {
					return nil, err
				}
				client, err := l.DialTCP(netip.AddrPort{}, ln.Addr(), weir.ConnConfig{}, weir.ConnHandler{
					OnData:  func(c *weir.Conn, b []byte) { balance.Delivered += len(b); _ = c.Close() },
					OnClose: onClose,
				})
				if err != nil {
					return nil, err
				}
				write(client, []byte("ping"))
				return func(ended error) error {
					if balance.Stats = l.Stats().Streams; ended != nil || broken {
						return balance.Check() // the fault has ended a connection, as it may
					}
					return balance.CheckClosed()
				}, nil
			},
		})
	}
	_ = test
	// Output:
}
