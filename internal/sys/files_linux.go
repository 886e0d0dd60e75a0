//go:build linux

package sys

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"
)

const fdBytes = 4 // a descriptor in a control message is a C int

// filesNative is room for one control message.
type filesNative struct{ control []byte }

// init ends the room with the last descriptor: what aligns a control message is room for one more on 64-bit
// machines, and the kernel would use it.
func (f *filesNative) init(n int) { f.control = make([]byte, unix.CmsgLen(fdBytes*n)) }

func (s *real) WriteFiles(fd int, v *Vector, files []int) (int, error) {
	if len(files) > MaxFiles {
		return 0, unix.EINVAL
	}
	var room [(cmsgHeaderBytes + fdBytes*MaxFiles + 7) / 8]uint64
	control := unsafe.Slice((*byte)(unsafe.Pointer(&room)), unsafe.Sizeof(room))[:0]
	if len(files) > 0 {
		var data []byte
		control, data = appendCmsg(control, unix.SOL_SOCKET, unix.SCM_RIGHTS, fdBytes*len(files))
		for i, file := range files {
			binary.NativeEndian.PutUint32(data[fdBytes*i:], uint32(file))
		}
	}
	return v.native.send(fd, v.Bufs, control, streamFlags)
}

func (s *real) ReadFiles(fd int, b []byte, f *Files) (int, error) {
	f.FDs, f.Truncated = f.FDs[:0], false
	var iov unix.Iovec
	iov.Base = unsafe.SliceData(b)
	iov.SetLen(len(b))
	h := unix.Msghdr{Iov: &iov, Control: unsafe.SliceData(f.native.control)}
	h.SetIovlen(1)
	h.SetControllen(len(f.native.control))
	n, errno := rawCall(unix.SYS_RECVMSG, fd, unsafe.Pointer(&h), unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC, 0)
	if errno != 0 {
		return 0, errno
	}
	f.Truncated = h.Flags&unix.MSG_CTRUNC != 0
	f.take(f.native.control[:min(int(h.Controllen), len(f.native.control))])
	return n, nil
}

// take takes the descriptors out of what the kernel wrote, and closes those that there is no room for.
func (f *Files) take(control []byte) {
	for {
		level, typ, data, rest, ok := nextCmsg(control)
		if !ok {
			return
		}
		control = rest
		if level != unix.SOL_SOCKET || typ != unix.SCM_RIGHTS {
			continue
		}
		for ; len(data) >= fdBytes; data = data[fdBytes:] {
			fd := int(int32(binary.NativeEndian.Uint32(data)))
			if len(f.FDs) == f.room {
				f.Truncated = true
				_ = unix.Close(fd)
				continue
			}
			f.FDs = append(f.FDs, fd)
		}
	}
}
