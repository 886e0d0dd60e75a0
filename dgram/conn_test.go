package dgram

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirnet/weir/fault"
)

// udpConn is what a Conn and its oracle have in common.
type udpConn interface {
	net.PacketConn
	net.Conn
	syscall.Conn
	ReadFromUDP(b []byte) (int, *net.UDPAddr, error)
	ReadFromUDPAddrPort(b []byte) (int, netip.AddrPort, error)
	ReadMsgUDP(b, oob []byte) (n, oobn, flags int, from *net.UDPAddr, err error)
	ReadMsgUDPAddrPort(b, oob []byte) (n, oobn, flags int, from netip.AddrPort, err error)
	WriteToUDP(b []byte, to *net.UDPAddr) (int, error)
	WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error)
	WriteMsgUDP(b, oob []byte, to *net.UDPAddr) (n, oobn int, err error)
	WriteMsgUDPAddrPort(b, oob []byte, to netip.AddrPort) (n, oobn int, err error)
	SetReadBuffer(bytes int) error
	SetWriteBuffer(bytes int) error
}

var (
	_ udpConn = (*Conn)(nil)
	_ udpConn = (*net.UDPConn)(nil)
)

// TestMethods: a Conn has the methods of a *net.UDPConn, but File, as whoever reads a duplicate gets what is not for him.
func TestMethods(t *testing.T) {
	t.Parallel()
	have := reflect.TypeFor[*Conn]()
	for std := range reflect.TypeFor[*net.UDPConn]().Methods() {
		m, ok := have.MethodByName(std.Name)
		if std.Name == "File" || std.Name == "MultipathTCP" {
			continue
		}
		if !ok || m.Type.NumIn() != std.Type.NumIn() || m.Type.NumOut() != std.Type.NumOut() {
			t.Errorf("%s %v: the Conn has %v", std.Name, std.Type, m.Type)
		}
	}
}

// story has one socket do everything that the interface has, and writes down what came of it.
type story struct {
	t     *testing.T
	conn  udpConn
	other *net.UDPConn
	lines []string
}

func (s *story) tell(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	for name, a := range map[string]net.Addr{"other": s.other.LocalAddr(), "own": s.conn.LocalAddr()} {
		line = strings.ReplaceAll(line, fmt.Sprint(a.(*net.UDPAddr).Port), name)
	}
	s.lines = append(s.lines, line)
}

// reasonOf is an error as far as both have to agree on it.
func reasonOf(err error) string {
	if err == nil {
		return "no error"
	}
	var op *net.OpError
	if !errors.As(err, &op) {
		return "no OpError: " + err.Error()
	}
	where := fmt.Sprintf("%s by %v", op.Op, op.Source)
	for _, known := range []error{
		os.ErrDeadlineExceeded, net.ErrClosed, net.ErrWriteToConnected, syscall.EMSGSIZE, syscall.EDESTADDRREQ, syscall.EINVAL,
	} {
		if errors.Is(err, known) {
			return where + ": " + known.Error()
		}
	}
	return where + ": another error"
}

func plainAddr(a any) string {
	switch a := a.(type) {
	case *net.UDPAddr:
		if a == nil {
			return "nobody"
		}
		return netip.AddrPortFrom(a.AddrPort().Addr().Unmap(), uint16(a.Port)).String()
	case netip.AddrPort:
		return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()).String()
	case nil:
		return "nobody"
	}
	return fmt.Sprintf("a %T", a)
}

// toOther is the other socket's address; of the right family, as plain or mapped.
func (s *story) toOther() *net.UDPAddr { return s.other.LocalAddr().(*net.UDPAddr) }

