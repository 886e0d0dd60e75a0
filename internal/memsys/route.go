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
	if !needsZone(a) {
		a = a.WithZone("")
	}
	return a
}

// needsZone tells whether an address means something else on each interface.
func needsZone(a netip.Addr) bool {
	return a.IsLinkLocalUnicast() || a.IsLinkLocalMulticast() || a.IsInterfaceLocalMulticast()
}

func wire(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(wireAddr(a.Addr()), a.Port())
}

func isBroadcast(a netip.Addr) bool { return a == limited || a == loopbackSubnet }

// isLocal tells whether a is an address of this network, wildcards and broadcast aside.
func (n *Net) isLocal(a netip.Addr) bool {
	return a.IsLoopback() && !isBroadcast(a) || n.addrs[a]
}

// way is how a datagram travels, in wire form.
type way struct {
	from, to netip.AddrPort
	iface    int
}

// route tells where a datagram for addr goes, from where and by what, or why it cannot. The order of the checks
// is Linux's, for connect(2) as for sendmsg(2).
func (s *socket) route(addr netip.AddrPort, c *sys.Control) (r way, err error) {
	if s.family == sys.IPv4 && !addr.Addr().Is4() {
		return r, syscall.EAFNOSUPPORT
	}
	r.to = wire(addr)
	if r.to.Addr().IsUnspecified() { // "this host", since BSD
		r.to = netip.AddrPortFrom(loopbackOf(r.to.Addr()), r.to.Port())
	}
	to := r.to.Addr()
	if err := s.reaches(to); err != nil {
		return r, err
	}
	wish, err := s.wishFor(c, to)
	if err != nil {
		return r, err
	}
	source := s.local.Addr()
	if wish.local.IsValid() {
		source = wish.local
	}
	switch {
	case isBroadcast(to) && !s.broadcast:
		return r, syscall.EACCES
	case isBroadcast(to), to.IsMulticast(), s.net.isLocal(to):
	case source.Is4() && source.IsLoopback(): // a martian on any other device
		return r, syscall.EINVAL
	default:
		return r, syscall.ENETUNREACH
	}
	r.iface = wish.iface
	switch {
	case r.iface != 0:
	case to.IsMulticast():
		r.iface = s.multicastVia(to)
	default:
		r.iface = ifaceOf(to)
	}
	if source.IsUnspecified() || isBroadcast(source) || source.IsMulticast() {
		source = s.net.sourceFor(to, r.iface)
	}
	r.from = netip.AddrPortFrom(source, s.local.Port())
	return r, nil
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

// sourceFor is what a socket without an address of its own sends from: within one machine, the destination
// itself, but the usual one of the many loopback addresses; to a group, a link-local address of the interface if
// it has one.
func (n *Net) sourceFor(to netip.Addr, iface int) netip.Addr {
	switch {
	case to.IsMulticast():
		for a := range n.addrs {
			if to.Is6() && a.Zone() != "" && ifaceOf(a) == iface {
				return a
			}
		}
		return loopbackOf(to)
	case to.IsLoopback(), isBroadcast(to):
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
