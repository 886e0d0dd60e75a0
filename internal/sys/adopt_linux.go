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
	switch domain {
	case unix.AF_INET:
		d.Family = IPv4
	case unix.AF_INET6:
		d.Family = IPv6
	}
	if kind == unix.SOCK_DGRAM && protocol == unix.IPPROTO_UDP {
		d.Kind = UDP
	}
	if cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_COOKIE); err == nil {
		d.Cookie = cookie // Linux 4.12; what refuses it, does without
	}
	return d, nil
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
