//go:build unix

package main

import (
	"os"
	"strings"
	"syscall"
)

// fileLimit is how many descriptors the process may have; the Go runtime has raised the soft limit to the hard
// one.
func fileLimit() (soft, hard uint64, err error) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, 0, err
	}
	return uint64(l.Cur), uint64(l.Max), nil
}

// readFile reads a small file. Package os would open the runtime's poller for it, and end the program where
// there are no descriptors for that, which is what somebody may be here to find out.
func readFile(name string) (string, error) {
	fd, err := syscall.Open(name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer syscall.Close(fd)
	var text strings.Builder
	for buf := make([]byte, 4096); ; {
		switch n, err := syscall.Read(fd, buf); {
		case err == syscall.EINTR:
		case err != nil:
			return "", err
		case n == 0:
			return strings.TrimSpace(text.String()), nil
		default:
			text.Write(buf[:n])
		}
	}
}

// openProgram opens the file that this program runs from, without the runtime's poller: see readFile.
func openProgram() (*os.File, error) {
	name, err := os.Executable()
	if err != nil {
		return nil, err
	}
	fd, err := syscall.Open(name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}