func (s *story) fromOther(payload string) {
	s.t.Helper()
	to := s.conn.LocalAddr().(*net.UDPAddr)
	ip := to.IP
	if ip.IsUnspecified() {
		ip = s.toOther().IP
	}
	if _, err := s.other.WriteToUDP([]byte(payload), &net.UDPAddr{IP: ip, Port: to.Port}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *story) reads() {
	b := make([]byte, 8)
	for _, payload := range []string{"", "12345678", "123456789", "1"} {
		s.fromOther(payload)
		n, err := s.conn.Read(b)
		s.tell("Read %q %v", b[:n], reasonOf(err))
		s.fromOther(payload)
		n, from, err := s.conn.ReadFrom(b)
		s.tell("ReadFrom %q %v %v", b[:n], plainAddr(from), reasonOf(err))
		s.fromOther(payload)
		n, udp, err := s.conn.ReadFromUDP(b)
		s.tell("ReadFromUDP %q %v %v", b[:n], plainAddr(udp), reasonOf(err))
		s.fromOther(payload)
		n, ap, err := s.conn.ReadFromUDPAddrPort(b)
		s.tell("ReadFromUDPAddrPort %q %v %v", b[:n], plainAddr(ap), reasonOf(err))
		s.fromOther(payload)
		n, oobn, flags, udp, err := s.conn.ReadMsgUDP(b, make([]byte, 100))
		s.tell("ReadMsgUDP %q %d %#x %v %v", b[:n], oobn, flags, plainAddr(udp), reasonOf(err))
		s.fromOther(payload)
		n, oobn, flags, ap, err = s.conn.ReadMsgUDPAddrPort(b, nil)
		s.tell("ReadMsgUDPAddrPort %q %d %#x %v %v", b[:n], oobn, flags, plainAddr(ap), reasonOf(err))
	}
	n, err := s.conn.Read(nil)
	s.tell("Read into nothing %d %v", n, reasonOf(err))
}

func (s *story) arrives() {
	b := make([]byte, 1<<16)
	_ = s.other.SetReadDeadline(time.Now().Add(silence))
	n, from, err := s.other.ReadFromUDPAddrPort(b)
	s.tell("  arrives: %d bytes from port %d, %v", n, from.Port(), err == nil)
}

func (s *story) writes() {
	to := s.toOther()
	ap := to.AddrPort()
	huge := make([]byte, 65_536)
	for _, b := range [][]byte{[]byte("x"), {}, huge} {
		for _, w := range []struct {
			name string
			call func() (int, int, error)
		}{
			{"Write", func() (int, int, error) { n, err := s.conn.Write(b); return n, 0, err }},
			{"WriteTo", func() (int, int, error) { n, err := s.conn.WriteTo(b, to); return n, 0, err }},
			{"WriteToUDP", func() (int, int, error) { n, err := s.conn.WriteToUDP(b, to); return n, 0, err }},
			{"WriteToUDP nil", func() (int, int, error) { n, err := s.conn.WriteToUDP(b, nil); return n, 0, err }},
			{"WriteToUDPAddrPort", func() (int, int, error) { n, err := s.conn.WriteToUDPAddrPort(b, ap); return n, 0, err }},
			{"WriteToUDPAddrPort zero", func() (int, int, error) { n, err := s.conn.WriteToUDPAddrPort(b, netip.AddrPort{}); return n, 0, err }},
			{"WriteMsgUDP", func() (int, int, error) { return s.conn.WriteMsgUDP(b, nil, to) }},
			{"WriteMsgUDP nil", func() (int, int, error) { return s.conn.WriteMsgUDP(b, nil, nil) }},
			{"WriteMsgUDPAddrPort", func() (int, int, error) { return s.conn.WriteMsgUDPAddrPort(b, nil, ap) }},
			{"WriteMsgUDPAddrPort zero", func() (int, int, error) { return s.conn.WriteMsgUDPAddrPort(b, nil, netip.AddrPort{}) }},
		} {
			if w.name == "Write" && len(b) > 65_535 && s.conn.RemoteAddr() == nil {
				continue // which of two errors comes first is not the same over IPv4 and IPv6
			}
			n, oobn, err := w.call()
			s.tell("%s of %d: %d %d %v", w.name, len(b), n, oobn, reasonOf(err))
			s.arrives()
		}
	}
	n, err := s.conn.WriteTo([]byte("x"), &net.TCPAddr{IP: to.IP, Port: to.Port})
	s.tell("WriteTo a TCP address: %d %v", n, reasonOf(err))
}

func (s *story) deadlines() {
	b := make([]byte, 8)
	for _, at := range []time.Time{time.Unix(1, 0), time.Now(), time.Now().Add(5 * time.Millisecond)} {
		s.tell("SetReadDeadline %v", reasonOf(s.conn.SetReadDeadline(at)))
		_, err := s.conn.Read(b)
		s.tell("Read %v, a timeout: %v", reasonOf(err), err.(net.Error).Timeout())
	}
	s.fromOther("pending")
	_, _, err := s.conn.ReadFrom(b)
	s.tell("ReadFrom past the deadline, with one pending: %v", reasonOf(err))
	s.tell("SetDeadline %v", reasonOf(s.conn.SetDeadline(time.Time{})))
	n, err := s.conn.Read(b)
	s.tell("Read %q %v", b[:n], reasonOf(err))
	s.tell("SetWriteDeadline %v", reasonOf(s.conn.SetWriteDeadline(time.Now())))
	_, _, err = s.conn.WriteMsgUDP([]byte("x"), nil, nil)
	timeout, _ := err.(net.Error)
	s.tell("WriteMsgUDP past the deadline: %v", timeout != nil)
	s.tell("SetDeadline %v", reasonOf(s.conn.SetDeadline(time.Time{})))
}

func (s *story) closes() {
	s.tell("SetReadBuffer %v, SetWriteBuffer %v", s.conn.SetReadBuffer(1<<16), s.conn.SetWriteBuffer(1<<16))
	s.tell("Close %v", reasonOf(s.conn.Close()))
	s.tell("Close again %v", reasonOf(s.conn.Close()))
	_, err := s.conn.Read(make([]byte, 1))
	s.tell("Read %v", reasonOf(err))
	_, _, err = s.conn.ReadFrom(make([]byte, 1))
	s.tell("ReadFrom %v", reasonOf(err))
	_, _, err = s.conn.WriteMsgUDP([]byte("x"), nil, nil)
	s.tell("WriteMsgUDP is closed: %v", err != nil)
	_, err = s.conn.Write([]byte("x"))
	s.tell("Write %v", reasonOf(err))
	for _, err := range []error{
		s.conn.SetDeadline(time.Time{}), s.conn.SetReadDeadline(time.Now()), s.conn.SetWriteDeadline(time.Now()),
		s.conn.SetReadBuffer(1), s.conn.SetWriteBuffer(1),
	} {
		s.tell("Set %v", reasonOf(err))
	}
	s.tell("%v %v", plainAddr(s.conn.LocalAddr()), s.conn.RemoteAddr() != nil)
}

// TestOracle: "A Conn does the same as a *net.UDPConn", results and errors, on sockets of each family, with a peer or
// without.
func TestOracle(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, network, local, other string
		connected                   bool
	}{
		{"IPv4", "udp4", loopback4, loopback4, false},
		{"IPv4 connected", "udp4", "", loopback4, true},
		{"IPv6", "udp6", loopback6, loopback6, false},
		{"IPv6 connected", "udp", "", loopback6, true},
		{"both", "udp", ":0", loopback4, false},
		{"both, over IPv6", "udp", "[::]:0", loopback6, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if strings.Contains(row.other+row.local, "::") {
				needIPv6(t)
			}
			tell := func(open func(to string) (net.Conn, error)) []string {
				other := stdListen(t, "udp", row.other)
				c, err := open(other.LocalAddr().String())
				if err != nil {
					t.Fatal(err)
				}
				s := story{t: t, conn: c.(udpConn), other: other}
				defer s.conn.Close()
				s.reads()
				s.writes()
				s.deadlines()
				s.closes()
				return s.lines
			}
			want := tell(func(to string) (net.Conn, error) {
				if row.connected {
					return net.Dial(row.network, to)
				}
				c, err := net.ListenPacket(row.network, row.local)
				return c.(net.Conn), err
			})
			got := tell(func(to string) (net.Conn, error) {
				if row.connected {
					return Dial(t.Context(), row.network, to, Config{})
				}
				return Listen(t.Context(), row.network, row.local, Config{})
			})
			for i := range want {
				if got[i] != want[i] {
					t.Errorf("line %d: got  %s\nwant %s", i, got[i], want[i])
				}
			}
		})
	}
}

