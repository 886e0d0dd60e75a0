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
	"os"
	"time"
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
	Stream
	Unix
	Options
}

// Setup makes, names and ends descriptors.
type Setup interface {
	// Socket makes a non-blocking, close-on-exec socket.
	//
	//   - Errors: EPROTONOSUPPORT for a kind that the family has not.
	Socket(f Family, k Kind) (fd int, err error)

	// Bind gives the socket its local address; port 0 lets the kernel choose. An IPv4-mapped address
	// binds an IPv6 socket to that IPv4 address.
	Bind(fd int, addr netip.AddrPort) error

	// Connect sets the default peer and the filter on sources; the zero AddrPort dissolves it (AF_UNSPEC). Of a TCP
	// socket it begins the handshake, and answers EINPROGRESS where that is not over at once: the socket is Writable
	// when it is, and SocketError then says how it went. An IPv6 TCP socket takes IPv4 addresses as mapped ones alone.
	Connect(fd int, addr netip.AddrPort) error

	// LocalAddr is getsockname(2), RemoteAddr getpeername(2) (ENOTCONN when there is no peer).
	LocalAddr(fd int) (netip.AddrPort, error)
	RemoteAddr(fd int) (netip.AddrPort, error)

	// Describe tells what a descriptor is that somebody else opened.
	//
	//   - Errors: EBADF, ENOTSOCK.
	Describe(fd int) (Description, error)

	// Duplicate makes another descriptor for a socket, close-on-exec. Whether calls of others block, which all
	// descriptors of a socket share, stays as it is; those of a Kernel never do.
	//
	//   - Source: fcntl(2) F_DUPFD_CLOEXEC.
	Duplicate(fd int) (int, error)

	// Unblock makes a descriptor that somebody else opened non-blocking, for all who share it: Accept and
	// SendFile need that.
	Unblock(fd int) error

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

	// RecvErrors takes up to n reports from the error queue of a socket that has Reports or Reports6 on.
	//
	//   - Shape: 1 <= n <= len(b.Reports); on success 1 <= got <= n, and b.Reports[:got] is filled.
	//   - Errors: only with got == 0; EAGAIN when the queue is empty.
	//   - Source: ip(7) IP_RECVERR, recvmmsg(2) with MSG_ERRQUEUE.
	RecvErrors(fd int, b *ReportBatch, n int) (got int, err error)

	// Unbatched tells why Recv or Send move one message a system call: nil where they move many.
	Unbatched() (recv, send error)
}

