//go:build linux

package sys

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// CopyRaw copies what the kernel said of a datagram to dst, whole control messages alone, as far as there is room; cut
// tells that there was not enough. The one of GRO is left out: it is of the train.
func CopyRaw(dst, raw []byte) (n int, cut bool) {
	for {
		level, typ, _, rest, ok := nextCmsg(raw)
		if !ok {
			return n, cut
		}
		one := raw[:len(raw)-len(rest)]
		raw = rest
		switch {
		case level == unix.IPPROTO_UDP && typ == unix.UDP_GRO:
		case len(dst)-n < len(one):
			cut = true
		default:
			n += copy(dst[n:], one)
		}
	}
}

// ParseRaw reads the control messages that somebody wrote for a datagram to be sent. ok is false where one is of a kind
// that Control cannot say.
func ParseRaw(raw []byte) (c Control, ok bool) {
	for len(raw) > 0 {
		level, typ, data, rest, sound := nextCmsg(raw)
		if !sound || !c.order(level, typ, data) {
			return Control{}, false
		}
		raw = rest
	}
	return c, true
}

// order is learn for the other direction, where the local address of in_pktinfo is its second field.
func (c *Control) order(level, typ int32, data []byte) bool {
	switch {
	case level == unix.IPPROTO_IP && typ == unix.IP_PKTINFO && len(data) >= pktinfo4Bytes:
		c.Interface = binary.NativeEndian.Uint32(data)
		if local := netip.AddrFrom4([4]byte(data[4:])); !local.IsUnspecified() {
			c.Local = local
		}
	case level == unix.IPPROTO_IPV6 && typ == unix.IPV6_PKTINFO && len(data) >= pktinfo6Bytes:
		c.Interface = binary.NativeEndian.Uint32(data[16:])
		if local := netip.AddrFrom16([16]byte(data)); !local.IsUnspecified() {
			c.Local = local
		}
	case level == unix.IPPROTO_IP && typ == unix.IP_TOS && len(data) == 1:
		c.TrafficClass, c.HasTrafficClass = data[0], true
	case (level == unix.IPPROTO_IP && typ == unix.IP_TOS || level == unix.IPPROTO_IPV6 && typ == unix.IPV6_TCLASS) && len(data) >= 4:
		c.TrafficClass, c.HasTrafficClass = uint8(binary.NativeEndian.Uint32(data)), true
	case level == unix.IPPROTO_UDP && typ == unix.UDP_SEGMENT && len(data) >= 2:
		c.Segment = binary.NativeEndian.Uint16(data)
	default:
		return false
	}
	return true
}
