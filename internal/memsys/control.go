package memsys

import (
	"net/netip"
	"syscall"
	"time"

	"github.com/weirnet/weir/internal/sys"
)

// tell is what the socket's owner asked to hear of a datagram.
func (s *socket) tell(d *datagram) (c sys.Control) {
	ipv4 := d.to.Is4()
	local, class := sys.RecvLocal6, sys.RecvTrafficClass
	if ipv4 {
		local, class = sys.RecvLocal, sys.RecvTOS
	}
	// An IPv6 socket hears of the address of an IPv4 datagram by either option.
	if s.on(local) || ipv4 && s.on(sys.RecvLocal6) {
		c.Local = s.showAddr(d.to)
		if c.Local.IsLinkLocalMulticast() && !ipv4 {
			c.Local = c.Local.WithZone(zoneOf(d.iface))
		}
		c.NotOwn = ipv4 && !s.on(sys.RecvLocal6) && !s.net.isLocal(d.to)
		c.Interface = uint32(d.iface)
	}
	if s.on(class) {
		c.TrafficClass, c.HasTrafficClass = d.class, true
	}
	if s.on(sys.RecvJoined) {
		c.Segment = d.segment
	}
	if s.on(sys.RecvTime) {
		at := d.at
		if at.IsZero() {
			at = time.Now()
		}
		c.Time = at.UnixNano()
	}
	return c
}

// showAddr is show for an address alone.
func (s *socket) showAddr(a netip.Addr) netip.Addr {
	if s.family == sys.IPv6 && a.Is4() {
		return netip.AddrFrom16(a.As16())
	}
	return a
}

// class is the byte that a datagram goes out with.
func (s *socket) class(c *sys.Control, to netip.Addr) uint8 {
	switch {
	case c.HasTrafficClass:
		return c.TrafficClass
	case to.Is4():
		return uint8(s.options[sys.TOS])
	default:
		return uint8(s.options[sys.TrafficClass])
	}
}

// wish is what a caller wants of a datagram's way: the zero values for nothing.
type wish struct {
	local netip.Addr // in wire form
	iface int
}

// wishFor checks what a Control asks for on the way to an address in wire form, and what the socket asks for all
// datagrams. Linux looks at an IPv6 datagram's interface first, and at an IPv4 datagram's address.
func (s *socket) wishFor(c *sys.Control, to netip.Addr) (w wish, err error) {
	w.iface = int(c.Interface)
	if c.Local.IsValid() && !c.Local.IsUnspecified() {
		w.local = c.Local.Unmap()
	}
	if to.Is4() {
		return w, s.wishFor4(&w)
	}
	return w, s.wishFor6(&w, to)
}

func (s *socket) wishFor4(w *wish) error {
	switch {
	case w.local.Is6() && s.family == sys.IPv4:
		w.local = netip.Addr{} // passed over
	case w.local.Is6(), w.local == limited, w.local.IsMulticast():
		return syscall.EINVAL
	case w.local.IsValid() && !s.net.isLocal(w.local):
		return syscall.ENETUNREACH
	}
	if w.iface == 0 {
		w.iface = s.device
	}
	if w.iface != 0 && s.net.ifaces[w.iface] == "" {
		return syscall.ENODEV
	}
	return nil
}

func (s *socket) wishFor6(w *wish, to netip.Addr) error {
	fixed := s.device
	if to.Zone() != "" {
		if fixed != 0 && fixed != ifaceOf(to) {
			return syscall.EINVAL
		}
		fixed = ifaceOf(to)
	}
	switch {
	case w.iface == 0:
		w.iface = fixed
	case fixed != 0 && fixed != w.iface:
		return syscall.EINVAL
	}
	if w.local.IsLinkLocalUnicast() && w.local.Is6() { // its own zone is not looked at
		w.local = w.local.WithZone(zoneOf(w.iface))
	}
	switch {
	case w.iface != 0 && s.net.ifaces[w.iface] == "":
		return syscall.ENODEV
	case w.local.IsValid() && (w.local.Is4() || !s.net.isLocal(w.local)):
		return syscall.EINVAL
	}
	return nil
}
