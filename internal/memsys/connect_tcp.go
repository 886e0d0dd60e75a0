package memsys

import (
	"net/netip"
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

// dial is Connect of a TCP socket. It answers EINPROGRESS although the connection is made or refused when it
// returns, as Linux does on the loopback; the next Connect then tells how it went.
func (s *socket) dial(addr netip.AddrPort) error {
	st := s.stream
	switch {
	case !addr.IsValid():
		s.disconnect()
		return nil
	case st.step == told:
		return syscall.EISCONN
	case st.step == leaving:
		return syscall.EINVAL
	case st.step == asked && st.state == waiting:
		return syscall.EALREADY
	case st.step == asked && s.established():
		st.step = told
		return nil
	case st.step == asked:
		err := s.takePending()
		if err == nil {
			err = syscall.ECONNABORTED
		}
		s.disconnect()
		return err
	case st.state != idle:
		return syscall.EISCONN
	}
	way, err := s.routeTCP(addr)
	if err != nil {
		return err
	}
	if way.from != s.local {
		s.claim(way.from)
	}
	s.peer = way.to
	st.state, st.step = waiting, asked
	st.readOver, st.writeOver = false, false
	s.knock()
	return syscall.EINPROGRESS
}

// routeTCP is route for a connection, with a port of its own.
func (s *socket) routeTCP(addr netip.AddrPort) (way, error) {
	a := addr.Addr()
	switch {
	case s.family == sys.IPv6 && a.Is4(), a.Is6() && a.IsLinkLocalUnicast() && a.Zone() == "":
		return way{}, syscall.EINVAL
	case isBroadcast(a.Unmap()), a.Unmap().IsMulticast():
		return way{}, syscall.ENETUNREACH
	}
	way, err := s.route(addr, &sys.Control{})
	if err != nil {
		return way, err
	}
	if s.local.Port() == 0 {
		port, ok := s.ports().ephemeral()
		if !ok {
			return way, syscall.EADDRNOTAVAIL
		}
		way.from = netip.AddrPortFrom(way.from.Addr(), port)
	}
	for _, other := range s.ports().used[way.from.Port()] {
		if other != s && other.local == way.from && other.peer == way.to {
			return way, syscall.EADDRNOTAVAIL
		}
	}
	return way, nil
}

// claimPort gives an unbound socket a port that the kernel chose.
func (s *socket) claimPort(port uint16) { s.claim(netip.AddrPortFrom(s.local.Addr(), port)) }

// knock is a SYN: it meets a listener with room, or one without, for which it waits, or a reset. Sent out on a wire
// without anybody it is just gone.
func (s *socket) knock() {
	p := &packet{from: s.local, to: s.peer, iface: ifaceOf(s.peer.Addr())}
	if s.device != 0 && s.device != p.iface {
		return
	}
	l := s.net.listenerFor(p)
	switch {
	case l != nil && l.stream.listener.full():
		l.stream.listener.pending = append(l.stream.listener.pending, s)
		s.stream.listener.of = l
	case l != nil:
		l.take(s)
	case s.peer == s.local: // a simultaneous open, with itself
		s.stream.state, s.stream.other = connected, s
		s.notify()
	default:
		s.reset(syscall.ECONNREFUSED)
	}
}

// listenerFor is receiver among those that listen.
func (n *Net) listenerFor(p *packet) (best *socket) {
	top := 0
	candidates := n.tcp.used[p.to.Port()]
	for _, s := range candidates {
		if score := s.score(p); s.listening() && score > 0 && score >= top {
			best, top = s, score
		}
	}
	if best == nil || !best.reusePort {
		return best
	}
	return pickGrouped(candidates, best, p)
}
