package batch

import (
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

// Class is what a failed call means for its socket.
type Class uint8

const (
	Wait    Class = iota + 1 // nothing failed: wait until the socket is ready again
	Stale                    // about an earlier datagram, or perhaps so
	Offload                  // perhaps what the kernel or the device was to do with the datagram is to blame
	Size                     // the datagram is larger than the path or the protocol takes
	Lost                     // this datagram is lost, the next may pass
	Caller                   // the caller asked for what cannot be
	Dead                     // the descriptor is no socket any more

	classes
)

func (c Class) String() string {
	return [...]string{"", "wait", "stale", "offload", "size", "lost", "caller", "dead"}[c]
}

// Try is what SendClass has to know of the send that failed.
type Try struct {
	Again     bool // the datagram is being tried again after a Stale error
	Offloaded bool // the datagram has a segment size or a traffic class, which can be done without
}

// SendClass tells what the error of a send means. EINTR does not get here. The classes are asked for in their
// order, as an errno may mean several things:
//
//   - Wait: EAGAIN.
//   - Stale: what ICMP makes. The kernel answers such an error of an earlier datagram to the next call, whatever
//     that is about, and has not looked at its datagram then. So the datagram is tried once more, and what is
//     answered then is its own.
//   - Offload: EIO, EINVAL, EMSGSIZE of a datagram that was to be segmented or had a traffic class. It is
//     sent without; only if that passes is the offload to blame.
//   - Size: EMSGSIZE.
//   - Caller: EACCES (broadcast not allowed), EDESTADDRREQ, EISCONN, ENOTCONN, EAFNOSUPPORT, EINVAL, EPIPE.
//   - Dead: EBADF, ENOTSOCK, and the kernel that has no sockets.
//   - Lost: any other. It must neither close a socket nor be tried for ever.
//
// Source: send(2), sendmmsg(2), ip(7), ipv6(7), udp(7).
func SendClass(err error, t Try) Class {
	switch {
	case err == syscall.EAGAIN:
		return Wait
	case !t.Again && fromICMP(err):
		return Stale
	case t.Offloaded && (err == syscall.EIO || err == syscall.EINVAL || err == syscall.EMSGSIZE):
		return Offload
	}
	switch err {
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
	switch {
	case err == syscall.EAGAIN:
		return Wait
	case fromICMP(err):
		return Stale
	}
	switch err {
	case syscall.EBADF, syscall.ENOTSOCK, syscall.ENOTCONN, sys.ErrUnsupported:
		return Dead
	default:
		return Lost
	}
}

// fromICMP tells that an ICMP or ICMPv6 message may be behind an error (icmp_err_convert in Linux's
// net/ipv4/icmp.c, tab_unreach in net/ipv6/icmp.c).
func fromICMP(err error) bool {
	switch err {
	case syscall.ECONNREFUSED, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EHOSTDOWN, enonet,
		syscall.ENOPROTOOPT, syscall.EPROTO, syscall.EOPNOTSUPP, syscall.EMSGSIZE, syscall.EACCES:
		return true
	}
	return false
}
