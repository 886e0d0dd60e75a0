//go:build linux

package main

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weirnet/weir/lab/internal/meter"
)

func main() {
	ln, addr, err := listen()
	if err != nil {
		meter.Fail(err)
	}
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		meter.Fail(err)
	}
	if err := add(ep, ln); err != nil {
		meter.Fail(err)
	}
	go meter.Serve(addr)
	events := make([]unix.EpollEvent, 128)
	buf := make([]byte, 64<<10)
	for {
		n, err := unix.EpollWait(ep, events, -1)
		if err != nil && err != unix.EINTR {
			meter.Fail(err)
		}
		for _, ev := range events[:max(n, 0)] {
			if fd := int(ev.Fd); fd == ln {
				err = accept(ep, ln)
			} else {
				echo(fd, buf)
			}
			if err != nil {
				meter.Fail(err)
			}
		}
	}
}

func listen() (fd int, addr string, err error) {
	fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, "", err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return -1, "", err
	}
	if err := unix.Listen(fd, 4096); err != nil {
		return -1, "", err
	}
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return -1, "", err
	}
	return fd, fmt.Sprintf("127.0.0.1:%d", sa.(*unix.SockaddrInet4).Port), nil
}

func add(ep, fd int) error {
	return unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
}

func accept(ep, ln int) error {
	for {
		fd, _, err := unix.Accept4(ln, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		if err == unix.EAGAIN {
			return nil
		}
		if err != nil {
			return err
		}
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
			return err
		}
		if err := add(ep, fd); err != nil {
			return err
		}
	}
}

func echo(fd int, buf []byte) {
	p := uintptr(unsafe.Pointer(unsafe.SliceData(buf)))
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), p, uintptr(len(buf)), unix.MSG_DONTWAIT, 0, 0)
	switch {
	case errno == unix.EAGAIN:
	case errno != 0 || n == 0:
		_ = unix.Close(fd)
	default:
		_, _, _ = unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), p, n, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	}
}
