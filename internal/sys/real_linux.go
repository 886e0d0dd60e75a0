//go:build linux

package sys

import (
	"net/netip"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// New returns the kernel of this machine. It learns which batched calls the system refuses.
func New() Kernel { return &real{} }

// NewSingle returns the kernel of this machine without its batched calls, as New's is where they are refused.
func NewSingle() Kernel {
	s := &real{}
	s.recvmmsg.turnOff(unix.EOPNOTSUPP)
	s.sendmmsg.turnOff(unix.EOPNOTSUPP)
	return s
}

type real struct {
	recvmmsg, sendmmsg latch
	behind             errorsBehind
	fileSends          sync.Pool // of *fileSend
}

func (s *real) Socket(f Family, k Kind) (int, error) {
	var family int
	switch f {
	case IPv4:
		family = unix.AF_INET
	case IPv6:
		family = unix.AF_INET6
	case UnixFamily:
		family = unix.AF_UNIX
	default:
		return -1, syscall.EAFNOSUPPORT
	}
	typ, ok := socketType(f, k)
	if !ok {
		return -1, syscall.EPROTONOSUPPORT
	}
	for {
		fd, err := unix.Socket(family, typ|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

func socketType(f Family, k Kind) (typ int, ok bool) {
	switch k {
	case UDP:
		return unix.SOCK_DGRAM, f != UnixFamily
	case TCP:
		return unix.SOCK_STREAM, f != UnixFamily
	case Unixgram:
		return unix.SOCK_DGRAM, f == UnixFamily
	case UnixStream:
		return unix.SOCK_STREAM, f == UnixFamily
	default:
		return 0, false
	}
}

func (s *real) Bind(fd int, addr netip.AddrPort) error {
	return unix.Bind(fd, toSockaddr(addr))
}

// Connect does not try again where a signal ended the wait of a blocking socket: the kernel goes on with the
// handshake, and would answer EALREADY (connect(2)). No other socket waits.
func (s *real) Connect(fd int, addr netip.AddrPort) error {
	if !addr.IsValid() {
		return dissolve(fd)
	}
	err := unix.Connect(fd, toSockaddr(addr))
	if err == unix.EINTR {
		return unix.EINPROGRESS
	}
	return err
}

func (s *real) LocalAddr(fd int) (netip.AddrPort, error) {
	sa, err := unix.Getsockname(fd)
	return fromSockaddr(sa), err
}

func (s *real) RemoteAddr(fd int) (netip.AddrPort, error) {
	sa, err := unix.Getpeername(fd)
	return fromSockaddr(sa), err
}

// Close does not retry EINTR: Linux has freed the descriptor by then (close(2)), and its number may be
// another's already.
func (s *real) Close(fd int) error {
	_ = s.behind.take(fd)
	if err := unix.Close(fd); err != unix.EINTR {
		return err
	}
	return nil
}
