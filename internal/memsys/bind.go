package memsys

import (
	"net/netip"
	"slices"
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

func (s *socket) bind(addr netip.AddrPort) error {
	if !addr.IsValid() { // what the real kernel makes of an all-zero sockaddr_in6
		addr = netip.AddrPortFrom(netip.IPv6Unspecified(), 0)
	}
	if err := s.mayBind(addr.Addr()); err != nil {
		return err
	}
	if s.local.Port() != 0 {
		return syscall.EINVAL
	}
	local := wire(addr)
	if s.kind == sys.TCP && local.Addr().IsMulticast() {
		return syscall.EINVAL
	}
	if a := local.Addr(); !a.IsUnspecified() && !isBroadcast(a) && !a.IsMulticast() && !s.net.isLocal(a) {
		return syscall.EADDRNOTAVAIL
	}
	if local.Port() == 0 {
		port, ok := s.ports().ephemeral()
		if !ok {
			return syscall.EADDRINUSE
		}
		local = netip.AddrPortFrom(local.Addr(), port)
	} else if s.conflicts(local) {
		return syscall.EADDRINUSE
	}
	if s.device == 0 && local.Addr().Zone() != "" {
		s.device = ifaceOf(local.Addr())
	}
	s.keepAddr = !local.Addr().IsUnspecified()
	s.keepPort = addr.Port() != 0
	s.claim(local)
	return nil
}

// mayBind checks the form of an address that a socket is to have.
func (s *socket) mayBind(a netip.Addr) error {
	switch {
	case s.family == sys.IPv4 && !a.Is4():
		return syscall.EAFNOSUPPORT
	case s.family == sys.IPv6 && a.Is4(): // a sockaddr_in is too short for an IPv6 socket
		return syscall.EINVAL
	case a.Is4In6() && s.v6only:
		return syscall.EINVAL
	case a.Is6() && needsZone(a) && a.Zone() == "":
		return syscall.EINVAL
	}
	return nil
}

// autobind is what connect(2) and sendmsg(2) do first on an unbound socket, even when they fail later.
func (s *socket) autobind() error {
	if s.local.Port() != 0 {
		return nil
	}
	port, ok := s.ports().ephemeral()
	if !ok {
		return syscall.EAGAIN
	}
	s.claim(netip.AddrPortFrom(s.local.Addr(), port))
	return nil
}

// claim enters the socket at its port, behind those that are there.
func (s *socket) claim(local netip.AddrPort) {
	s.release()
	s.local = local
	used := s.ports().used
	used[local.Port()] = append(used[local.Port()], s)
}

// release takes the socket off its port.
func (s *socket) release() {
	port := s.local.Port()
	switch {
	case port == 0:
		return
	case s.accepted:
		s.net.tcp.leave(s)
	default:
		used := s.ports().used
		rest := slices.DeleteFunc(used[port], func(x *socket) bool { return x == s })
		if len(rest) == 0 {
			delete(used, port)
		} else {
			used[port] = rest
		}
	}
	s.local = netip.AddrPortFrom(s.local.Addr(), 0)
}

// conflicts tells whether another socket holds local. Two may share it if both say ReusePort or both say
// ReuseAddr; the latter does not let anybody share with a listener.
func (s *socket) conflicts(local netip.AddrPort) bool {
	ports := s.ports()
	for _, other := range ports.used[local.Port()] {
		shared := s.reuseAddr && other.reuseAddr && !other.listening() || s.reusePort && other.reusePort
		if other != s && !shared && overlap(local.Addr(), s.v6only, other.local.Addr(), other.v6only) {
			return true
		}
	}
	there := ports.accepted[local.Port()]
	return there.strict > 0 || there.all > 0 && !s.reuseAddr
}

// overlap tells whether one destination could be meant for both. An IPv6 wildcard covers IPv4 as well,
// unless its socket is for IPv6 only.
func overlap(a netip.Addr, aOnly bool, b netip.Addr, bOnly bool) bool {
	covers := func(wild netip.Addr, only bool, x netip.Addr) bool {
		return wild.IsUnspecified() && (wild.Is4() == x.Is4() || wild.Is6() && !only)
	}
	return a == b || covers(a, aOnly, b) || covers(b, bOnly, a)
}
