//go:build linux

package sys

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Indexes into SO_MEMINFO's array of u32 (linux/sock_diag.h).
const (
	memRecvQueued = 0
	memRecvLimit  = 1
	memSendLimit  = 3
	memDrops      = 8
	memVars       = 9
)

// MemInfo asks SO_MEMINFO (Linux 4.12), which names the drops at once; SO_RXQ_OVFL would tell only with
// the next datagram that gets through.
func (s *real) MemInfo(fd int) (MemInfo, error) {
	var vars [memVars]uint32
	size := uint32(unsafe.Sizeof(vars))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&vars)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return MemInfo{}, errno
	}
	return MemInfo{
		RecvQueued: int(vars[memRecvQueued]),
		RecvLimit:  int(vars[memRecvLimit]),
		SendLimit:  int(vars[memSendLimit]),
		Drops:      vars[memDrops],
	}, nil
}
