//go:build linux

package sys

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rawName is a socket address as the kernel lays it out: room for the larger family, AF_INET in front.
type rawName = unix.RawSockaddrInet6

const (
	nameBytes4 = unix.SizeofSockaddrInet4
	nameBytes6 = unix.SizeofSockaddrInet6
)

// putName writes addr into raw and returns its length: 0 for the zero AddrPort (the connected peer).
// An IPv4-mapped address is an IPv6 one here, as it belongs to an IPv6 socket.
func putName(raw *rawName, addr netip.AddrPort) uint32 {
	ip := addr.Addr()
	switch {
	case ip.Is4():
		raw4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(raw))
		raw4.Family = unix.AF_INET
		putPort(&raw4.Port, addr.Port())
		raw4.Addr = ip.As4()
		return nameBytes4
	case ip.Is6():
		raw.Family = unix.AF_INET6
		putPort(&raw.Port, addr.Port())
		raw.Flowinfo = 0
		raw.Addr = ip.As16()
		raw.Scope_id = scopeID(ip.Zone())
		return nameBytes6
	default:
		return 0
	}
}

// getName reads an address that the kernel wrote; the zero AddrPort when it is of no family we know.
func getName(raw *rawName, size uint32) netip.AddrPort {
	switch {
	case size >= nameBytes4 && raw.Family == unix.AF_INET:
		raw4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(raw))
		return netip.AddrPortFrom(netip.AddrFrom4(raw4.Addr), getPort(&raw4.Port))
	case size >= nameBytes6 && raw.Family == unix.AF_INET6:
		ip := netip.AddrFrom16(raw.Addr)
		if raw.Scope_id != 0 {
			ip = ip.WithZone(zoneName(raw.Scope_id))
		}
		return netip.AddrPortFrom(ip, getPort(&raw.Port))
	default:
		return netip.AddrPort{}
	}
}

// putPort and getPort keep the network's byte order in memory, whatever the machine's is.
func putPort(p *uint16, port uint16) {
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(p))[:], port)
}

func getPort(p *uint16) uint16 {
	return binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(p))[:])
}

// zoneName and scopeID keep IPv6 zones as numbers: names of interfaces change, and looking one up per
// datagram is a system call.
func zoneName(scope uint32) string {
	if scope < uint32(len(smallZones)) {
		return smallZones[scope]
	}
	return strconv.FormatUint(uint64(scope), 10)
}

func scopeID(zone string) uint32 {
	if zone == "" {
		return 0 // what ParseUint says to it allocates
	}
	n, err := strconv.ParseUint(zone, 10, 32)
	if err != nil {
		return 0
	}
	return uint32(n)
}

// smallZones saves the formatting for the interface numbers that machines have.
var smallZones = func() (zones [64]string) {
	for i := range zones {
		zones[i] = strconv.Itoa(i)
	}
	return zones
}()

func toSockaddr(addr netip.AddrPort) unix.Sockaddr {
	ip := addr.Addr()
	if ip.Is4() {
		return &unix.SockaddrInet4{Port: int(addr.Port()), Addr: ip.As4()}
	}
	return &unix.SockaddrInet6{Port: int(addr.Port()), Addr: ip.As16(), ZoneId: scopeID(ip.Zone())}
}

func fromSockaddr(sa unix.Sockaddr) netip.AddrPort {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port))
	case *unix.SockaddrInet6:
		ip := netip.AddrFrom16(sa.Addr)
		if sa.ZoneId != 0 {
			ip = ip.WithZone(zoneName(sa.ZoneId))
		}
		return netip.AddrPortFrom(ip, uint16(sa.Port))
	default:
		return netip.AddrPort{}
	}
}

// dissolve ends a connected socket's association: connect(2) to AF_UNSPEC.
func dissolve(fd int) error {
	sa := unix.RawSockaddr{Family: unix.AF_UNSPEC}
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&sa)), unix.SizeofSockaddrInet4)
	if errno != 0 {
		return errno
	}
	return nil
}
