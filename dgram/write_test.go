package dgram

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/net/ipv4"
)

// TestWriteSizes: the largest datagrams go, and those that are larger are EMSGSIZE, as the kernel has it.
func TestWriteSizes(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, from, to string
		most           int
	}{
		{"IPv4", loopback4, loopback4, 65_507},
		{"IPv6", loopback6, loopback6, 65_527},
		{"IPv4 over IPv6", "[::]:0", loopback4, 65_507},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if row.from != loopback4 {
				needIPv6(t)
			}
			c, peer := listen(t, row.from, Config{}), listen(t, row.to, Config{})
			largest := strings.Repeat("x", row.most)
			send(t, c, largest, addrOf(peer))
			wantNext(t, peer, largest)
			n, err := c.WriteToUDPAddrPort(make([]byte, row.most+1), addrOf(peer))
			var call *os.SyscallError
			if n != 0 || !errors.Is(err, syscall.EMSGSIZE) || !errors.As(err, &call) || call.Syscall != "sendmsg" {
				t.Errorf("%d, %v", n, err)
			}
			if s := c.Stats(); s.Sent != 1 || s.SentBytes != uint64(row.most) || s.SendCalls != 1 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestWriteErrors: what the caller did wrong is an error, which tells the operation and the address.
func TestWriteErrors(t *testing.T) {
	t.Parallel()
	c := listen(t, loopback4, Config{})
	d := dial(t, c.LocalAddr(), Config{})
	to := c.LocalAddr().(*net.UDPAddr)
	for _, row := range []struct {
		name string
		call func() error
		want error
	}{
		{"no peer", func() error { _, err := c.Write(nil); return err }, syscall.EDESTADDRREQ},
		{"no address", func() error { _, err := c.WriteTo(nil, (*net.UDPAddr)(nil)); return err }, errNoAddress},
		{"no address, with control", func() error { _, _, err := c.WriteMsgUDP(nil, nil, nil); return err }, errNoAddress},
		{"port 0", func() error { _, err := c.WriteTo(nil, &net.UDPAddr{IP: to.IP}); return err }, errNoPort},
		{"a port below", func() error { _, err := c.WriteTo(nil, &net.UDPAddr{IP: to.IP, Port: -1}); return err }, syscall.EINVAL},
		{"a port beyond", func() error {
			_, _, err := c.WriteMsgUDP(nil, nil, &net.UDPAddr{IP: to.IP, Port: 1<<16 + to.Port})
			return err
		}, syscall.EINVAL},
		{"a port beyond, in a batch", func() error {
			_, err := c.WriteBatch([]ipv4.Message{{Addr: &net.UDPAddr{IP: to.IP, Port: 1<<16 + to.Port}}}, 0)
			return err
		}, syscall.EINVAL},
		{"a TCP address", func() error { _, err := c.WriteTo(nil, &net.TCPAddr{}); return err }, syscall.EINVAL},
		{"nil", func() error { _, err := c.WriteTo(nil, nil); return err }, syscall.EINVAL},
		{"the other family", func() error { _, err := c.WriteToUDP(nil, &net.UDPAddr{IP: net.IPv6loopback, Port: 9}); return err }, syscall.EAFNOSUPPORT}, // weir:port refused
		{"a peer", func() error { _, err := d.WriteToUDP(nil, to); return err }, net.ErrWriteToConnected},
		{"a peer, with control", func() error { _, _, err := d.WriteMsgUDPAddrPort(nil, nil, addrOf(c)); return err }, net.ErrWriteToConnected},
		{"a peer and no address", func() error { _, err := d.WriteToUDPAddrPort(nil, netip.AddrPort{}); return err }, net.ErrWriteToConnected},
		{"nothing to wrap", func() error { _, err := Wrap(nil, Config{}); return err }, syscall.EINVAL},
		{"a buffer of nothing", func() error { return c.SetReadBuffer(0) }, syscall.EINVAL},
		{"a buffer of less", func() error { return c.SetWriteBuffer(-1) }, syscall.EINVAL},
	} {
		err := row.call()
		var op *net.OpError
		if !errors.Is(err, row.want) || !errors.As(err, &op) || op.Net != "udp" {
			t.Errorf("%s: %v; want %v", row.name, err, row.want)
		}
	}
	if s := c.Stats(); s.SendCalls != 0 || s.SendLost != 0 {
		t.Errorf("%+v", s)
	}
}

// TestWriteUnspecified: the unspecified address is this machine, as package net has it.
func TestWriteUnspecified(t *testing.T) {
	t.Parallel()
	needIPv6(t)
	for _, local := range []string{"0.0.0.0:0", "[::]:0"} {
		c := listen(t, local, Config{})
		port := int(addrOf(c).Port())
		for _, to := range []*net.UDPAddr{{Port: port}, {IP: net.IPv4zero, Port: port}} {
			if _, err := c.WriteToUDP([]byte("x"), to); err != nil {
				t.Errorf("from %s to %v: %v", local, to, err)
				continue
			}
			wantNext(t, c, "x")
		}
	}
}

// TestWriteKeepsNothing: "b is the caller's again when Write returns".
func TestWriteKeepsNothing(t *testing.T) {
	t.Parallel()
	c, peer := listen(t, loopback4, Config{}), listen(t, loopback4, Config{})
	b := []byte("0")
	for i := range 10 {
		b[0] = byte('0' + i)
		if _, err := c.WriteTo(b, peer.LocalAddr()); err != nil {
			t.Fatal(err)
		}
		b[0] = 'x'
	}
	for i := range 10 {
		wantNext(t, peer, string(rune('0'+i)))
	}
	s := c.send.singles.Get().(*sender)
	if m := &s.batch.Msgs[0]; m.Buf != nil || m.Raw != nil {
		t.Error("a sender that rests holds a payload")
	}
}
