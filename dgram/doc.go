// Package dgram is batched UDP for goroutines: a [Conn] is a net.PacketConn and a net.Conn that quic-go, DNS and WebRTC
// libraries take as it is, with what makes UDP fast on Linux (recvmmsg, sendmmsg, GRO, GSO) and errors that cannot kill
// what shares the socket.
//
// A Conn does the same as a *net.UDPConn, but for this:
//
//   - A read fails only when the deadline has passed or the Conn is closed. Errors that the kernel has for the socket, such
//     as the ICMP error of another peer, are counted in [Stats] and passed over.
//   - A datagram that the system refuses (a firewall, no route, no memory) is lost as any datagram may be: counted by the
//     kind of the error, and answered with success. Errors are what the caller did wrong, and EMSGSIZE, which discovery of
//     the path's MTU needs.
//   - A train of datagrams (UDP_SEGMENT) that the device or the path refuses goes out datagram by datagram; no later train
//     is tried for that destination.
//   - IPv4 peers are IPv4 also through an IPv6 socket, and zones are numbers.
//
// It waits in the runtime's poller, as goroutines do for any net.Conn (docs/adr/0019). A loop of package weir is faster
// where the program is its callbacks.
//
// # Limits
//
//   - Linux has all of this. Elsewhere a Conn is a net.UDPConn with these errors and counts.
//   - Whoever reads the descriptor past the Conn, by SyscallConn, ends GRO, and does not see what was read ahead. So does
//     ReadBatch of the ipv4.PacketConn and ipv6.PacketConn that golang.org/x/net makes of a Conn, and their ReadFrom fails:
//     they are for options.
package dgram
