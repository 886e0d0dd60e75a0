package memsys

import (
	"net/netip"

	"github.com/weirnet/weir/internal/sys"
)

// deliver takes a packet that the socket from sends to whoever listens at its destination. When nobody does, a
// socket hears of it that is connected there, or that has asked for reports: others cannot tell for whom it is.
func (n *Net) deliver(p *packet) {
	switch to := p.to.Addr(); {
	case to.IsMulticast():
		n.multicast(p)
		return
	case isBroadcast(to):
		for _, s := range n.udp.used[p.to.Port()] {
			if s.score(p) > 0 {
				s.accept(p)
			}
		}
		return
	case p.iface != ifaceOf(to):
		return // out on a wire without anybody
	}
	if s := n.receiver(p); s != nil {
		s.accept(p)
		return
	}
	back := packet{from: p.to, to: p.from, iface: p.iface}
	if s := n.receiver(&back); s != nil {
		s.refuse(p)
	}
}

// receiver finds the socket for a packet: the best match, of equals the one that came last, or one
// of a ReusePort group by a hash of the flow.
func (n *Net) receiver(p *packet) (best *socket) {
	top := 0
	candidates := n.udp.used[p.to.Port()]
	for _, s := range candidates {
		if score := s.score(p); score > 0 && score >= top {
			best, top = s, score
		}
	}
	if best == nil || !best.reusePort || best.connected() {
		return best
	}
	return pickGrouped(candidates, best, p)
}

// pickGrouped is the member of best's ReusePort group that gets a packet.
func pickGrouped(candidates []*socket, best *socket, p *packet) *socket {
	members := 0
	for _, s := range candidates {
		if s.groupedWith(best) {
			members++
		}
	}
	pick := int(uint64(flowHash(p.from, p.to)) * uint64(members) >> 32)
	for _, s := range candidates {
		if s.groupedWith(best) {
			if pick == 0 {
				return s
			}
			pick--
		}
	}
	return best
}

func (s *socket) groupedWith(other *socket) bool {
	return s.reusePort && !s.connected() && s.listening() == other.listening() &&
		s.family == other.family && s.v6only == other.v6only && s.local == other.local
}

// score tells how well a packet matches the socket, 0 for not at all: first an address of its own,
// then a peer, then an interface, then a family of its own.
func (s *socket) score(p *packet) int {
	const (
		match = 1 << iota
		ownFamily
		ownDevice
		ownPeer
		ownAddr
	)
	score := match
	local, to := s.local.Addr(), p.to
	switch {
	case s.device == p.iface:
		score |= ownDevice
	case s.device != 0:
		return 0
	}
	switch {
	case local == to.Addr():
		score |= ownAddr
	case !local.IsUnspecified():
		return 0
	case local.Is4() != to.Addr().Is4() && (local.Is4() || s.v6only):
		return 0
	}
	switch {
	case s.peer == p.from:
		score |= ownPeer
	case s.connected():
		return 0
	}
	if to.Addr().Is4() == (s.family == sys.IPv4) {
		score |= ownFamily
	}
	return score
}

// flowHash is FNV-1a: the same flow meets the same socket in each run.
func flowHash(from, to netip.AddrPort) uint32 {
	hash := uint32(2166136261)
	add := func(a netip.AddrPort) {
		for _, b := range a.Addr().As16() {
			hash = (hash ^ uint32(b)) * 16777619
		}
		hash = (hash ^ uint32(a.Port()>>8)) * 16777619
		hash = (hash ^ uint32(a.Port()&0xff)) * 16777619
	}
	add(from)
	add(to)
	return hash
}
