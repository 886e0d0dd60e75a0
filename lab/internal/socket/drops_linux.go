//go:build linux

package socket

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// SK_MEMINFO_DROPS and SK_MEMINFO_VARS (linux/sock_diag.h).
const (
	memDrops = 8
	memVars  = 9
)

// Drops is what the kernel has dropped for want of room in the socket's buffer, by SO_MEMINFO: one measure for both kinds.
func Drops(c Conn) (uint64, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var vars [memVars]uint32
	size := uint32(unsafe.Sizeof(vars))
	var errno unix.Errno
	err = raw.Control(func(fd uintptr) {
		_, _, errno = unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_MEMINFO,
			uintptr(unsafe.Pointer(&vars)), uintptr(unsafe.Pointer(&size)), 0)
	})
	if err == nil && errno != 0 {
		err = errno
	}
	return uint64(vars[memDrops]), err
}
