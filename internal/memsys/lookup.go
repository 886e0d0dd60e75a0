package memsys

import (
	"net/netip"

	"github.com/weirnet/weir/internal/sys"
)

// deliver takes a datagram to whoever listens at its destination. When nobody does, the socket that it
// came from hears of it if it is connected there: others cannot tell for whom the report is.
func (n *Net) deliver(from, to netip.AddrPort, payload []byte) {
	if isBroadcast(to.Addr()) {
		for _, s := range n.ports[to.Port()] {
			if s.score(from, to) > 0 {
				s.accept(from, payload)
			}
		}
		return
	}
	if s := n.receiver(from, to); s != nil {
		s.accept(from, payload)
		return
	}
	if s := n.receiver(to, from); s != nil && s.connected() {
		s.refuse()
	}
}

// receiver finds the socket for a datagram: the best match, of equals the one that came last, or one
// of a ReusePort group by a hash of the flow.
func (n *Net) receiver(from, to netip.AddrPort) (best *socket) {
	top := 0
	candidates := n.ports[to.Port()]
	for _, s := range candidates {
		if score := s.score(from, to); score > 0 && score >= top {
			best, top = s, score
		}
	}
	if best == nil || !best.reusePort || best.connected() {
		return best
	}
	members := 0
	for _, s := range candidates {
		if s.groupedWith(best) {
			members++
		}
	}
	pick := int(uint64(flowHash(from, to)) * uint64(members) >> 32)
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
	return s.reusePort && !s.connected() && s.family == other.family && s.v6only == other.v6only &&
		s.local == other.local
}

// score tells how well a datagram matches the socket, 0 for not at all: first an address of its own,
// then a peer, then a family of its own.
func (s *socket) score(from, to netip.AddrPort) int {
	const (
		match = 1 << iota
		ownFamily
		ownPeer
		ownAddr
	)
	score := match
	local := s.local.Addr()
	switch {
	case local == to.Addr():
		score |= ownAddr
	case !local.IsUnspecified():
		return 0
	case local.Is4() != to.Addr().Is4() && (local.Is4() || s.v6only):
		return 0
	}
	switch {
	case s.peer == from:
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
