package memsys

import (
	"net/netip"
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

// connect sets the peer. What was queued before stays, from whomever it came, as does a pending error.
func (s *socket) connect(addr netip.AddrPort) error {
	if err := s.autobind(); err != nil {
		return err
	}
	a := addr.Addr()
	switch {
	case s.family == sys.IPv6 && a.Is4() && s.v6only:
		return syscall.EAFNOSUPPORT
	case s.family == sys.IPv6 && a.Is6() && a.IsLinkLocalUnicast() && a.Zone() == "":
		return syscall.EINVAL
	}
	way, err := s.route(addr, &sys.Control{})
	if err != nil {
		return err
	}
	s.peer = way.to
	if way.from != s.local {
		s.claim(way.from)
	}
	return nil
}

// dissolve ends the association. As on Linux, it also gives up what Bind did not name: the address of
// a socket bound to a wildcard, and a port that the kernel chose, even one chosen in Bind.
func (s *socket) dissolve() {
	s.peer = netip.AddrPort{}
	local := s.local
	if !s.keepAddr {
		local = netip.AddrPortFrom(s.wildcard(), local.Port())
	}
	if !s.keepPort {
		local = netip.AddrPortFrom(local.Addr(), 0)
	}
	switch {
	case local == s.local:
	case local.Port() == 0:
		s.release()
		s.local = local
	default:
		s.claim(local)
	}
}
