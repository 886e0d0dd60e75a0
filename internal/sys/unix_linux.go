//go:build linux

package sys

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

func (s *real) BindUnix(fd int, name string) error {
	if name == "" {
		return unix.EINVAL // the kernel would choose an abstract name
	}
	return withUnixName(unix.SYS_BIND, fd, name)
}

// ConnectUnix does not wait: the kernel answers EAGAIN where a non-blocking socket would have to.
func (s *real) ConnectUnix(fd int, name string) error {
	if name == "" {
		return dissolve(fd)
	}
	return withUnixName(unix.SYS_CONNECT, fd, name)
}

// withUnixName makes a call that takes a socket's name behind the descriptor.
func withUnixName(trap uintptr, fd int, name string) error {
	var raw unix.RawSockaddrUnix
	size, dir, err := putUnixName(&raw, name)
	if err != nil {
		return err
	}
	defer dir.close()
	for {
		_, _, errno := unix.Syscall(trap, uintptr(fd), uintptr(unsafe.Pointer(&raw)), size)
		if errno != unix.EINTR {
			return errOrNil(errno)
		}
	}
}

func (s *real) LocalUnix(fd int) (string, error)  { return askUnixName(unix.SYS_GETSOCKNAME, fd) }
func (s *real) RemoteUnix(fd int) (string, error) { return askUnixName(unix.SYS_GETPEERNAME, fd) }

func askUnixName(trap uintptr, fd int) (string, error) {
	var raw unix.RawSockaddrUnix
	size := uint32(unsafe.Sizeof(raw))
	_, _, errno := unix.RawSyscall(trap, uintptr(fd), uintptr(unsafe.Pointer(&raw)), uintptr(unsafe.Pointer(&size)))
	if errno != 0 {
		return "", errno
	}
	return getUnixName(&raw, size), nil
}

func (s *real) UnlinkUnix(path string) error {
	if isAbstract(path) {
		return unix.ENOENT
	}
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return unix.ENOTSOCK
	}
	return unix.Unlink(path)
}

func (s *real) SendUnix(fd int, b []byte, to string) error {
	if to == "" {
		_, errno := rawCall(unix.SYS_SENDTO, fd, unsafe.Pointer(unsafe.SliceData(b)), uintptr(len(b)), streamFlags)
		return errOrNil(errno)
	}
	var raw unix.RawSockaddrUnix
	size, dir, err := putUnixName(&raw, to)
	if err != nil {
		return err
	}
	defer dir.close()
	for {
		_, _, errno := unix.Syscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))),
			uintptr(len(b)), streamFlags, uintptr(unsafe.Pointer(&raw)), size)
		if errno != unix.EINTR {
			return errOrNil(errno)
		}
	}
}

// RecvUnix has MSG_TRUNC tell the size of the datagram, which Linux does for unix sockets since 3.4 (recv(2)).
func (s *real) RecvUnix(fd int, b []byte) (int, string, Flags, error) {
	for {
		var raw unix.RawSockaddrUnix
		size := uint32(unsafe.Sizeof(raw))
		n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))),
			uintptr(len(b)), unix.MSG_DONTWAIT|unix.MSG_TRUNC, uintptr(unsafe.Pointer(&raw)), uintptr(unsafe.Pointer(&size)))
		switch {
		case errno == unix.EINTR:
		case errno != 0:
			return 0, "", 0, errno
		case int(n) > len(b):
			return len(b), getUnixName(&raw, size), Truncated, nil
		default:
			return int(n), getUnixName(&raw, size), 0, nil
		}
	}
}
