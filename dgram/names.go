package dgram

import (
	"net"
	"net/netip"
)

// names keeps addresses in the form of package net, as a new one for each datagram would be garbage. A source of many
// that are made up costs what it would without.
type names struct {
	last  netip.AddrPort
	name  *net.UDPAddr
	known map[netip.AddrPort]*net.UDPAddr
}

const maxNames = 1024

func (s *names) of(addr netip.AddrPort) *net.UDPAddr {
	if addr == s.last && s.name != nil {
		return s.name
	}
	name := s.known[addr]
	if name == nil {
		name = net.UDPAddrFromAddrPort(addr)
		if s.known == nil || len(s.known) == maxNames {
			s.known = make(map[netip.AddrPort]*net.UDPAddr)
		}
		s.known[addr] = name
	}
	s.last, s.name = addr, name
	return name
}
