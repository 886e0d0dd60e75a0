package sock

import (
	"fmt"
	"strings"
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

// ListenUnix opens a unix socket that takes connections. With replace it takes a path over that a listener left
// behind which is no more; one that lives keeps it. To tell, ListenUnix connects, so that who lives sees a
// connection that ends at once. Who has bound a path and does not listen yet is taken for dead, and of two that take
// over a path at the same time the first may lose it to the second.
//
//   - Errors: *Error with the step; nothing is left then, neither descriptor nor path.
func ListenUnix(k sys.Kernel, name string, s StreamSettings, backlog int, replace bool) (fd int, err error) {
	fd, err = unixSocket(k, sys.UnixStream, &s)
	if err != nil {
		return -1, err
	}
	err = k.BindUnix(fd, name)
	if err == syscall.EADDRINUSE && replace && IsPath(name) {
		err = replaceUnix(k, fd, name)
	}
	if err != nil {
		_ = k.Close(fd)
		return -1, &Error{"bind", err}
	}
	if err := k.Listen(fd, backlog); err != nil {
		if IsPath(name) {
			_ = k.UnlinkUnix(name)
		}
		_ = k.Close(fd)
		return -1, &Error{"listen", err}
	}
	return fd, nil
}

// replaceUnix binds fd to a path that is in use, if nobody listens there.
func replaceUnix(k sys.Kernel, fd int, path string) error {
	trial, err := k.Socket(sys.UnixFamily, sys.UnixStream)
	if err != nil {
		return fmt.Errorf("cannot try whether somebody listens there: %w", err)
	}
	err = k.ConnectUnix(trial, path)
	_ = k.Close(trial)
	switch err {
	case nil, syscall.EAGAIN: // of a full backlog
		return fmt.Errorf("somebody listens there: %w", syscall.EADDRINUSE)
	case syscall.EPROTOTYPE:
		return fmt.Errorf("somebody has a socket of another kind there: %w", syscall.EADDRINUSE)
	case syscall.ECONNREFUSED, syscall.ENOENT:
	default:
		return fmt.Errorf("cannot tell whether somebody listens there: %w", err)
	}
	// What is no socket refuses, too; UnlinkUnix leaves it.
	switch err := k.UnlinkUnix(path); err {
	case nil, syscall.ENOENT:
		return k.BindUnix(fd, path)
	case syscall.ENOTSOCK:
		return fmt.Errorf("there is something that is not a socket: %w", syscall.EADDRINUSE)
	default:
		return fmt.Errorf("cannot remove what is left there: %w", err)
	}
}

// ConnectUnix opens a unix socket that is connected to the one of that name.
//
//   - Errors: *Error with the step; EAGAIN of "connect" where the backlog is full.
func ConnectUnix(k sys.Kernel, name string, s StreamSettings) (fd int, err error) {
	fd, err = unixSocket(k, sys.UnixStream, &s)
	if err != nil {
		return -1, err
	}
	if err := k.ConnectUnix(fd, name); err != nil {
		_ = k.Close(fd)
		return -1, &Error{"connect", err}
	}
	return fd, nil
}

// OpenUnixgram opens a datagram socket, with a name and a peer where these are not empty.
//
//   - Errors: *Error with the step; nothing is left then, neither descriptor nor path.
func OpenUnixgram(k sys.Kernel, local, peer string, s StreamSettings) (fd int, err error) {
	fd, err = unixSocket(k, sys.Unixgram, &s)
	if err != nil {
		return -1, err
	}
	// Bind comes last, as it makes a path that would have to be removed again.
	if err := applyAll([]setting{
		{"connect", peer != "", func() error { return k.ConnectUnix(fd, peer) }},
		{"bind", local != "", func() error { return k.BindUnix(fd, local) }},
	}); err != nil {
		_ = k.Close(fd)
		return -1, err
	}
	return fd, nil
}

func unixSocket(k sys.Kernel, kind sys.Kind, s *StreamSettings) (fd int, err error) {
	fd, err = k.Socket(sys.UnixFamily, kind)
	if err != nil {
		return -1, &Error{"socket", err}
	}
	if err := s.Apply(k, fd, sys.UnixFamily); err != nil {
		_ = k.Close(fd)
		return -1, err
	}
	return fd, nil
}

// IsPath tells a path from an abstract name.
func IsPath(name string) bool { return name != "" && !strings.HasPrefix(name, "@") }
