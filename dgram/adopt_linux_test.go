//go:build linux

package dgram

import (
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// fileOf is a descriptor of its own for a socket.
func fileOf(t testing.TB, c interface{ File() (*os.File, error) }) *os.File {
	t.Helper()
	f, err := c.File()
	must(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func adopt(t testing.TB, f *os.File, cfg Config) *Conn {
	t.Helper()
	c, err := Adopt(int(f.Fd()), cfg)
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestAdoptShared: "it is read one datagram a system call, without GRO, so that closing loses nothing". Of 32 that wait the
// first Conn takes one and is closed, and the other one gets 31.
func TestAdoptShared(t *testing.T) {
	t.Parallel()
	f := fileOf(t, stdListen(t, "udp", loopback4))
	first, second := adopt(t, f, Config{}), adopt(t, f, Config{})
	peer := listen(t, loopback4, Config{})
	if p := first.Stats().Paths; p.BatchedReceives || p.GRO {
		t.Errorf("%+v", p)
	}
	if peer.segments {
		sendTrain(t, peer, first, strings.Repeat("x", 32), 1)
	} else {
		for range 32 {
			send(t, peer, "x", addrOf(first))
		}
	}
	wantNext(t, first, "x")
	must(t, first.Close())
	for range 31 {
		wantNext(t, second, "x")
	}
	wantSilence(t, second)
	if s := first.Stats(); s.Received != 1 || s.Discarded != 0 {
		t.Errorf("the first: %+v", s)
	}
	if s := second.Stats(); s.Received != 31 || s.ReceivedJoined != 0 || s.ReceiveBatches != 31 {
		t.Errorf("the second: %+v", s)
	}
	send(t, second, "back", addrOf(peer))
	if _, from := next(t, peer); from != addrOf(second) {
		t.Errorf("from %v", from)
	}
}

// TestAdoptSole: who says that nobody else reads the socket has it read ahead.
func TestAdoptSole(t *testing.T) {
	t.Parallel()
	f := fileOf(t, stdListen(t, "udp", loopback4))
	c, peer := adopt(t, f, Config{Sole: true}), listen(t, loopback4, Config{})
	if got, want := c.Stats().Paths, peer.Stats().Paths; got != want {
		t.Errorf("%+v; one that was opened has %+v", got, want)
	}
	for range 5 {
		send(t, peer, "x", addrOf(c))
	}
	for range 5 {
		wantNext(t, c, "x")
	}
}

// TestAdoptConnected: a socket with a peer keeps it.
func TestAdoptConnected(t *testing.T) {
	t.Parallel()
	peer := listen(t, loopback4, Config{})
	std, err := net.DialUDP("udp", nil, peer.LocalAddr().(*net.UDPAddr))
	must(t, err)
	f := fileOf(t, std)
	must(t, std.Close())
	c := adopt(t, f, Config{})
	if c.RemoteAddr().String() != peer.LocalAddr().String() {
		t.Errorf("the peer is %v", c.RemoteAddr())
	}
	_, err = c.Write([]byte("x"))
	must(t, err)
	wantNext(t, peer, "x")
}

// TestAdoptErrors: what is no UDP socket is refused, and nothing is left open.
func TestAdoptErrors(t *testing.T) {
	file, err := os.Open(os.DevNull)
	must(t, err)
	defer file.Close()
	l, err := net.Listen("tcp", loopback4)
	must(t, err)
	defer l.Close()
	tcp := fileOf(t, l.(*net.TCPListener))
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	defer func() { _, _ = unix.Close(pair[0]), unix.Close(pair[1]) }()
	udp := fileOf(t, stdListen(t, "udp", loopback4))
	before := openSockets()
	for _, row := range []struct {
		name string
		fd   int
		cfg  Config
		want error
	}{
		{"none", -1, Config{}, syscall.EBADF},
		{"a file", int(file.Fd()), Config{}, syscall.ENOTSOCK},
		{"a TCP listener", int(tcp.Fd()), Config{}, syscall.EPROTOTYPE},
		{"a unix socket", pair[0], Config{}, syscall.EAFNOSUPPORT},
		{"no room", int(udp.Fd()), Config{Faults: plan(t, "dup=EMFILE")}, syscall.EMFILE},
		{"not told", int(udp.Fd()), Config{Faults: plan(t, "describe=ENOPROTOOPT")}, syscall.ENOPROTOOPT},
		{"an option", int(udp.Fd()), Config{TTL: 9, Faults: plan(t, "setsockopt=EINVAL")}, syscall.EINVAL},
	} {
		c, err := Adopt(row.fd, row.cfg)
		var op *net.OpError
		if c != nil || !errors.Is(err, row.want) || !errors.As(err, &op) {
			t.Errorf("%s: %v, %v; want %v", row.name, c, err, row.want)
		}
	}
	if after := openSockets(); after != before {
		t.Errorf("%d sockets before, %d after", before, after)
	}
	if err := unix.SetNonblock(int(udp.Fd()), false); err != nil {
		t.Error("the caller's descriptor is closed: ", err)
	}
}

// TestWrap: a Conn takes a socket over, and one that it cannot make ready stays the caller's, and receives as it did.
func TestWrap(t *testing.T) {
	t.Parallel()
	peer := listen(t, loopback4, Config{})
	std := stdListen(t, "udp", loopback4)
	for _, text := range []string{"setsockopt#1=EINVAL", "setsockopt#2=EINVAL", "setsockopt#3=ENOBUFS"} {
		c, err := Wrap(std, Config{TTL: 9, RecvBufferBytes: 50_000, SendBufferBytes: 50_000, Faults: plan(t, text)})
		if c != nil || err == nil {
			t.Errorf("%s: %v, %v", text, c, err)
		}
		to := addrOf(std)
		if peer.segments {
			_, _, err = peer.WriteMsgUDPAddrPort([]byte("aabb"), segmentOf(2), to)
			must(t, err)
		} else {
			send(t, peer, "aa", to)
			send(t, peer, "bb", to)
		}
		wantNext(t, std, "aa", "bb")
	}
	c, err := Wrap(std, Config{})
	must(t, err)
	send(t, peer, "x", addrOf(c))
	wantNext(t, c, "x")
	must(t, c.Close())
	if _, err := std.Write(nil); !errors.Is(err, net.ErrClosed) {
		t.Errorf("what was wrapped is open: %v", err)
	}
}
