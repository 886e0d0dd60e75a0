package weirhttp

import (
	"net"
	"net/netip"
)

// sourceBits is how much of an IPv6 address says whose it is: who has one has the /64 around it.
const sourceBits = 64

// sourceOf is the address of an IPv4 peer, the /64 of an IPv6 one, and the zero Addr of all others.
func sourceOf(a net.Addr) netip.Addr {
	var ip netip.Addr
	switch a := a.(type) {
	case *net.TCPAddr:
		ip = a.AddrPort().Addr()
	case *net.UDPAddr:
		ip = a.AddrPort().Addr()
	case nil:
	default:
		ap, err := netip.ParseAddrPort(a.String())
		if err == nil {
			ip = ap.Addr()
		}
	}
	ip = ip.Unmap().WithZone("")
	if ip.Is6() {
		prefix, _ := ip.Prefix(sourceBits)
		ip = prefix.Addr()
	}
	return ip
}
