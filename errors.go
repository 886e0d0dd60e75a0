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

	// ErrWouldBlock is the answer of a full queue. Nothing was taken, but by Conn.Write and Writev, which tell how much
	// was. OnDrain tells when to try again; PostContext, Sender.SendContext and ConnSender.WriteContext wait.
	ErrWouldBlock = errors.New("weir: would block")

	// ErrUnsupported is the answer of a system that lacks what was asked. It matches [errors.ErrUnsupported].
	ErrUnsupported = sys.ErrUnsupported
)

// OpError is an error with the operation and the addresses that it is about.
type OpError struct {
	Op     string         // "listen", "accept", "dial", "adopt", "send", "receive", "close", "watch", …; "open", "wait", "poll"
	Net    string         // "tcp", "unix", "udp", "unixgram", "fd" or "poller"; "conn" or "listener" in adopt
	Source netip.AddrPort // local address, where known
	Addr   netip.AddrPort // the other side, or the address asked for, where there is one
	Err    error          // the reason, often a syscall.Errno

	SourceName string // local name of a unix socket: a path, or "@" and an abstract name; empty where it has none
	Name       string // the other side's, or the name asked for, where there is one
}

func (e *OpError) Error() string {
	var b strings.Builder
	b.WriteString("weir: " + e.Op + " " + e.Net)
	source, other := endpoint(e.Source, e.SourceName), endpoint(e.Addr, e.Name)
	if source != "" {
		b.WriteString(" " + source)
	}
	if other != "" {
		if source != "" {
			b.WriteString("->")
		} else {
			b.WriteString(" ")
		}
		b.WriteString(other)
	}
	b.WriteString(": " + strings.TrimPrefix(e.Err.Error(), "weir: "))
	return b.String()
}

// endpoint is the text of one side: an address, or the name of a unix socket.
func endpoint(addr netip.AddrPort, name string) string {
	if addr.IsValid() {
		return addr.String()
	}
	return name
}

// Unwrap returns the reason.
func (e *OpError) Unwrap() error { return e.Err }
