//go:build linux

package sys

import "golang.org/x/sys/unix"

func (s *real) Describe(fd int) (Description, error) {
	var d Description
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return d, err
	}
	domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		return d, err
	}
	protocol, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PROTOCOL)
	if err != nil {
		return d, err
	}
	d.Family, d.Kind = describe(domain, kind, protocol)
	if listening, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err == nil {
		d.Listening = listening != 0
	}
	if cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_COOKIE); err == nil {
		d.Cookie = cookie // Linux 4.12; what refuses it, does without
	}
	return d, nil
}

// describe takes a multipath listener, which std net makes by default, for the TCP that most of its connections
// are.
func describe(domain, kind, protocol int) (f Family, k Kind) {
	switch domain {
	case unix.AF_INET:
		f = IPv4
	case unix.AF_INET6:
		f = IPv6
	case unix.AF_UNIX:
		f = UnixFamily
	default:
		return 0, 0
	}
	switch {
	case kind == unix.SOCK_STREAM && f == UnixFamily:
		k = UnixStream
	case kind == unix.SOCK_DGRAM && f == UnixFamily:
		k = Unixgram
	case kind == unix.SOCK_STREAM && (protocol == unix.IPPROTO_TCP || protocol == unix.IPPROTO_MPTCP):
		k = TCP
	case kind == unix.SOCK_DGRAM && protocol == unix.IPPROTO_UDP:
		k = UDP
	}
	return f, k
}

func (s *real) Duplicate(fd int) (int, error) {
	for {
		dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return -1, err
		}
		return dup, nil
	}
}
