package sock

import (
	"fmt"
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

// AdoptUDP makes a descriptor of our own for a socket that somebody else opened, and tells what it is.
func AdoptUDP(k sys.Kernel, from int) (fd int, d sys.Description, err error) {
	d, err = describe(k, from)
	switch {
	case err != nil:
	case d.Family == 0 || d.Family == sys.UnixFamily:
		err = fmt.Errorf("descriptor %d is not an internet socket: %w", from, syscall.EAFNOSUPPORT)
	case d.Kind != sys.UDP:
		err = fmt.Errorf("descriptor %d is not a UDP socket: %w", from, syscall.EPROTOTYPE)
	}
	if err != nil {
		return -1, d, err
	}
	fd, err = k.Duplicate(from)
	if err != nil {
		return -1, d, &Error{"dup", err}
	}
	return fd, d, nil
}

// AdoptStream makes a descriptor of our own for a TCP or unix stream socket that somebody else opened and that does
// not listen, and tells what it is. Calls on it do not block from then on, nor does the last close linger, for all who
// share it.
func AdoptStream(k sys.Kernel, from int) (own int, d sys.Description, err error) {
	d, err = describeStream(k, from)
	if err == nil && d.Listening {
		err = fmt.Errorf("descriptor %d is a listener: %w", from, syscall.EINVAL)
	}
	if err != nil {
		return -1, d, err
	}
	own, err = duplicateUnblocked(k, from)
	return own, d, err
}

// AdoptListener is AdoptStream of a socket that listens.
func AdoptListener(k sys.Kernel, from int) (own int, d sys.Description, err error) {
	d, err = describeStream(k, from)
	if err == nil && !d.Listening {
		err = fmt.Errorf("descriptor %d is not a listener: %w", from, syscall.EINVAL)
	}
	if err != nil {
		return -1, d, err
	}
	own, err = duplicateUnblocked(k, from)
	return own, d, err
}

func describe(k sys.Setup, from int) (d sys.Description, err error) {
	d, err = k.Describe(from)
	switch {
	case err == syscall.ENOTSOCK:
		return d, fmt.Errorf("descriptor %d is not a socket: %w", from, err)
	case err != nil:
		return d, fmt.Errorf("descriptor %d: %w", from, err)
	}
	return d, nil
}

func describeStream(k sys.Setup, from int) (d sys.Description, err error) {
	d, err = describe(k, from)
	switch {
	case err != nil:
		return d, err
	case d.Family == 0:
		return d, fmt.Errorf("descriptor %d is neither an internet nor a unix socket: %w", from, syscall.EAFNOSUPPORT)
	case d.Kind != sys.TCP && d.Kind != sys.UnixStream:
		return d, fmt.Errorf("descriptor %d is neither a TCP nor a unix stream socket: %w", from, syscall.EPROTOTYPE)
	}
	return d, nil
}

// duplicateUnblocked makes a descriptor of our own with which no call waits. A time to linger would have close(2) wait
// for the peer, whatever O_NONBLOCK says, and is inherited by what a listener accepts.
func duplicateUnblocked(k sys.Kernel, from int) (int, error) {
	own, err := k.Duplicate(from)
	if err != nil {
		return -1, &Error{"dup", err}
	}
	if err := applyAll([]setting{
		{"unblock", true, func() error { return k.Unblock(own) }},
		{"linger", true, func() error {
			linger, err := k.GetOption(own, sys.Linger)
			if err == nil && linger > 0 {
				err = k.SetOption(own, sys.Linger, -1)
			}
			return err
		}},
	}); err != nil {
		_ = k.Close(own)
		return -1, err
	}
	return own, nil
}