// TestOpenErrors: what cannot be opened says which thing it was, as package net does.
func TestOpenErrors(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		open func() (*Conn, error)
		text string
	}{
		{"network to listen", func() (*Conn, error) { return Listen(t.Context(), "tcp", loopback4, Config{}) }, `"tcp"`},
		{"network to dial", func() (*Conn, error) { return Dial(t.Context(), "unixgram", loopback4, Config{}) }, `"unixgram"`},
		{"address to listen", func() (*Conn, error) { return Listen(t.Context(), "udp", "127.0.0.1", Config{}) }, "missing port"},
		{"address to dial", func() (*Conn, error) { return Dial(t.Context(), "udp", "127.0.0.1:x", Config{}) }, "x"},
		{"family", func() (*Conn, error) { return Listen(t.Context(), "udp4", loopback6, Config{}) }, "udp4"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c, err := row.open()
			var op *net.OpError
			if c != nil || !errors.As(err, &op) || !strings.Contains(err.Error(), row.text) {
				t.Errorf("got %v, %v; want an OpError with %q", c, err, row.text)
			}
		})
	}
}

// TestConfigErrors: a value out of its range is refused by its name.
func TestConfigErrors(t *testing.T) {
	t.Parallel()
	bad := fault.Plan{Rules: []fault.Rule{{}}}
	for name, cfg := range map[string]Config{
		"RecvBufferBytes": {RecvBufferBytes: -1}, "SendBufferBytes": {SendBufferBytes: 1<<30 + 1}, "TTL": {TTL: 256},
		"MulticastTTL": {MulticastTTL: -1}, "TrafficClass": {TrafficClass: 256}, "Faults": {Faults: bad},
		"Device": {Device: "no such device"},
	} {
		c, err := Listen(t.Context(), "udp", loopback4, cfg)
		if c != nil || err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if name != "Device" && name != "Faults" && !errors.Is(err, syscall.EINVAL) {
			t.Errorf("%s: %v; want EINVAL", name, err)
		}
	}
}

