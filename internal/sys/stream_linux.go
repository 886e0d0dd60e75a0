//go:build linux

package sys

import (
	"net/netip"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// streamFlags have a call neither wait, whoever made the socket blocking, nor raise SIGPIPE.
const streamFlags = unix.MSG_DONTWAIT | unix.MSG_NOSIGNAL

// vectorNative is a Vector in the kernel's own form.
type vectorNative struct{ iovs []unix.Iovec }

func (v *vectorNative) init(n int) { v.iovs = make([]unix.Iovec, n) }

func (s *real) Unblock(fd int) error         { return unix.SetNonblock(fd, true) }
func (s *real) Listen(fd, backlog int) error { return unix.Listen(fd, backlog) }
func (s *real) CloseWrite(fd int) error      { return unix.Shutdown(fd, unix.SHUT_WR) }

// Accept reads into the room of an IP address: the kernel cuts a longer name, and its family then says that it is
// none.
func (s *real) Accept(fd int) (int, netip.AddrPort, error) {
	for {
		var name rawName
		size := uint32(unsafe.Sizeof(name))
		conn, _, errno := unix.RawSyscall6(unix.SYS_ACCEPT4, uintptr(fd), uintptr(unsafe.Pointer(&name)),
			uintptr(unsafe.Pointer(&size)), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0, 0)
		switch errno {
		case 0:
			return int(conn), getName(&name, size), nil
		case unix.EINTR:
		default:
			return -1, netip.AddrPort{}, errno
		}
	}
}

func (s *real) Read(fd int, b []byte) (int, error) {
	n, errno := rawCall(unix.SYS_RECVFROM, fd, unsafe.Pointer(unsafe.SliceData(b)), uintptr(len(b)), unix.MSG_DONTWAIT)
	return n, errOrNil(errno)
}

// Write of one buffer saves the kernel the reading of a header and an iovec.
func (s *real) Write(fd int, v *Vector, more bool) (int, error) {
	flags := uintptr(streamFlags)
	if more {
		flags |= unix.MSG_MORE
	}
	if len(v.Bufs) == 1 {
		b := v.Bufs[0]
		n, errno := rawCall(unix.SYS_SENDTO, fd, unsafe.Pointer(unsafe.SliceData(b)), uintptr(len(b)), flags)
		return n, errOrNil(errno)
	}
	return v.native.send(fd, v.Bufs, nil, flags)
}

// send is sendmsg(2). It keeps no pointer to a buffer.
func (v *vectorNative) send(fd int, bufs [][]byte, control []byte, flags uintptr) (int, error) {
	iovs := v.iovs[:len(bufs)]
	for i, b := range bufs {
		iovs[i].Base = unsafe.SliceData(b)
		iovs[i].SetLen(len(b))
	}
	h := unix.Msghdr{Iov: unsafe.SliceData(iovs), Control: unsafe.SliceData(control)}
	h.SetIovlen(len(iovs))
	h.SetControllen(len(control))
	n, errno := rawCall(unix.SYS_SENDMSG, fd, unsafe.Pointer(&h), flags, 0)
	clear(iovs)
	return n, errOrNil(errno)
}

// SendFile lets more be: sendfile(2) takes no flags.
func (s *real) SendFile(fd int, f *os.File, offset int64, n int, _ bool) (int, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return 0, unix.EBADF
	}
	call, ok := s.fileSends.Get().(*fileSend)
	if !ok {
		call = newFileSend()
	}
	call.socket, call.offset, call.n = fd, offset, n
	call.sent, call.err = 0, nil
	if err := conn.Control(call.do); err != nil {
		call.err = unix.EBADF // only a file that was closed is refused
	}
	sent, err := call.sent, call.err
	s.fileSends.Put(call)
	return sent, err
}

// fileSend is one sendfile(2), as a function that holds the file open may call it. It is used again, so that a
// call makes no closure.
type fileSend struct {
	socket, n int
	offset    int64
	sent      int
	err       error
	do        func(file uintptr)
}

func newFileSend() *fileSend {
	c := &fileSend{}
	c.do = func(file uintptr) {
		for {
			c.sent, c.err = unix.Sendfile(c.socket, int(file), &c.offset, c.n) // may wait for a disk
			if c.err != unix.EINTR {
				c.sent = max(c.sent, 0)
				return
			}
		}
	}
	return c
}
