package sock

import (
	"fmt"
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

// AdoptUDP makes a descriptor of our own for a socket that somebody else opened, and tells what it is.
func AdoptUDP(k sys.Kernel, from int) (fd int, d sys.Description, err error) {
	d, err = k.Describe(from)
	switch {
	case err == syscall.ENOTSOCK:
		return -1, d, fmt.Errorf("descriptor %d is not a socket: %w", from, err)
	case err != nil:
		return -1, d, fmt.Errorf("descriptor %d: %w", from, err)
	case d.Family == 0:
		return -1, d, fmt.Errorf("descriptor %d is not an internet socket: %w", from, syscall.EAFNOSUPPORT)
	case d.Kind != sys.UDP:
		return -1, d, fmt.Errorf("descriptor %d is not a UDP socket: %w", from, syscall.EPROTOTYPE)
	}
	fd, err = k.Duplicate(from)
	if err != nil {
		return -1, d, &Error{"dup", err}
	}
	return fd, d, nil
}
