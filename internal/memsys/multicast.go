package memsys

import (
	"net/netip"
	"slices"
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

// maxMemberships is Linux's igmp_max_memberships, for IPv4 and each socket.
const maxMemberships = 20

// groupOn is a multicast group, in wire form and without a zone, on an interface.
type groupOn struct {
	group netip.Addr
	iface int
}

// membership is a socket's in a group. Its sources are those that it hears; none at all stands for all.
type membership struct {
	groupOn
	socket  *socket
	sources []netip.Addr
}

// allows tells whether the member wants to hear a sender.
func (m *membership) allows(source netip.Addr) bool {
	return len(m.sources) == 0 || slices.Contains(m.sources, source.WithZone(""))
}

func (k kernel) Membership(fd int, m sys.Membership, join bool) error {
	k.n.mu.Lock()
	defer k.n.mu.Unlock()
	k.n.calls.Membership++
	s, err := k.n.socket(fd)
	if err != nil {
		return err
	}
	group := m.Group.WithZone("")
	if !group.Is4() && s.family == sys.IPv4 {
		return syscall.ENOPROTOOPT
	}
	on := groupOn{group, m.Interface}
	switch {
	case m.Source.IsValid() && join:
		return s.joinSource(on, m.Source.WithZone(""))
	case m.Source.IsValid():
		return s.leaveSource(on, m.Source.WithZone(""))
	case join:
		_, err := s.join(on)
		return err
	default:
		return s.leave(on)
	}
}

func (s *socket) join(on groupOn) (*membership, error) {
	on, err := s.net.resolve(on)
	if err != nil {
		return nil, err
	}
	if m := s.membership(on); m != nil {
		return m, syscall.EADDRINUSE
	}
	if on.group.Is4() && len(s.memberships) >= maxMemberships {
		return nil, syscall.ENOBUFS
	}
	m := &membership{groupOn: on, socket: s}
	s.memberships = append(s.memberships, m)
	s.net.groups[on] = append(s.net.groups[on], m)
	return m, nil
}

// resolve checks what is to be joined, and finds the interface where none is named.
func (n *Net) resolve(on groupOn) (groupOn, error) {
	if !on.group.IsMulticast() || on.group.Is4In6() {
		return on, syscall.EINVAL
	}
	if on.iface == 0 {
		on.iface = loopback
	}
	if n.ifaces[on.iface] == "" {
		return on, syscall.ENODEV
	}
	return on, nil
}

func (s *socket) leave(on groupOn) error {
	if on.group.Is6() && (!on.group.IsMulticast() || on.group.Is4In6()) {
		return syscall.EINVAL
	}
	m := s.membership(on)
	if m == nil {
		return syscall.EADDRNOTAVAIL
	}
	s.drop(m)
	return nil
}

// joinSource also narrows a membership for all to this one source.
func (s *socket) joinSource(on groupOn, source netip.Addr) error {
	m, err := s.join(on)
	if err != nil && err != syscall.EADDRINUSE {
		return err
	}
	if slices.Contains(m.sources, source) {
		return syscall.EADDRNOTAVAIL
	}
	m.sources = append(m.sources, source)
	return nil
}

// leaveSource ends the membership with its last source.
func (s *socket) leaveSource(on groupOn, source netip.Addr) error {
	on, err := s.net.resolve(on)
	if err != nil {
		return err
	}
	m := s.membership(on)
	if m == nil {
		return syscall.EINVAL
	}
	if !slices.Contains(m.sources, source) {
		return syscall.EADDRNOTAVAIL
	}
	m.sources = slices.DeleteFunc(m.sources, func(x netip.Addr) bool { return x == source })
	if len(m.sources) == 0 {
		s.drop(m)
	}
	return nil
}

// membership finds one; interface 0 stands for any.
func (s *socket) membership(on groupOn) *membership {
	for _, m := range s.memberships {
		if m.group == on.group && (on.iface == 0 || m.iface == on.iface) {
			return m
		}
	}
	return nil
}

func (s *socket) drop(m *membership) {
	is := func(x *membership) bool { return x == m }
	s.memberships = slices.DeleteFunc(s.memberships, is)
	if rest := slices.DeleteFunc(s.net.groups[m.groupOn], is); len(rest) > 0 {
		s.net.groups[m.groupOn] = rest
	} else {
		delete(s.net.groups, m.groupOn)
	}
}

func (s *socket) leaveAll() {
	for len(s.memberships) > 0 {
		s.drop(s.memberships[0])
	}
}

// setMulticastInterface has an errno for each family.
func (s *socket) setMulticastInterface(o sys.Option, number int) error {
	missing := syscall.EADDRNOTAVAIL
	if o == sys.MulticastInterface6 {
		if s.family != sys.IPv6 {
			return syscall.ENOPROTOOPT
		}
		missing = syscall.ENODEV
	}
	switch {
	case number != 0 && s.net.ifaces[number] == "":
		return missing
	case number != 0 && s.device != 0 && s.device != number:
		return syscall.EINVAL
	}
	s.options[o] = number
	return nil
}

// multicastVia is the interface for a group where the datagram itself names none.
func (s *socket) multicastVia(group netip.Addr) int {
	o := sys.MulticastInterface6
	if group.Is4() {
		o = sys.MulticastInterface
	}
	if i := s.options[o]; i != 0 {
		return i
	}
	return loopback
}

// loops tells whether what the socket sends to a group on an interface comes back to this machine. The loopback
// brings everything back.
func (s *socket) loops(group netip.Addr, iface int) bool {
	if group.Is4() {
		return iface == loopback || s.on(sys.MulticastLoop)
	}
	return iface == loopback || s.on(sys.MulticastLoop6)
}

// multicast takes a packet to its group. It comes into the machine if any socket there wants to hear its sender,
// and then to all at the port but those whose own membership leaves the sender out: a socket that never joined
// hears it too (IP_MULTICAST_ALL, which Linux has on).
func (n *Net) multicast(p *packet) {
	group := p.to.Addr().WithZone("")
	wanted := func(m *membership) bool { return m.allows(p.from.Addr()) }
	if !slices.ContainsFunc(n.groups[groupOn{group, p.iface}], wanted) {
		return
	}
	for _, s := range n.udp.used[p.to.Port()] {
		on := groupOn{group, p.iface}
		if group.Is6() {
			on.iface = 0 // inet6_mc_sf_allow compares no interface
		}
		if m := s.membership(on); s.score(p) > 0 && (m == nil || m.allows(p.from.Addr())) {
			s.accept(p)
		}
	}
}
