package batch

import (
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

// Class is what a failed call means for its socket.
type Class uint8

const (
	Wait   Class = iota + 1 // nothing failed: wait until the socket is ready again
	Stale                   // about an earlier datagram, or perhaps so; a send is tried once more
	Size                    // the datagram is larger than the path or the protocol takes
	Lost                    // this datagram is lost, the next may pass
	Caller                  // the caller asked for what cannot be
	Dead                    // the descriptor is no socket any more
)

func (c Class) String() string {
	return [...]string{"", "wait", "stale", "size", "lost", "caller", "dead"}[c]
}

// SendClass tells what the error of a send means. An errno that is not listed is Lost: it must neither
// close a socket nor be tried for ever. What ICMP makes is Stale: the kernel answers such an error of an
// earlier datagram to the next call, whatever that is about, and has not looked at its datagram then.
//
//   - Source: send(2), sendmmsg(2), ip(7), udp(7).
func SendClass(err error) Class {
	switch err {
	case syscall.EAGAIN:
		return Wait
	case syscall.ECONNREFUSED, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EHOSTDOWN,
		syscall.ENOPROTOOPT, syscall.EPROTO, syscall.EOPNOTSUPP:
		return Stale
	case syscall.EMSGSIZE:
		return Size
	case syscall.EACCES, syscall.EDESTADDRREQ, syscall.EISCONN, syscall.ENOTCONN,
		syscall.EAFNOSUPPORT, syscall.EINVAL, syscall.EPIPE:
		return Caller
	case syscall.EBADF, syscall.ENOTSOCK, sys.ErrUnsupported:
		return Dead
	default:
		return Lost
	}
}

// RecvClass tells what the error of a receive means. What ICMP makes is Stale: a report about a datagram sent
// earlier, after which the socket is well. Anything that is not listed is Lost; if it comes again and again,
// receiving is what has failed.
func RecvClass(err error) Class {
	switch err {
	case syscall.EAGAIN:
		return Wait
	case syscall.ECONNREFUSED, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EHOSTDOWN,
		syscall.ENOPROTOOPT, syscall.EPROTO, syscall.EOPNOTSUPP, syscall.EMSGSIZE:
		return Stale
	case syscall.EBADF, syscall.ENOTSOCK, syscall.ENOTCONN, sys.ErrUnsupported:
		return Dead
	default:
		return Lost
	}
}