// Stream moves bytes, on sockets of the kinds TCP and UnixStream.
type Stream interface {
	// Listen has the socket take connections; again, it changes the backlog.
	//
	//   - Units: backlog is the number of connections that wait for Accept (Linux: one more, and at most
	//     net.core.somaxconn).
	//   - Errors: EADDRINUSE where another socket listens at the port. An unbound TCP socket is given a port.
	Listen(fd, backlog int) error

	// Accept takes a connection out of a listener's queue, non-blocking and close-on-exec.
	//
	//   - Shape: peer is zero for a unix socket, and may be where the connection is gone already.
	//   - Errors: EMFILE, ENFILE, ENOBUFS, ENOMEM leave the connection in the queue, ECONNABORTED and the network's
	//     (accept(2), "Error handling") do not; EINVAL when the socket does not listen.
	Accept(fd int) (conn int, peer netip.AddrPort, err error)

	// Read reads up to len(b) bytes, len(b) > 0.
	//
	//   - Shape: n == 0 without an error is the end of the stream.
	//   - Errors: only with n == 0. What was received comes before an error. ECONNRESET and the like once, to Read,
	//     Write or SocketError, then the end of the stream; behind the end of the stream to the other two alone.
	//     ENOTCONN of TCP, EINVAL of a unix socket that has no peer.
	//   - Source: recv(2).
	Read(fd int, b []byte) (n int, err error)

	// Write writes the bytes of v.Bufs in their order, as far as there is room. more says that the caller has more that
	// follows at once (MSG_MORE). It raises no SIGPIPE.
	//
	//   - Shape: on success 1 <= n; less than there is means that there was no room for more.
	//   - Errors: only with n == 0. EAGAIN; EPIPE after CloseWrite, or when the peer is gone; ECONNRESET, once, of TCP
	//     (a unix socket keeps it for Read). Without a peer EPIPE of TCP, ENOTCONN of a unix socket.
	//   - Source: send(2), sendmsg(2).
	Write(fd int, v *Vector, more bool) (n int, err error)

	// SendFile writes up to n bytes of f from offset on. f's own offset stays as it is.
	//
	//   - Shape: sent == 0 without an error: the file ends at offset.
	//   - Errors: as Write; EINVAL, ENOSYS, EOPNOTSUPP and ErrUnsupported where it cannot be done with this file; ESPIPE
	//     of a pipe, which has no offsets; EBADF of a file that was closed.
	//   - Platforms: Linux raises SIGPIPE with EPIPE, which a Go program does not see unless it asks for it.
	//   - Source: sendfile(2).
	SendFile(fd int, f *os.File, offset int64, n int, more bool) (sent int, err error)

	// CloseWrite ends the writing direction: the peer reads the end of the stream behind what was written.
	//
	//   - Errors: ENOTCONN of a TCP socket that has no peer, or none any more: both directions are over, or it was reset.
	//   - Source: shutdown(2) SHUT_WR.
	CloseWrite(fd int) error

	// Info tells how a TCP connection goes.
	//
	//   - Errors: EOPNOTSUPP or ENOPROTOOPT of what is no TCP socket.
	//   - Source: tcp(7) TCP_INFO.
	Info(fd int) (TCPInfo, error)
}

// Unix is what sockets of the family Unix have of their own. A name is a path, or "@" and an abstract name; the
// empty name is that of a socket without one.
type Unix interface {
	// BindUnix gives the socket its name. A path is made, and stays when the socket is closed.
	//
	//   - Errors: EADDRINUSE for a path or a name that is there; ENOENT, ENOTDIR, EACCES; EINVAL for an empty name, a
	//     socket that has one, and an abstract name of more than 107 bytes; ENAMETOOLONG.
	//   - Platforms: Linux takes directories of any length, by way of /proc: of a path of more than 107 bytes the last
	//     part may have 80, and LocalUnix and those who receive from it are told /proc/self/fd/… for the directory.
	//     Linux alone has abstract names.
	BindUnix(fd int, name string) error

	// ConnectUnix connects to the socket of that name, at once. The empty name dissolves the association of a
	// Unixgram socket.
	//
	//   - Errors: ENOENT, ECONNREFUSED where nobody listens, EAGAIN where the backlog is full, EPROTOTYPE where the
	//     kinds differ, EISCONN; EPERM where a Unixgram socket of that name has another peer; EINVAL for a stream and
	//     the empty name.
	ConnectUnix(fd int, name string) error

	// LocalUnix and RemoteUnix are getsockname(2) and getpeername(2), ENOTCONN when there is no peer.
	LocalUnix(fd int) (string, error)
	RemoteUnix(fd int) (string, error)

	// UnlinkUnix removes the path of a socket; ENOENT where there is none, ENOTSOCK where it is something else.
	UnlinkUnix(path string) error

	// SendUnix sends b as one datagram: to the socket of that name, or to the peer where the name is empty.
	//
	//   - Errors: EAGAIN when the receiver's queue is full, which only a socket that is connected to it can wait for as
	//     Writable, or the own buffer; ECONNREFUSED, which once dissolves the association with a closed peer, ENOENT,
	//     EMSGSIZE, ENOTCONN, EPERM, EPROTOTYPE, EPIPE.
	SendUnix(fd int, b []byte, to string) error

	// RecvUnix receives one datagram into b.
	//
	//   - Shape: from is empty where the sender has no name; n == 0 is an empty datagram.
	//   - Errors: EAGAIN; ECONNRESET, once, where the peer of a connected socket was connected back, and has dropped what
	//     it had not received as it took another.
	RecvUnix(fd int, b []byte) (n int, from string, flags Flags, err error)

	// WriteFiles is Write with copies of descriptors, which go with the first byte. v must not be empty.
	//
	//   - Shape: on success all of files have gone, however small n is; else none.
	//   - Errors: as Write; EINVAL for more than 253 (SCM_MAX_FD), ETOOMANYREFS, EBADF.
	//   - Source: unix(7) SCM_RIGHTS.
	WriteFiles(fd int, v *Vector, files []int) (n int, err error)

	// ReadFiles is Read that takes descriptors that come with the bytes into f.FDs, close-on-exec. Bytes behind those
	// of a message with descriptors are left for the next call; those in front may come in the same one.
	//
	//   - Shape: at most f's room are taken; the kernel closes what is more, and f.Truncated says so.
	//   - Errors: as Read; then f is empty.
	ReadFiles(fd int, b []byte, f *Files) (n int, err error)
}