// TestConfigApplies: the kernel has what the Config asks for.
func TestConfigApplies(t *testing.T) {
	t.Parallel()
	for _, address := range []string{loopback4, loopback6, ":0"} {
		if address != loopback4 {
			needIPv6(t)
		}
		c := listen(t, address, Config{
			RecvBufferBytes: 100_000, SendBufferBytes: 50_000, ReuseAddr: true, ReusePort: true, Broadcast: true,
			TTL: 33, MulticastTTL: 5, TrafficClass: 0x20, Logger: slog.New(slog.DiscardHandler),
		})
		s := c.Stats()
		if s.RecvBufferBytes < 200_000 || s.SendBufferBytes < 100_000 {
			t.Errorf("%s: buffers of %d and %d bytes", address, s.RecvBufferBytes, s.SendBufferBytes)
		}
		other, err := Listen(t.Context(), "udp", c.LocalAddr().String(), Config{ReusePort: true, ReuseAddr: true})
		if err != nil {
			t.Errorf("%s: its port cannot be shared: %v", address, err)
			continue
		}
		_ = other.Close()
	}
}

// TestString: a Conn tells its addresses.
func TestString(t *testing.T) {
	t.Parallel()
	a := listen(t, loopback4, Config{})
	b := dial(t, a.LocalAddr(), Config{})
	if want := "udp " + a.LocalAddr().String(); a.String() != want {
		t.Errorf("got %q, want %q", a, want)
	}
	if want := "udp " + b.LocalAddr().String() + "->" + a.LocalAddr().String(); b.String() != want {
		t.Errorf("got %q, want %q", b, want)
	}
	if a.RemoteAddr() != nil {
		t.Errorf("a Conn without a peer has %v", a.RemoteAddr())
	}
}

// TestAddresses: "IPv4 peers are IPv4 also through an IPv6 socket".
func TestAddresses(t *testing.T) {
	t.Parallel()
	needIPv6(t)
	c := listen(t, "[::]:0", Config{})
	peer := listen(t, loopback4, Config{})
	port := addrOf(c).Port()
	for _, to := range []string{"127.0.0.1", "::ffff:127.0.0.1"} {
		send(t, c, to, netip.AddrPortFrom(netip.MustParseAddr(to), addrOf(peer).Port()))
		got, from := next(t, peer)
		if want := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port); got != to || from != want {
			t.Errorf("%q from %v, want %v", got, from, want)
		}
	}
	send(t, peer, "back", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port))
	if _, from := next(t, c); from != addrOf(peer) {
		t.Errorf("from %v, want %v", from, addrOf(peer))
	}
	_, err := peer.WriteToUDPAddrPort([]byte("x"), netip.AddrPortFrom(netip.IPv6Loopback(), port))
	if !errors.Is(err, syscall.EAFNOSUPPORT) {
		t.Errorf("IPv6 on an IPv4 socket: %v", err)
	}
	_, err = peer.WriteToUDPAddrPort([]byte("x"), netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), 0))
	if err == nil || peer.Stats().SendCalls != 1 {
		t.Errorf("port 0: %v, after %d calls", err, peer.Stats().SendCalls)
	}
}

// TestNames: the address of a source is the same one for many datagrams, and a flood of sources does not fill memory.
func TestNames(t *testing.T) {
	t.Parallel()
	c, peer := listen(t, loopback4, Config{}), listen(t, loopback4, Config{})
	other := listen(t, loopback4, Config{})
	var seen []net.Addr
	for _, from := range []*Conn{peer, peer, other, peer, other} {
		send(t, from, "x", addrOf(c))
		_, a, err := c.ReadFrom(make([]byte, 1))
		must(t, err)
		seen = append(seen, a)
	}
	if seen[0] != seen[1] || seen[0] != seen[3] || seen[2] != seen[4] || seen[0] == seen[2] {
		t.Errorf("%p", seen)
	}
	var n names
	for i := range 100_000 {
		addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 9)
		if name := n.of(addr); name.AddrPort() != addr || n.of(addr) != name {
			t.Fatalf("%v is %v", addr, name)
		}
		if len(n.known) > maxNames {
			t.Fatalf("%d names are kept", len(n.known))
		}
	}
	if slices.Contains(seen, nil) {
		t.Error("a source without an address")
	}
}
