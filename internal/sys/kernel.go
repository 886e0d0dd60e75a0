// Package sys is the kernel as a value: the contract that the loop holds, and the real kernel behind it.
//
// The contract is mechanism without policy. A method is one system call (or the loop of single calls
// that stands in for a missing batched one); it retries EINTR and nothing else. Types are neutral, so
// that a kernel in memory and one over std net can answer too. Every error is a [syscall.Errno] or
// [ErrUnsupported]; who may do what about it is decided above.
package sys

import (
	"errors"
	"fmt"
	"net/netip"
)

// ErrUnsupported is the answer of a kernel that lacks the operation. It matches [errors.ErrUnsupported].
var ErrUnsupported = fmt.Errorf("not supported by this kernel: %w", errors.ErrUnsupported)

// Kernel is what a loop asks of an operating system, split by role.
//
//   - Owner: a descriptor's calls come from one goroutine at a time, except MemInfo, which may run
//     beside Recv and Send.
//   - Errors: syscall.Errno values; EAGAIN where a call would have to wait.
type Kernel interface {
	Setup
	Datagram
	Options
}

// Setup makes, names and ends descriptors.
type Setup interface {
	// Socket makes a non-blocking, close-on-exec socket.
	Socket(f Family, k Kind) (fd int, err error)

	// Bind gives the socket its local address; port 0 lets the kernel choose. An IPv4-mapped address
	// binds an IPv6 socket to that IPv4 address.
	Bind(fd int, addr netip.AddrPort) error

	// Connect sets the default peer and the filter on sources. The zero AddrPort dissolves it (AF_UNSPEC).
	Connect(fd int, addr netip.AddrPort) error

	// LocalAddr is getsockname(2), RemoteAddr getpeername(2) (ENOTCONN when there is no peer).
	LocalAddr(fd int) (netip.AddrPort, error)
	RemoteAddr(fd int) (netip.AddrPort, error)

	// Close ends the descriptor. It must have left every poller before.
	Close(fd int) error
}

// Datagram moves messages.
type Datagram interface {
	// Recv receives up to n datagrams into b.Msgs[:n].
	//
	//   - Shape: 1 <= n <= len(b.Msgs); on success 1 <= got <= n, and b.Msgs[:got] is filled.
	//   - Errors: only with got == 0. An error behind the first datagram is kept for the next call.
	//   - Platforms: one datagram a call where recvmmsg is missing.
	//   - Source: recvmmsg(2).
	Recv(fd int, b *RecvBatch, n int) (got int, err error)

	// Send sends b.Msgs[from:to] in order.
	//
	//   - Shape: on success 1 <= sent <= to-from; the caller goes on from from+sent to learn why it stopped.
	//   - Errors: only with sent == 0, and about b.Msgs[from] alone.
	//   - Source: sendmmsg(2).
	Send(fd int, b *SendBatch, from, to int) (sent int, err error)
}

// Options reads and sets what a socket can be told.
type Options interface {
	SetOption(fd int, o Option, value int) error
	GetOption(fd int, o Option) (value int, err error)

	// MemInfo tells the socket's buffers and what the kernel dropped.
	MemInfo(fd int) (MemInfo, error)
}

// Family is the address family of a socket.
type Family uint8

const (
	IPv4 Family = iota + 1
	IPv6
)

// Kind is the type of a socket.
type Kind uint8

const (
	UDP Kind = iota + 1
)

// Option names a socket option without its platform's number.
type Option uint8

const (
	ReuseAddr   Option = iota + 1 // SO_REUSEADDR
	ReusePort                     // SO_REUSEPORT
	Broadcast                     // SO_BROADCAST
	RecvBuffer                    // SO_RCVBUF; reads back what the kernel made of it (Linux: doubled)
	SendBuffer                    // SO_SNDBUF
	IPv6Only                      // IPV6_V6ONLY
	SocketError                   // SO_ERROR; reading clears it
)

// MemInfo is what the kernel says of a socket's memory, in bytes as the kernel charges them.
type MemInfo struct {
	RecvQueued int    // SK_MEMINFO_RMEM_ALLOC: an upper estimate while the queue is read
	RecvLimit  int    // SK_MEMINFO_RCVBUF
	SendLimit  int    // SK_MEMINFO_SNDBUF
	Drops      uint32 // SK_MEMINFO_DROPS: datagrams dropped since the socket was made; wraps
}