// Options reads and sets what a socket can be told.
type Options interface {
	SetOption(fd int, o Option, value int) error
	GetOption(fd int, o Option) (value int, err error)

	// MemInfo tells the socket's buffers and what the kernel dropped.
	MemInfo(fd int) (MemInfo, error)

	// BindToDevice keeps a socket to an interface by its name; the empty name ends that.
	//
	//   - Source: socket(7) SO_BINDTODEVICE.
	BindToDevice(fd int, name string) error

	// Membership joins or leaves a multicast group.
	//
	//   - Errors: EADDRINUSE for a group joined already, EADDRNOTAVAIL for one that was not, ENODEV. With a
	//     Source: EADDRNOTAVAIL for one joined already or not, EINVAL to leave one of a group that was not.
	//   - Platforms: Linux also gives a group that any socket of the machine joined to those that joined
	//     nothing and are bound to a wildcard or to the group (IP_MULTICAST_ALL).
	//   - Source: ip(7), ipv6(7), RFC 3678 section 5.
	Membership(fd int, m Membership, join bool) error
}

// Family is the address family of a socket.
type Family uint8

const (
	IPv4 Family = iota + 1
	IPv6
	UnixFamily // AF_UNIX
)

// Kind is the type of a socket.
type Kind uint8

const (
	UDP Kind = iota + 1
	TCP
	UnixStream // SOCK_STREAM of the family UnixFamily
	Unixgram   // SOCK_DGRAM of the family UnixFamily
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

	RecvBufferForce // SO_RCVBUFFORCE: beyond the system's limit, for the privileged (EPERM)
	SendBufferForce // SO_SNDBUFFORCE

	TTL          // IP_TTL, 1 to 255; -1: the system's
	HopLimit     // IPV6_UNICAST_HOPS, 0 to 255; -1: the system's
	TOS          // IP_TOS, of what is sent
	TrafficClass // IPV6_TCLASS; -1: the system's

	MulticastTTL        // IP_MULTICAST_TTL
	MulticastHopLimit   // IPV6_MULTICAST_HOPS
	MulticastLoop       // IP_MULTICAST_LOOP: what is sent comes back to members on this machine
	MulticastLoop6      // IPV6_MULTICAST_LOOP
	MulticastInterface  // IP_MULTICAST_IF, by the interface's number; 0: the route's. Set only
	MulticastInterface6 // IPV6_MULTICAST_IF. Set only

	PathMTUDiscovery  // IP_MTU_DISCOVER, a PathMTUMode
	PathMTUDiscovery6 // IPV6_MTU_DISCOVER
	PathMTU           // IP_MTU of a connected socket. Get only
	PathMTU6          // IPV6_MTU. Get only

	Reports  // IP_RECVERR: ICMP errors go to the error queue, also those of an unconnected socket
	Reports6 // IPV6_RECVERR

	RecvTOS          // IP_RECVTOS: Control.TrafficClass of what is received
	RecvTrafficClass // IPV6_RECVTCLASS
	RecvLocal        // IP_PKTINFO: Control.Local and Control.Interface
	RecvLocal6       // IPV6_RECVPKTINFO
	RecvTime         // SO_TIMESTAMPNS: Control.Time
	RecvJoined       // UDP_GRO: datagrams of a size may come as one message, with Control.Segment
	SegmentSize      // UDP_SEGMENT of all that is sent; 0: none. Tells by ENOPROTOOPT that there is no GSO

	NoDelay      // TCP_NODELAY
	KeepAlive    // SO_KEEPALIVE
	KeepIdle     // TCP_KEEPIDLE, in seconds
	KeepInterval // TCP_KEEPINTVL, in seconds
	KeepCount    // TCP_KEEPCNT
	UserTimeout  // TCP_USER_TIMEOUT, in milliseconds; 0: the system's
	DeferAccept  // TCP_DEFER_ACCEPT, in seconds
	Linger       // SO_LINGER, in seconds; -1: off. 0: Close resets the connection
	NotSentLowAt // TCP_NOTSENT_LOWAT, in bytes
	MaxSegment   // TCP_MAXSEG
)

