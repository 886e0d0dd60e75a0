package weir

import (
	"fmt"
	"net/netip"

	"github.com/weirnet/weir/internal/sock"
)

// UDPConfig is a UDP socket's. The zero UDPConfig works.
type UDPConfig struct {
	// Bound replaces the loop's default.
	Bound Bound

	// MaxDatagramBytes is the most of a datagram that is delivered; the rest of a longer one is cut off,
	// which Datagram.Truncated tells. Default: 65,535, all there can be.
	MaxDatagramBytes int

	// MaxQueuedSends and MaxQueuedSendBytes limit the datagrams that Send has taken and the kernel has not.
	// Defaults: 1,024 and 4 MiB. An empty queue takes any datagram.
	MaxQueuedSends     int
	MaxQueuedSendBytes int

	// RecvBufferBytes and SendBufferBytes ask for buffers of the kernel (SO_RCVBUF, SO_SNDBUF). It grants
	// up to its limit, and Stats tells what it granted. Default: the system's.
	RecvBufferBytes int
	SendBufferBytes int

	// IPv6Only keeps IPv4 out of an IPv6 wildcard socket (IPV6_V6ONLY). Default: both families.
	IPv6Only bool

	// ReuseAddr and ReusePort set SO_REUSEADDR and SO_REUSEPORT. For UDP on Linux both let sockets share a
	// port: with ReuseAddr the last one bound gets everything, with ReusePort each a part of the senders.
	ReuseAddr bool
	ReusePort bool

	// Broadcast allows sending to broadcast addresses (SO_BROADCAST).
	Broadcast bool
}

// udpLimits is what remains of a UDPConfig once the socket is open.
type udpLimits struct {
	bound         Bound
	datagramBytes int
	sends         int
	sendBytes     int
	broadcast     bool
}

func (c UDPConfig) resolve(loop Bound) (udpLimits, error) {
	l := udpLimits{
		bound:         c.Bound.or(loop),
		datagramBytes: c.MaxDatagramBytes,
		sends:         c.MaxQueuedSends,
		sendBytes:     c.MaxQueuedSendBytes,
		broadcast:     c.Broadcast,
	}
	if err := l.bound.check(); err != nil {
		return l, err
	}
	for _, f := range []struct {
		name  string
		value int
	}{
		{"MaxDatagramBytes", c.MaxDatagramBytes},
		{"MaxQueuedSends", c.MaxQueuedSends},
		{"MaxQueuedSendBytes", c.MaxQueuedSendBytes},
		{"RecvBufferBytes", c.RecvBufferBytes},
		{"SendBufferBytes", c.SendBufferBytes},
	} {
		if f.value < 0 {
			return l, fmt.Errorf("UDPConfig.%s is %d; it cannot be negative", f.name, f.value)
		}
	}
	setDefault(&l.datagramBytes, slotBytes)
	setDefault(&l.sends, 1024)
	setDefault(&l.sendBytes, 4<<20)
	return l, nil
}

func (c UDPConfig) options(local, peer netip.AddrPort) sock.UDPOptions {
	return sock.UDPOptions{
		Local: local, Peer: peer, IPv6Only: c.IPv6Only, ReuseAddr: c.ReuseAddr, ReusePort: c.ReusePort,
		Broadcast: c.Broadcast, RecvBufferBytes: c.RecvBufferBytes, SendBufferBytes: c.SendBufferBytes,
	}
}
