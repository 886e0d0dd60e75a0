// Package socket opens a UDP socket by package net or dgram, whichever a program is told to use.
package socket

import (
	"context"
	"fmt"
	"net"
	"syscall"

	"github.com/weirnet/weir/dgram"
)

// The kinds of sockets.
const (
	Net   = "net"   // net.UDPConn
	Dgram = "dgram" // dgram.Conn
)

// Conn is a socket of either kind: the concrete one, so that who looks for more methods finds them.
type Conn interface {
	net.PacketConn
	syscall.Conn
}

// Open opens a socket of a kind on a free port of 127.0.0.1.
func Open(kind string) (Conn, error) {
	switch kind {
	case Net:
		return net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	case Dgram:
		return dgram.Listen(context.Background(), "udp4", "127.0.0.1:0", dgram.Config{})
	}
	return nil, fmt.Errorf("no kind of socket %q: %s or %s", kind, Net, Dgram)
}

// Told is what the socket itself says that the kernel has dropped; one of package net does not say.
func Told(c Conn) uint64 {
	if d, ok := c.(*dgram.Conn); ok {
		return d.Stats().KernelDropped
	}
	return 0
}
