//go:build !linux

package socket

import "errors"

// Drops is what the kernel has dropped for want of room in the socket's buffer; only Linux tells.
func Drops(Conn) (uint64, error) { return 0, errors.ErrUnsupported }
