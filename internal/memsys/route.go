package memsys

import (
	"net/netip"
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

var (
	loopback4      = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	limited        = netip.AddrFrom4([4]byte{255, 255, 255, 255})
	loopbackSubnet = netip.AddrFrom4([4]byte{127, 255, 255, 255})
)

// wireAddr is an address as it stands in a packet: IPv4 where it was mapped, and with a zone only where
// one means something.
func wireAddr(a netip.Addr) netip.Addr {
	a = a.Unmap()
	if !a.IsLinkLocalUnicast() {
		a = a.WithZone("")
	}
	return a
}

func wire(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(wireAddr(a.Addr()), a.Port())
}

func isBroadcast(a netip.Addr) bool { return a == limited || a == loopbackSubnet }

// isLocal tells whether a is an address of this network, wildcards and broadcast aside.
func (n *Net) isLocal(a netip.Addr) bool {
	return a.IsLoopback() && !isBroadcast(a) || n.addrs[a]
}

// route tells where a datagram for addr goes and from where, or why it cannot. The order of the checks
// is Linux's, for connect(2) as for sendmsg(2).
func (s *socket) route(addr netip.AddrPort) (from, to netip.AddrPort, err error) {
	if s.family == sys.IPv4 && !addr.Addr().Is4() {
		return from, to, syscall.EAFNOSUPPORT
	}
	to = wire(addr)
	if to.Addr().IsUnspecified() { // "this host", since BSD
		to = netip.AddrPortFrom(loopbackOf(to.Addr()), to.Port())
	}
	if err := s.reaches(to.Addr()); err != nil {
		return from, to, err
	}
	source := s.local.Addr()
	switch {
	case isBroadcast(to.Addr()) && !s.broadcast:
		return from, to, syscall.EACCES
	case isBroadcast(to.Addr()), s.net.isLocal(to.Addr()):
	case source.Is4() && source.IsLoopback(): // a martian on any other device
		return from, to, syscall.EINVAL
	default:
		return from, to, syscall.ENETUNREACH
	}
	if source.IsUnspecified() || isBroadcast(source) {
		source = sourceFor(to.Addr())
	}
	return netip.AddrPortFrom(source, s.local.Port()), to, nil
}

// reaches tells whether an IPv6 socket's local address allows a destination of either family.
func (s *socket) reaches(to netip.Addr) error {
	local := s.local.Addr()
	switch {
	case s.family == sys.IPv4:
		return nil
	case to.Is4() && (s.v6only || local.Is6() && !local.IsUnspecified()):
		return syscall.ENETUNREACH
	case !to.Is4() && local.Is4():
		return syscall.EAFNOSUPPORT
	}
	return nil
}

// sourceFor is what a socket without an address of its own sends from: within one machine, the
// destination itself, but the usual one of the many loopback addresses.
func sourceFor(to netip.Addr) netip.Addr {
	if to.IsLoopback() || isBroadcast(to) {
		return loopbackOf(to)
	}
	return to
}

func loopbackOf(a netip.Addr) netip.Addr {
	if a.Is4() {
		return loopback4
	}
	return netip.IPv6Loopback()
}
