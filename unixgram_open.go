package weir

import (
	"syscall"

	"github.com/weirnet/weir/internal/sock"
	"github.com/weirnet/weir/internal/sys"
)

// openUnixgramFD opens, names and, where a peer is given, connects a socket.
func (l *Loop) openUnixgramFD(op, local, peer string, cfg UnixgramConfig) (fd int, err error) {
	fd, err = l.kernel.Socket(sys.UnixFamily, sys.Unixgram)
	if err != nil {
		return -1, &sock.Error{Step: "socket", Err: err}
	}
	if err := prepareUnixgram(l.kernel, fd, op, local, peer, cfg); err != nil {
		_ = l.kernel.Close(fd)
		return -1, err
	}
	return fd, nil
}

func prepareUnixgram(k sys.Kernel, fd int, op, local, peer string, cfg UnixgramConfig) error {
	if cfg.SendBufferBytes != 0 {
		if err := sock.SetBuffer(k, fd, sys.SendBuffer, sys.SendBufferForce, cfg.SendBufferBytes); err != nil {
			return &sock.Error{Step: "SendBufferBytes", Err: err}
		}
	}
	if op == "listen" || local != "" {
		if err := bindUnixgram(k, fd, local, cfg.Replace); err != nil {
			return &sock.Error{Step: "bind", Err: err}
		}
	}
	if op == "listen" {
		return nil
	}
	err := error(syscall.EDESTADDRREQ) // the kernel would take no name for the end of an association
	if peer != "" {
		err = k.ConnectUnix(fd, peer)
	}
	if err != nil {
		if isPath(local) {
			_ = k.UnlinkUnix(local)
		}
		return &sock.Error{Step: "connect", Err: err}
	}
	return nil
}

// bindUnixgram gives a socket its name, and makes room for it where that is to be had.
func bindUnixgram(k sys.Kernel, fd int, name string, replace bool) error {
	err := k.BindUnix(fd, name)
	if err != syscall.EADDRINUSE || !replace || !isPath(name) || !isStale(k, name) {
		return err
	}
	if err := k.UnlinkUnix(name); err != nil && err != syscall.ENOENT {
		return err
	}
	return k.BindUnix(fd, name)
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
