//go:build linux

package sys

import (
	"encoding/binary"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Room for the control messages of one datagram: what an IPv6 socket with all of them on receives of an IPv4
// datagram takes 176 bytes on 64-bit Linux, and what one sends at most 112.
const (
	recvControlBytes = 256
	sendControlBytes = 160 + MaxRawBytes
)

const (
	cmsgHeaderBytes = unix.SizeofCmsghdr
	wordBytes       = unix.SizeofPtr // control messages are aligned to it
)

// pktinfo4Bytes is struct in_pktinfo (ip(7)): interface, local address, header destination.
// pktinfo6Bytes is struct in6_pktinfo (RFC 3542 section 6.1): address, interface.
const (
	pktinfo4Bytes = 12
	pktinfo6Bytes = 20
)

// nextCmsg cuts the first control message off b. One whose length makes no sense ends the walk: the kernel cuts
// the last one where room is short (MSG_CTRUNC).
func nextCmsg(b []byte) (level, typ int32, data, rest []byte, ok bool) {
	if len(b) < cmsgHeaderBytes {
		return 0, 0, nil, nil, false
	}
	var size uint64
	if wordBytes == 8 {
		size = binary.NativeEndian.Uint64(b)
	} else {
		size = uint64(binary.NativeEndian.Uint32(b))
	}
	if size < cmsgHeaderBytes || size > uint64(len(b)) {
		return 0, 0, nil, nil, false
	}
	level = int32(binary.NativeEndian.Uint32(b[wordBytes:]))
	typ = int32(binary.NativeEndian.Uint32(b[wordBytes+4:]))
	next := min(int(size+wordBytes-1)&^(wordBytes-1), len(b))
	return level, typ, b[cmsgHeaderBytes:size], b[next:], true
}

// wholeControl leaves out a control message at the very end of a slot that was too small for all: the kernel may have
// cut that one in its middle.
func wholeControl(slot []byte) []byte {
	for b := slot; ; {
		_, _, _, rest, ok := nextCmsg(b)
		if !ok || len(rest) == 0 {
			return slot[:len(slot)-len(b)]
		}
		b = rest
	}
}

// parseControl reads what the kernel said of a datagram. What it does not know, or what is too short, it
// passes over.
func parseControl(b []byte) (c Control) {
	for {
		level, typ, data, rest, ok := nextCmsg(b)
		if !ok {
			return c
		}
		c.learn(level, typ, data)
		b = rest
	}
}

func (c *Control) learn(level, typ int32, data []byte) {
	switch {
	case level == unix.IPPROTO_IP && typ == unix.IP_PKTINFO && len(data) >= pktinfo4Bytes:
		if c.Local.Is4In6() {
			return // an IPv6 socket gets both for an IPv4 datagram
		}
		c.Interface = binary.NativeEndian.Uint32(data)
		c.Local = netip.AddrFrom4([4]byte(data[8:]))
		c.NotOwn = [4]byte(data[4:]) != [4]byte(data[8:])
	case level == unix.IPPROTO_IPV6 && typ == unix.IPV6_PKTINFO && len(data) >= pktinfo6Bytes:
		c.NotOwn = false
		c.Local = netip.AddrFrom16([16]byte(data))
		c.Interface = binary.NativeEndian.Uint32(data[16:])
		if c.Local.IsLinkLocalUnicast() || c.Local.IsLinkLocalMulticast() {
			c.Local = c.Local.WithZone(zoneName(c.Interface))
		}
	case level == unix.IPPROTO_IP && typ == unix.IP_TOS && len(data) >= 1:
		c.TrafficClass, c.HasTrafficClass = data[0], true
	case level == unix.IPPROTO_IPV6 && typ == unix.IPV6_TCLASS && len(data) >= 4:
		c.TrafficClass, c.HasTrafficClass = uint8(binary.NativeEndian.Uint32(data)), true
	case level == unix.IPPROTO_UDP && typ == unix.UDP_GRO && len(data) >= 4:
		c.Segment = uint16(binary.NativeEndian.Uint32(data))
	case level == unix.SOL_SOCKET && typ == unix.SO_TIMESTAMPNS_NEW && len(data) >= 16:
		sec, nsec := binary.NativeEndian.Uint64(data), binary.NativeEndian.Uint64(data[8:])
		c.Time = int64(sec)*1e9 + int64(nsec)
	}
}

// appendControl builds what the kernel is to be told of a datagram for that destination. Which family it is
// of, a connected socket's datagram does not show without an address: then the traffic class is told for both,
// and the kernel passes over the wrong one. An address of the other family than the destination's is told too, as
// the kernel answers EINVAL.
func appendControl(b []byte, c *Control, to netip.Addr) []byte {
	local4 := c.Local.Is4() || c.Local.Is4In6()
	for4 := to.Is4() || to.Is4In6() || !to.IsValid() && local4
	known := to.IsValid() || c.Local.IsValid()
	switch {
	case !c.Local.IsValid() && c.Interface == 0:
	case for4 && (local4 || !c.Local.IsValid()):
		b = appendPktinfo4(b, c)
	default:
		b = appendPktinfo6(b, c)
	}
	if c.HasTrafficClass {
		if for4 || !known {
			b = appendCmsgInt(b, unix.IPPROTO_IP, unix.IP_TOS, c.TrafficClass)
		}
		if !for4 {
			b = appendCmsgInt(b, unix.IPPROTO_IPV6, unix.IPV6_TCLASS, c.TrafficClass)
		}
	}
	if c.Segment != 0 {
		var data []byte
		b, data = appendCmsg(b, unix.IPPROTO_UDP, unix.UDP_SEGMENT, 2)
		binary.NativeEndian.PutUint16(data, c.Segment)
	}
	return b
}

func appendPktinfo4(b []byte, c *Control) []byte {
	b, data := appendCmsg(b, unix.IPPROTO_IP, unix.IP_PKTINFO, pktinfo4Bytes)
	binary.NativeEndian.PutUint32(data, c.Interface)
	if local := c.Local.Unmap(); local.Is4() {
		ip := local.As4()
		copy(data[4:], ip[:])
	}
	return b
}

func appendPktinfo6(b []byte, c *Control) []byte {
	b, data := appendCmsg(b, unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, pktinfo6Bytes)
	if c.Local.IsValid() {
		ip := c.Local.As16()
		copy(data, ip[:])
	}
	binary.NativeEndian.PutUint32(data[16:], c.Interface)
	return b
}

func appendCmsgInt(b []byte, level, typ int32, value uint8) []byte {
	b, data := appendCmsg(b, level, typ, 4)
	binary.NativeEndian.PutUint32(data, uint32(value))
	return b
}

// appendCmsg adds a control message with size zero bytes of data, and returns those.
func appendCmsg(b []byte, level, typ int32, size int) (grown, data []byte) {
	at := len(b)
	b = b[:at+unix.CmsgSpace(size)]
	clear(b[at:])
	if wordBytes == 8 {
		binary.NativeEndian.PutUint64(b[at:], uint64(unix.CmsgLen(size)))
	} else {
		binary.NativeEndian.PutUint32(b[at:], uint32(unix.CmsgLen(size)))
	}
	binary.NativeEndian.PutUint32(b[at+wordBytes:], uint32(level))
	binary.NativeEndian.PutUint32(b[at+wordBytes+4:], uint32(typ))
	return b, b[at+cmsgHeaderBytes:][:size]
}

// controlSlots is memory for the control messages of a batch, aligned for them.
type controlSlots struct {
	mem  []uint64
	each int
}

func newControlSlots(n, each int) controlSlots {
	return controlSlots{make([]uint64, n*each/8), each}
}

func (s *controlSlots) slot(i int) []byte {
	first := (*byte)(unsafe.Pointer(&s.mem[i*s.each/8]))
	return unsafe.Slice(first, s.each)
}
