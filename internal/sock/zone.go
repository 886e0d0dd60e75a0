package sock

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
)

// ResolveZone replaces the name of an interface in an IPv6 zone by its number, which is how zones are kept:
// names change, and looking one up is a system call.
func ResolveZone(addr netip.AddrPort) (netip.AddrPort, error) {
	if CheckZone(addr) == nil {
		return addr, nil
	}
	ip := addr.Addr()
	i, err := net.InterfaceByName(ip.Zone())
	if err != nil {
		return addr, fmt.Errorf("zone %q: %w", ip.Zone(), err)
	}
	return netip.AddrPortFrom(ip.WithZone(strconv.Itoa(i.Index)), addr.Port()), nil
}

// CheckZone refuses a zone that is not a number.
func CheckZone(addr netip.AddrPort) error {
	zone := addr.Addr().Zone()
	if zone == "" {
		return nil
	}
	if _, err := strconv.ParseUint(zone, 10, 32); err != nil {
		return fmt.Errorf("zone %q is not a number: %w", zone, syscall.EINVAL)
	}
	return nil
}
