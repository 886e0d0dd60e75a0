package weir

import (
	"errors"
	"syscall"

	"github.com/weirnet/weir/internal/sock"
	"github.com/weirnet/weir/internal/sys"
)

// openUnixgramFD opens a socket, and makes room for its path where that is to be had.
func (l *Loop) openUnixgramFD(op, local, peer string, cfg UnixgramConfig) (fd int, err error) {
	switch {
	case op == "listen" && local == "":
		return -1, &sock.Error{Step: "bind", Err: syscall.EINVAL}
	case op == "dial" && peer == "":
		return -1, &sock.Error{Step: "connect", Err: syscall.EDESTADDRREQ}
	}
	settings := sock.StreamSettings{SendBufferBytes: cfg.SendBufferBytes}
	fd, err = sock.OpenUnixgram(l.kernel, local, peer, settings)
	if !errors.Is(err, syscall.EADDRINUSE) || !cfg.Replace || !sock.IsPath(local) || !isStale(l.kernel, local) {
		return fd, err
	}
	if gone := l.kernel.UnlinkUnix(local); gone != nil && gone != syscall.ENOENT {
		return -1, err // it is no socket, or nobody's to remove
	}
	return sock.OpenUnixgram(l.kernel, local, peer, settings)
}

// isStale tells that a path is a socket's which nobody has open: who connects to it is refused.
func isStale(k sys.Kernel, path string) bool {
	probe, err := k.Socket(sys.UnixFamily, sys.Unixgram)
	if err != nil {
		return false
	}
	err = k.ConnectUnix(probe, path)
	_ = k.Close(probe)
	return err == syscall.ECONNREFUSED
}
