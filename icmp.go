package weir

import (
	"fmt"
	"net/netip"
	"syscall"
)

// ICMPError is what the network said of datagrams that a socket has sent: reports of a kind about a peer, in
// one. It unwraps to its errno.
//
//   - Source: ip(7) IP_RECVERR, ipv6(7) IPV6_RECVERR.
type ICMPError struct {
	Peer     netip.AddrPort // where the datagrams were to go
	Offender netip.Addr     // who said so last: the peer itself, or a router on the way
	Errno    syscall.Errno  // ECONNREFUSED: nobody listens at the port. EHOSTUNREACH, ENETUNREACH, EMSGSIZE, …
	MTU      int            // with EMSGSIZE: the largest packet that the path takes, in bytes with IP header
	Count    int            // reports, since the last ICMPError of the kind
}

func (e *ICMPError) Error() string {
	text := fmt.Sprintf("weir: icmp %v says of %v: %v", e.Offender, e.Peer, e.Errno)
	if e.MTU > 0 {
		text += fmt.Sprintf(" (MTU %d)", e.MTU)
	}
	if e.Count > 1 {
		text += fmt.Sprintf(" (%d times)", e.Count)
	}
	return text
}

// Unwrap returns the errno.
func (e *ICMPError) Unwrap() error { return e.Errno }

// SizeError is the reason of an OpError for a datagram that is larger than its path takes. It unwraps to
// EMSGSIZE.
type SizeError struct {
	Bytes int // of the datagram's payload
	MTU   int // the largest packet that the path takes, in bytes with IP header; 0: not known
}

func (e *SizeError) Error() string {
	text := fmt.Sprintf("%d bytes: %v", e.Bytes, syscall.EMSGSIZE)
	if e.MTU > 0 {
		text += fmt.Sprintf(" (MTU %d)", e.MTU)
	}
	return text
}

// Unwrap returns syscall.EMSGSIZE.
func (e *SizeError) Unwrap() error { return syscall.EMSGSIZE }