// PathMTUMode is what a socket does about datagrams that are larger than the path takes.
type PathMTUMode int

const (
	FragmentByRoute PathMTUMode = 1 // IP_PMTUDISC_WANT: fragments what is larger than the path's MTU is known to be
	FragmentAlways  PathMTUMode = 0 // IP_PMTUDISC_DONT: never asks that datagrams stay whole
	FragmentNever   PathMTUMode = 2 // IP_PMTUDISC_DO: EMSGSIZE for what is larger than the path's MTU is known to be
	FragmentProbe   PathMTUMode = 3 // IP_PMTUDISC_PROBE: whole, whatever is known of the path; EMSGSIZE by the device alone
	FragmentOmit    PathMTUMode = 5 // IP_PMTUDISC_OMIT: fragments, and believes no report of a smaller MTU
)

// Membership is a multicast group on an interface.
type Membership struct {
	Group     netip.Addr
	Source    netip.Addr // where valid: what this sender sends alone (source-specific multicast)
	Interface int        // its number; 0: the route's
}

// Description is what a descriptor is. Family and Kind are zero for what is not known here.
type Description struct {
	Family    Family
	Kind      Kind
	Listening bool   // SO_ACCEPTCONN
	Cookie    uint64 // SO_COOKIE: the same for all descriptors of a socket, and for no other socket; 0: not told
}

// TCPInfo is how a connection goes, as the kernel sees it.
type TCPInfo struct {
	RTT              time.Duration // smoothed
	RTTVariance      time.Duration
	MinRTT           time.Duration
	SendMSS          int    // bytes
	CongestionWindow int    // segments
	Unacked          int    // segments
	Lost             int    // segments
	Retransmits      uint64 // segments, in all
	BytesAcked       uint64 // the SYN of who connects is one, and so is a FIN
	BytesReceived    uint64
	NotSentBytes     int
	DeliveryRate     uint64 // bytes a second
}

// MemInfo is what the kernel says of a socket's memory, in bytes as the kernel charges them.
type MemInfo struct {
	RecvQueued int    // SK_MEMINFO_RMEM_ALLOC: an upper estimate while the queue is read
	RecvLimit  int    // SK_MEMINFO_RCVBUF
	SendLimit  int    // SK_MEMINFO_SNDBUF
	Drops      uint32 // SK_MEMINFO_DROPS: datagrams dropped since the socket was made; wraps
}
