package stream

import (
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

// Class is what a failed call means for its socket.
type Class uint8

const (
	Wait   Class = iota + 1 // nothing failed: wait until the socket is ready again
	Memory                  // the system is short of memory: try again after a rest
	Gone                    // the connection is over
	Next                    // the connection that was to be accepted is lost, the next may be well
	Full                    // no descriptor is left: connections wait until one is
	Dead                    // the descriptor does not listen any more

	classes
)

func (c Class) String() string {
	return [...]string{"", "wait", "memory", "gone", "next", "full", "dead"}[c]
}

// ReadClass tells what the error of a read means: Wait, Memory or Gone. EINTR does not get here.
//
//   - Wait: EAGAIN.
//   - Memory: ENOBUFS, ENOMEM. The bytes are still in the socket.
//   - Gone: any other. A stream that has lost its place cannot be gone on with, so there is nothing in between:
//     ECONNRESET, ETIMEDOUT, EPIPE, ECONNABORTED, ECONNREFUSED, ENOTCONN; what ICMP made of a connection (ENETDOWN,
//     ENETUNREACH, EHOSTUNREACH, EHOSTDOWN, ENONET, ENOPROTOOPT, EPROTO, EOPNOTSUPP); EBADF, ENOTSOCK; and the
//     kernel that has no streams.
//
// Source: recv(2), tcp(7) "Error handling", unix(7).
func ReadClass(err error) Class {
	switch err {
	case syscall.EAGAIN:
		return Wait
	case syscall.ENOBUFS, syscall.ENOMEM:
		return Memory
	default:
		return Gone
	}
}

// WriteClass tells what the error of a write means: as ReadClass, and ETOOMANYREFS is Memory, too: the user has more
// descriptors on their way than a process may have open, and what takes them off is any receiver of his.
// What SendFile answers about its file is not asked for here.
//
// Source: send(2), tcp(7) "Error handling", unix(7).
func WriteClass(err error) Class {
	if err == syscall.ETOOMANYREFS {
		return Memory
	}
	return ReadClass(err)
}

// AcceptClass tells what the error of an accept means: Wait, Memory, Next, Full or Dead. EINTR does not get here.
//
//   - Wait: EAGAIN.
//   - Full: EMFILE, ENFILE. Memory: ENOBUFS, ENOMEM. The connection stays in the queue, and the listener readable.
//   - Dead: EBADF, ENOTSOCK, EINVAL (it does not listen), and the kernel that has no streams.
//   - Next: any other. ECONNABORTED, EPERM (a firewall), EPROTO, and the network's errors, which Linux answers of
//     the new socket: ENETDOWN, ENOPROTOOPT, EHOSTDOWN, ENONET, EHOSTUNREACH, EOPNOTSUPP, ENETUNREACH. One that comes
//     again and again means that accepting is what has failed.
//
// Source: accept(2), "Error handling".
func AcceptClass(err error) Class {
	switch err {
	case syscall.EAGAIN:
		return Wait
	case syscall.EMFILE, syscall.ENFILE:
		return Full
	case syscall.ENOBUFS, syscall.ENOMEM:
		return Memory
	case syscall.EBADF, syscall.ENOTSOCK, syscall.EINVAL, sys.ErrUnsupported:
		return Dead
	default:
		return Next
	}
}
