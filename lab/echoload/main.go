//go:build linux

package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/weirnet/weir/lab/internal/meter"
)

func main() {
	addr := flag.String("addr", "", "where the server listens")
	conns := flag.Int("conns", 1, "number of connections")
	size := flag.Int("size", 64, "bytes of a message")
	idle := flag.Bool("idle", false, "connect, and send nothing")
	flag.Parse()
	fds, err := connect(*addr, *conns)
	if err != nil {
		meter.Fail(err)
	}
	fmt.Println("ready")
	var done atomic.Uint64
	go report(&done)
	if *idle {
		select {}
	}
	meter.Fail(load(fds, make([]byte, *size), &done))
}

func report(done *atomic.Uint64) {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println(done.Load())
	}
	os.Exit(0)
}

// load is a plain epoll loop: one read and one write a message. It never sleeps: a wake-up across processors, which
// the server would pay for, is dearer than all else that it does.
func load(fds []int, message []byte, done *atomic.Uint64) error {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return err
	}
	for _, fd := range fds {
		if err := unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
			return err
		}
		if _, err := unix.Write(fd, message); err != nil {
			return err
		}
	}
	events := make([]unix.EpollEvent, 128)
	buf := make([]byte, len(message))
	for {
		n, err := unix.EpollWait(ep, events, 0)
		if err != nil && err != unix.EINTR {
			return err
		}
		for _, ev := range events[:max(n, 0)] {
			if err := again(int(ev.Fd), buf, message); err != nil {
				return err
			}
			done.Add(1)
		}
	}
}

// again takes an answer, which comes whole as it is small, and sends the next message.
func again(fd int, buf, message []byte) error {
	n, err := unix.Read(fd, buf)
	if err != nil {
		return err
	}
	if n != len(message) {
		return fmt.Errorf("an answer of %d bytes", n)
	}
	_, err = unix.Write(fd, message)
	return err
}

func connect(addr string, n int) (fds []int, err error) {
	sa, err := sockaddr(addr)
	if err != nil {
		return nil, err
	}
	for range n {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		if err := unix.Connect(fd, sa); err != nil {
			return nil, fmt.Errorf("connection %d to %s: %w", len(fds), addr, err)
		}
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
			return nil, err
		}
		fds = append(fds, fd)
	}
	return fds, nil
}
