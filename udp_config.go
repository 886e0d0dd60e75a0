package weir

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/weirnet/weir/internal/sock"
	"github.com/weirnet/weir/internal/sys"
)

// UDPConfig is a UDP socket's. The zero UDPConfig works.
type UDPConfig struct {
	// Bound replaces the loop's default.
	Bound Bound

	// MaxDatagramBytes is the most of a datagram that is delivered; the rest of a longer one is cut off,
	// which Datagram.Truncated tells. Default: 65,535, all there can be.
	MaxDatagramBytes int

	// MaxQueuedSends and MaxQueuedSendBytes limit the datagrams that Send has taken and the kernel has not;
	// a Sender has up to twice as many more. Defaults: 1,024 and 4 MiB. An empty queue takes any datagram.
	MaxQueuedSends     int
	MaxQueuedSendBytes int

	// RecvBufferBytes and SendBufferBytes ask for buffers of the kernel (SO_RCVBUF, SO_SNDBUF). It grants
	// up to its limit, to the privileged more (SO_RCVBUFFORCE), and Stats tells what it granted. Default: the
	// system's.
	RecvBufferBytes int
	SendBufferBytes int

	// IPv6Only keeps IPv4 out of an IPv6 wildcard socket (IPV6_V6ONLY). Default: both families.
	IPv6Only bool

	// ReuseAddr and ReusePort set SO_REUSEADDR and SO_REUSEPORT. For UDP on Linux both let sockets share a
	// port: with ReuseAddr the last one bound gets everything, with ReusePort each a part of the senders.
	ReuseAddr bool
	ReusePort bool

	// Device keeps the socket to a network interface by its name (SO_BINDTODEVICE).
	Device string

	// Broadcast allows sending to broadcast addresses (SO_BROADCAST).
	Broadcast bool

	// TTL is the time to live, over IPv6 the hop limit, of unicast datagrams, 1 to 255; MulticastTTL that of
	// multicast, of which the system's default is 1. Default: the system's.
	TTL          int
	MulticastTTL int

	// TrafficClass is the byte of that name in what is sent, over IPv4 TOS, 0 to 255: DSCP in the upper six
	// bits. The lower two are ECN's, which SendOptions.ECN sets for a datagram.
	TrafficClass int

	// NoMulticastLoop keeps the multicast that is sent from members on this machine. MulticastInterface is
	// where it leaves. Default: the one that the route says.
	NoMulticastLoop    bool
	MulticastInterface *net.Interface

	// Fragment tells what to do with datagrams larger than the path takes. Default: the system's.
	Fragment Fragmentation

	// Reports asks for ICMP errors, also of a socket without a peer (IP_RECVERR): OnError gets an *ICMPError
	// for each peer and errno in a turn. Off, a connected socket hears of some of them as an errno, and others
	// of none.
	Reports bool

	// ReceiveLocal, ReceiveECN and ReceiveTime fill in the fields of Datagram.
	ReceiveLocal bool
	ReceiveECN   bool
	ReceiveTime  bool

	// NoGSO and NoGRO are those of Config, for this socket. Without GRO the socket can be exported to readers
	// that do not know it.
	NoGSO bool
	NoGRO bool

	// Sole is for AdoptUDP: the caller promises that nobody else reads the socket. See UDP.Sole.
	Sole bool
}

// Fragmentation is what a socket does with datagrams that are larger than the path to their destination
// takes. QUIC and others that look for the path's MTU want ProbePath.
type Fragmentation uint8

const (
	// SystemFragmentation is as net.ipv4.ip_no_pmtu_disc says.
	SystemFragmentation Fragmentation = iota

	// FragmentByRoute fragments what is larger than the path is known to take (IP_PMTUDISC_WANT).
	FragmentByRoute

	// FragmentAlways lets routers fragment, too (IP_PMTUDISC_DONT).
	FragmentAlways

	// FragmentNever answers EMSGSIZE to what is larger than the path is known to take (IP_PMTUDISC_DO).
	FragmentNever

	// ProbePath sends datagrams whole, whatever is known of the path; the device alone answers EMSGSIZE
	// (IP_PMTUDISC_PROBE).
	ProbePath

	// FragmentOmit fragments at the device's MTU, and believes no report of a smaller one (IP_PMTUDISC_OMIT).
	FragmentOmit
)

// udpLimits is what remains of a UDPConfig once the socket is open.
type udpLimits struct {
	bound         Bound
	datagramBytes int
	sends         int
	sendBytes     int
}

func (c UDPConfig) resolve(loop Bound) (udpLimits, error) {
	l := udpLimits{
		bound:         c.Bound.or(loop),
		datagramBytes: c.MaxDatagramBytes,
		sends:         c.MaxQueuedSends,
		sendBytes:     c.MaxQueuedSendBytes,
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
	for _, f := range []struct {
		name        string
		value, most int
	}{
		{"TTL", c.TTL, 255},
		{"MulticastTTL", c.MulticastTTL, 255},
		{"TrafficClass", c.TrafficClass, 255},
		{"Fragment", int(c.Fragment), int(FragmentOmit)},
	} {
		if err := sock.InRange("UDPConfig."+f.name, f.value, 0, f.most); err != nil {
			return l, err
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
		Device: c.Device, UDPSettings: c.settings(),
	}
}

func (c UDPConfig) settings() sock.UDPSettings {
	s := sock.UDPSettings{
		Broadcast: c.Broadcast, RecvBufferBytes: c.RecvBufferBytes, SendBufferBytes: c.SendBufferBytes,
		TTL: c.TTL, TrafficClass: c.TrafficClass, MulticastTTL: c.MulticastTTL,
		NoMulticastLoop: c.NoMulticastLoop, PathMTUDiscovery: c.Fragment.mode(),
		Reports: c.Reports, RecvLocal: c.ReceiveLocal, RecvTrafficClass: c.ReceiveECN, RecvTime: c.ReceiveTime,
	}
	if c.MulticastInterface != nil {
		s.MulticastInterface = c.MulticastInterface.Index
	}
	return s
}

// mode is nil where the system's is to stay.
func (f Fragmentation) mode() *sys.PathMTUMode {
	var m sys.PathMTUMode
	switch f {
	case FragmentByRoute:
		m = sys.FragmentByRoute
	case FragmentAlways:
		m = sys.FragmentAlways
	case FragmentNever:
		m = sys.FragmentNever
	case ProbePath:
		m = sys.FragmentProbe
	case FragmentOmit:
		m = sys.FragmentOmit
	default:
		return nil
	}
	return &m
}
