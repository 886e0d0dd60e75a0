package weir

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/weirnet/weir/internal/sys"
)

var (
	// ErrClosed is the answer of a loop or source that has been closed. It matches [net.ErrClosed].
	ErrClosed = fmt.Errorf("weir: %w", net.ErrClosed)

	// ErrWouldBlock is the answer of a full queue. Nothing was taken. OnDrain tells when to try Send again;
	// PostContext and Sender.SendContext wait.
	ErrWouldBlock = errors.New("weir: would block")

	// ErrUnsupported is the answer of a system that lacks what was asked. It matches [errors.ErrUnsupported].
	ErrUnsupported = sys.ErrUnsupported
)

// OpError is an error with the operation and the addresses that it is about.
type OpError struct {
	Op     string         // "listen", "dial", "connect", "disconnect", "send", "receive"; "open", "wait", "poll"
	Net    string         // "udp", or "poller"
	Source netip.AddrPort // local address, where known
	Addr   netip.AddrPort // the other side, or the address asked for, where there is one
	Err    error          // the reason, often a syscall.Errno
}

func (e *OpError) Error() string {
	var b strings.Builder
	b.WriteString("weir: " + e.Op + " " + e.Net)
	if e.Source.IsValid() {
		b.WriteString(" " + e.Source.String())
	}
	if e.Addr.IsValid() {
		if e.Source.IsValid() {
			b.WriteString("->")
		} else {
			b.WriteString(" ")
		}
		b.WriteString(e.Addr.String())
	}
	b.WriteString(": " + strings.TrimPrefix(e.Err.Error(), "weir: "))
	return b.String()
}

// Unwrap returns the reason.
func (e *OpError) Unwrap() error { return e.Err }
