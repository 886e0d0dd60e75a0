package dgram

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/weirnet/weir/fault"
)

const (
	loopback4 = "127.0.0.1:0"
	loopback6 = "[::1]:0"
)

// patience is what a test waits for what has to come, on a busy machine.
const patience = 20 * time.Second

// silence is what it waits for what must not.
const silence = 50 * time.Millisecond

func listen(t testing.TB, address string, cfg Config) *Conn {
	t.Helper()
	c, err := Listen(t.Context(), "udp", address, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func dial(t testing.TB, to net.Addr, cfg Config) *Conn {
	t.Helper()
	c, err := Dial(t.Context(), "udp", to.String(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// pair is two that have each other for a peer.
func pair(t testing.TB, cfg Config) (a, b *Conn) {
	t.Helper()
	a, b, err := connectPair(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = a.Close(), b.Close() })
	return a, b
}

func connectPair(cfg Config) (a, b *Conn, err error) {
	var socks [2]*net.UDPConn
	for i := range socks {
		if socks[i], err = net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}); err != nil {
			return nil, nil, err
		}
	}
	var conns [2]*Conn
	for i, s := range socks {
		own := s.LocalAddr().(*net.UDPAddr)
		_ = s.Close()
		to := socks[1-i].LocalAddr().(*net.UDPAddr)
		s, err := net.DialUDP("udp", own, to)
		if err != nil {
			return nil, nil, err
		}
		if conns[i], err = Wrap(s, cfg); err != nil {
			_ = s.Close()
			return nil, nil, err
		}
	}
	return conns[0], conns[1], nil
}

func stdListen(t testing.TB, network, address string) *net.UDPConn {
	t.Helper()
	c, err := net.ListenPacket(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.(*net.UDPConn)
}

func needIPv6(t testing.TB) {
	t.Helper()
	c, err := net.ListenPacket("udp6", loopback6)
	if err != nil {
		t.Skip("no IPv6: ", err)
	}
	_ = c.Close()
}

func addrOf(c net.PacketConn) netip.AddrPort {
	return c.LocalAddr().(*net.UDPAddr).AddrPort()
}

// addrOfPort is an address with the port of a Conn.
func addrOfPort(ip string, c *Conn) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr(ip), addrOf(c).Port())
}

func plan(t testing.TB, text string) fault.Plan {
	t.Helper()
	p, err := fault.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func send(t testing.TB, c *Conn, payload string, to netip.AddrPort) {
	t.Helper()
	if n, err := c.WriteToUDPAddrPort([]byte(payload), to); n != len(payload) || err != nil {
		t.Fatalf("wrote %d of %d bytes: %v", n, len(payload), err)
	}
}

type reader interface {
	ReadFromUDPAddrPort(b []byte) (int, netip.AddrPort, error)
	SetReadDeadline(t time.Time) error
}

// next is the next datagram, which has to come.
func next(t testing.TB, c reader) (string, netip.AddrPort) {
	t.Helper()
	must(t, c.SetReadDeadline(time.Now().Add(patience)))
	b := make([]byte, 1<<16)
	n, from, err := c.ReadFromUDPAddrPort(b)
	if err != nil {
		t.Fatal(err)
	}
	must(t, c.SetReadDeadline(time.Time{}))
	return string(b[:n]), from
}

func wantNext(t testing.TB, c reader, want ...string) {
	t.Helper()
	for i, w := range want {
		if got, _ := next(t, c); got != w {
			t.Fatalf("datagram %d is %.40q (%d bytes), want %.40q (%d)", i, got, len(got), w, len(w))
		}
	}
}

// wantSilence has nothing come.
func wantSilence(t testing.TB, c reader) {
	t.Helper()
	must(t, c.SetReadDeadline(time.Now().Add(silence)))
	n, from, err := c.ReadFromUDPAddrPort(make([]byte, 1<<16))
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("%d bytes from %v, %v; want nothing", n, from, err)
	}
	must(t, c.SetReadDeadline(time.Time{}))
}

// eventually waits for what another goroutine does.
func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not happen: ", what)
		}
	}
}

// within fails the test where f does not return.
func within(t testing.TB, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("it does not return: ", what)
	}
}
