//go:build linux

package sys

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestDescribeOthers has descriptors of all kinds.
func TestDescribeOthers(t *testing.T) {
	k := New()
	for _, c := range []struct {
		name                   string
		domain, kind, protocol int
		want                   Description
	}{
		{"TCP", unix.AF_INET, unix.SOCK_STREAM, 0, Description{Family: IPv4, Kind: TCP}},
		{"multipath TCP", unix.AF_INET6, unix.SOCK_STREAM, unix.IPPROTO_MPTCP, Description{Family: IPv6, Kind: TCP}},
		{"UDP-Lite", unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE, Description{Family: IPv6}},
		{"unix datagrams", unix.AF_UNIX, unix.SOCK_DGRAM, 0, Description{Family: UnixFamily, Kind: Unixgram}},
		{"a unix stream", unix.AF_UNIX, unix.SOCK_STREAM, 0, Description{Family: UnixFamily, Kind: UnixStream}},
		{"unix packets", unix.AF_UNIX, unix.SOCK_SEQPACKET, 0, Description{Family: UnixFamily}},
		{"netlink", unix.AF_NETLINK, unix.SOCK_DGRAM, 0, Description{}},
		{"UDP over IPv6", unix.AF_INET6, unix.SOCK_DGRAM, 0, Description{Family: IPv6, Kind: UDP}},
	} {
		fd, err := unix.Socket(c.domain, c.kind|unix.SOCK_CLOEXEC, c.protocol)
		if err != nil {
			t.Logf("no %s here: %v", c.name, err)
			continue
		}
		got, err := k.Describe(fd)
		if got.Cookie == 0 {
			t.Errorf("%s: no cookie", c.name)
		}
		got.Cookie = 0
		if got != c.want || err != nil {
			t.Errorf("%s: %+v, %v; want %+v", c.name, got, err, c.want)
		}
		if err := unix.Close(fd); err != nil {
			t.Error(err)
		}
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Describe(pipe[0]); err != unix.ENOTSOCK {
		t.Errorf("a pipe: %v", err)
	}
	for _, fd := range pipe {
		if err := unix.Close(fd); err != nil {
			t.Error(err)
		}
	}
}

// TestDuplicateOfABlockingSocket: "Whether calls of others block … stays as it is; those of a Kernel never do".
func TestDuplicateOfABlockingSocket(t *testing.T) {
	k := New()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	dup, err := k.Duplicate(fd)
	if err != nil {
		t.Fatal(err)
	}
	if flags, err := unix.FcntlInt(uintptr(dup), unix.F_GETFD, 0); flags&unix.FD_CLOEXEC == 0 || err != nil {
		t.Errorf("flags of the descriptor are %#x, %v", flags, err)
	}
	for _, x := range []int{fd, dup} {
		if flags, err := unix.FcntlInt(uintptr(x), unix.F_GETFL, 0); flags&unix.O_NONBLOCK != 0 || err != nil {
			t.Errorf("flags of the socket are %#x, %v", flags, err)
		}
		if n, err := k.Recv(x, NewRecvBatch(1, 64), 1); n != 0 || err != unix.EAGAIN {
			t.Errorf("Recv: %d, %v", n, err)
		}
		if err := k.Close(x); err != nil {
			t.Error(err)
		}
	}
}
