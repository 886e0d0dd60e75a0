// Quicperf moves bytes, or small requests, over quic-go's connections, whose sockets are of package net or dgram. It is a
// server, a client, or both in one process, and does one thing:
//
//   - down: the server sends on one stream of each connection, in writes of 1 MiB.
//   - up: the client sends, in writes of 1 MiB; with -bytes it ends the stream after so many, waits until the server has
//     told that all has come, and opens the next.
//   - small: the client opens a stream, sends 64 bytes, and has 64 bytes back, again and again on each connection.
//
// It answers each line on its standard input as package meter does. What it counts are the bytes that it has received, or
// the requests that were answered; the median and the 99th percentile of how long these took since the line before, in
// nanoseconds; what the kernel has dropped at its sockets, and what the sockets say of that themselves (with GRO
// both count a train of datagrams as one); how many packets of its own quic-go holds for lost; and with -tick the
// ticks of a timer on a weir loop, and the 99th percentile of how late they were, in nanoseconds. With -window it needs
// nobody who asks: it prints what that time gave, in words, and ends.
package main
