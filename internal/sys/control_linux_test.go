//go:build linux

package sys

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// TestControlRoundTrip builds what is sent and reads it as if it had been received: the kernel's forms are the
// same but for three. What is received has IPv4's address at another place of IP_PKTINFO, IP_TOS in one byte, and
// another type for the size of segments.
func TestControlRoundTrip(t *testing.T) {
	t.Parallel()
	var none netip.Addr
	ip := netip.MustParseAddr
	for _, c := range []struct {
		name     string
		to       netip.Addr
		out      Control
		size     int // of 64-bit Linux
		in       Control
		is, isnt []cmsgKind
	}{
		{name: "nothing", to: ip("127.0.0.1")},
		{
			name: "IPv4 source", to: ip("127.0.0.1"), out: Control{Local: ip("127.0.0.2")}, size: 32,
			in: Control{Local: ip("127.0.0.2")},
		},
		{
			name: "mapped source and destination", to: ip("::ffff:127.0.0.1"), out: Control{Local: ip("::ffff:127.0.0.2")}, size: 32,
			in: Control{Local: ip("127.0.0.2")},
		},
		{
			name: "IPv4 interface", to: ip("127.0.0.1"), out: Control{Interface: 7}, size: 32,
			in: Control{Local: ip("0.0.0.0"), Interface: 7},
		},
		{
			name: "IPv6 source", to: ip("::1"), out: Control{Local: ip("2001:db8::1")}, size: 40,
			in: Control{Local: ip("2001:db8::1")},
		},
		{
			name: "IPv6 interface", to: ip("::1"), out: Control{Interface: 7}, size: 40,
			in: Control{Local: ip("::"), Interface: 7},
		},
		{
			name: "link-local source", to: ip("fe80::2%7"), out: Control{Local: ip("fe80::1%7"), Interface: 7}, size: 40,
			in: Control{Local: ip("fe80::1%7"), Interface: 7},
		},
		{
			name: "a source of the other family is told", to: ip("127.0.0.1"), out: Control{Local: ip("::1")}, size: 40,
			in: Control{Local: ip("::1")},
		},
		{
			name: "a mapped source to IPv6 is told", to: ip("::1"), out: Control{Local: ip("127.0.0.1")}, size: 40,
			in: Control{Local: ip("::ffff:127.0.0.1")},
		},
		{
			name: "the source tells the family of a peer that is not named", to: none,
			out: Control{Local: ip("127.0.0.2"), TrafficClass: 1, HasTrafficClass: true}, size: 56,
			in: Control{Local: ip("127.0.0.2"), TrafficClass: 1, HasTrafficClass: true},
			is: []cmsgKind{tos}, isnt: []cmsgKind{trafficClass},
		},
		{
			name: "IPv4 class", to: ip("127.0.0.1"), out: Control{TrafficClass: 0xff, HasTrafficClass: true}, size: 24,
			in: Control{TrafficClass: 0xff, HasTrafficClass: true},
			is: []cmsgKind{tos}, isnt: []cmsgKind{trafficClass},
		},
		{
			name: "IPv6 class of 0", to: ip("::1"), out: Control{HasTrafficClass: true}, size: 24,
			in: Control{HasTrafficClass: true},
			is: []cmsgKind{trafficClass}, isnt: []cmsgKind{tos},
		},
		{
			name: "class without a word on the family", to: none, out: Control{TrafficClass: 3, HasTrafficClass: true}, size: 48,
			in: Control{TrafficClass: 3, HasTrafficClass: true},
			is: []cmsgKind{tos, trafficClass},
		},
		{
			name: "segments", to: ip("::1"), out: Control{Segment: 65535}, size: 24,
			in: Control{Segment: 65535},
			is: []cmsgKind{segmentSize},
		},
		{
			name: "all of IPv6", to: ip("::1"), size: 88,
			out: Control{Local: ip("::1"), Interface: 1, TrafficClass: 2, HasTrafficClass: true, Segment: 1200},
			in:  Control{Local: ip("::1"), Interface: 1, TrafficClass: 2, HasTrafficClass: true, Segment: 1200},
		},
		{
			name: "all without a word on the family", to: none, size: 112,
			out: Control{Interface: 1, TrafficClass: 2, HasTrafficClass: true, Segment: 1200},
			in:  Control{Local: ip("::"), Interface: 1, TrafficClass: 2, HasTrafficClass: true, Segment: 1200},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			room := bytes.Repeat([]byte{0xee}, sendControlBytes)
			b := appendControl(room[:0], &c.out, c.to)
			if wordBytes == 8 && len(b) != c.size {
				t.Errorf("%d bytes, want %d", len(b), c.size)
			}
			kinds := received(b)
			for _, kind := range c.is {
				if !kinds[kind] {
					t.Errorf("%v is not among % x", kind, b)
				}
			}
			for _, kind := range c.isnt {
				if kinds[kind] {
					t.Errorf("%v is among % x", kind, b)
				}
			}
			if got := parseControl(b); got != c.in {
				t.Errorf("got  %+v\nwant %+v", got, c.in)
			}
		})
	}
}

type cmsgKind struct{ level, typ int32 }

var (
	tos          = cmsgKind{unix.IPPROTO_IP, unix.IP_TOS}
	trafficClass = cmsgKind{unix.IPPROTO_IPV6, unix.IPV6_TCLASS}
	segmentSize  = cmsgKind{unix.IPPROTO_UDP, unix.UDP_SEGMENT}
)

// received makes of what is sent what would be received, in place, and tells which kinds there are.
func received(b []byte) map[cmsgKind]bool {
	kinds := make(map[cmsgKind]bool)
	for len(b) > 0 {
		level, typ, data, rest, ok := nextCmsg(b)
		if !ok {
			panic("what was built cannot be read")
		}
		kind := cmsgKind{level, typ}
		kinds[kind] = true
		switch kind {
		case cmsgKind{unix.IPPROTO_IP, unix.IP_PKTINFO}:
			copy(data[8:], data[4:8])
		case tos:
			data[0] = uint8(binary.NativeEndian.Uint32(data))
			putWord(b, uint64(cmsgHeaderBytes+1))
		case segmentSize:
			binary.NativeEndian.PutUint32(b[wordBytes+4:], unix.UDP_GRO)
			size := binary.NativeEndian.Uint16(data)
			binary.NativeEndian.PutUint32(data[:4], uint32(size)) // into the padding
			putWord(b, uint64(cmsgHeaderBytes+4))
		}
		b = rest
	}
	return kinds
}

func putWord(b []byte, v uint64) {
	if wordBytes == 8 {
		binary.NativeEndian.PutUint64(b, v)
	} else {
		binary.NativeEndian.PutUint32(b, uint32(v))
	}
}

// cmsg builds one that the kernel might write.
func cmsg(level, typ int32, data []byte) []byte {
	b, room := appendCmsg(make([]byte, 0, 256), level, typ, len(data))
	copy(room, data)
	return b
}

// words are 32-bit numbers in the machine's order.
func words(v ...uint32) (b []byte) {
	for _, v := range v {
		b = binary.NativeEndian.AppendUint32(b, v)
	}
	return b
}

func TestParseControl(t *testing.T) {
	t.Parallel()
	local4 := append(words(7), 127, 0, 0, 2, 127, 0, 0, 2)
	mapped := netip.MustParseAddr("::ffff:127.0.0.2").As16()
	linkLocal, group := netip.MustParseAddr("fe80::1").As16(), netip.MustParseAddr("ff02::1").As16()
	info4 := cmsg(unix.IPPROTO_IP, unix.IP_PKTINFO, local4)
	info6 := cmsg(unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, append(mapped[:], words(7)...))
	both := Control{Local: netip.AddrFrom16(mapped), Interface: 7}
	stamp := binary.NativeEndian.AppendUint64(binary.NativeEndian.AppendUint64(nil, 1<<33), 5)
	for _, c := range []struct {
		name string
		in   []byte
		want Control
	}{
		{"nothing", nil, Control{}},
		{"IPv4 local", info4, Control{Local: netip.MustParseAddr("127.0.0.2"), Interface: 7}},
		{"IPv4 and mapped local", append(bytes.Clone(info4), info6...), both},
		{"mapped and IPv4 local", append(bytes.Clone(info6), info4...), both},
		{
			"link-local", cmsg(unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, append(linkLocal[:], words(7)...)),
			Control{Local: netip.MustParseAddr("fe80::1%7"), Interface: 7},
		},
		{
			"link-local group", cmsg(unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, append(group[:], words(7)...)),
			Control{Local: netip.MustParseAddr("ff02::1%7"), Interface: 7},
		},
		{
			"TOS is one byte", cmsg(unix.IPPROTO_IP, unix.IP_TOS, []byte{0xb9}),
			Control{TrafficClass: 0xb9, HasTrafficClass: true},
		},
		{
			"traffic class is four", cmsg(unix.IPPROTO_IPV6, unix.IPV6_TCLASS, words(0xb9)),
			Control{TrafficClass: 0xb9, HasTrafficClass: true},
		},
		{"size of segments", cmsg(unix.IPPROTO_UDP, unix.UDP_GRO, words(65535)), Control{Segment: 65535}},
		{
			"time, beyond 32 bits", cmsg(unix.SOL_SOCKET, unix.SO_TIMESTAMPNS_NEW, stamp),
			Control{Time: 1<<33*1e9 + 5},
		},
		{"sent to a group", cmsg(unix.IPPROTO_IP, unix.IP_PKTINFO, append(words(7), 10, 0, 0, 1, 239, 1, 2, 3)),
			Control{Local: netip.MustParseAddr("239.1.2.3"), NotOwn: true, Interface: 7}},
		{"unknown, then known", append(cmsg(99, 99, []byte{1}), info4...), Control{Local: netip.MustParseAddr("127.0.0.2"), Interface: 7}},
		{"too short for its kind, then known", append(cmsg(unix.IPPROTO_IPV6, unix.IPV6_TCLASS, []byte{1}), info6...), both},
		{"cut in the header", info4[:cmsgHeaderBytes-1], Control{}},
		{"cut in the data", info4[:cmsgHeaderBytes+4], Control{}},
		{"second one cut", append(bytes.Clone(info4), info6[:cmsgHeaderBytes+4]...), Control{Local: netip.MustParseAddr("127.0.0.2"), Interface: 7}},
		{"without its padding", info4[:cmsgHeaderBytes+pktinfo4Bytes], Control{Local: netip.MustParseAddr("127.0.0.2"), Interface: 7}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := parseControl(c.in); got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

// TestControlLengthsThatMakeNoSense end the walk, and no slice is made of them.
func TestControlLengthsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	good := cmsg(unix.IPPROTO_IPV6, unix.IPV6_TCLASS, words(1))
	for _, size := range []uint64{0, 1, cmsgHeaderBytes - 1, uint64(len(good)) + 1, 1 << 31, 1<<32 - 1, 1 << 63, 1<<64 - 1} {
		b := bytes.Clone(good)
		putWord(b, size)
		if got := parseControl(b); got != (Control{}) {
			t.Errorf("a length of %d is read as %+v", size, got)
		}
	}
}

// TestShortControl has each kind with less data than it needs.
func TestShortControl(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cmsgKind
		needs int
	}{
		{cmsgKind{unix.IPPROTO_IP, unix.IP_PKTINFO}, 12},
		{cmsgKind{unix.IPPROTO_IPV6, unix.IPV6_PKTINFO}, 20},
		{tos, 1},
		{trafficClass, 4},
		{cmsgKind{unix.IPPROTO_UDP, unix.UDP_GRO}, 4},
		{cmsgKind{unix.SOL_SOCKET, unix.SO_TIMESTAMPNS_NEW}, 16},
	} {
		data := bytes.Repeat([]byte{1}, c.needs)
		for size := range c.needs {
			if got := parseControl(cmsg(c.level, c.typ, data[:size])); got != (Control{}) {
				t.Errorf("%v with %d bytes is read as %+v", c.cmsgKind, size, got)
			}
		}
		if got := parseControl(cmsg(c.level, c.typ, data)); got == (Control{}) {
			t.Errorf("%v with %d bytes is not read", c.cmsgKind, c.needs)
		}
	}
}

// TestControlRoom has the room that the kernel and appendControl need.
func TestControlRoom(t *testing.T) {
	t.Parallel()
	in := unix.CmsgSpace(pktinfo4Bytes) + unix.CmsgSpace(pktinfo6Bytes) + unix.CmsgSpace(1) + 2*unix.CmsgSpace(4) + unix.CmsgSpace(16)
	if in > recvControlBytes {
		t.Errorf("all of it takes %d bytes, there are %d", in, recvControlBytes)
	}
	out := unix.CmsgSpace(pktinfo6Bytes) + 2*unix.CmsgSpace(4) + unix.CmsgSpace(2)
	if out > sendControlBytes {
		t.Errorf("all of it takes %d bytes, there are %d", out, sendControlBytes)
	}
	report := unix.CmsgSpace(extendedErrBytes+nameBytes6) + in
	if report > recvControlBytes {
		t.Errorf("a report with all of it takes %d bytes, there are %d", report, recvControlBytes)
	}
}

// FuzzParseControl reads what a kernel might have written. What is behind the control messages must make no
// difference, and what is understood must survive being told and read again.
func FuzzParseControl(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		got := parseControl(data)
		for _, tail := range []byte{0x00, 0xff} {
			longer := append(bytes.Clone(data), bytes.Repeat([]byte{tail}, 64)...)
			if again := parseControl(longer[:len(data)]); again != got {
				t.Fatalf("with %#x behind it: %+v, else %+v", tail, again, got)
			}
		}
		said := got
		said.Time, said.NotOwn = 0, false
		for _, to := range []netip.Addr{{}, netip.IPv6Unspecified(), netip.IPv4Unspecified()} {
			b := appendControl(make([]byte, 0, sendControlBytes), &said, to)
			received(b)
			again := parseControl(b)
			want := said
			if want.Interface != 0 && !want.Local.IsValid() {
				t.Fatalf("%+v has an interface and no address", want)
			}
			if want.Local.Unmap().Is4() && (again.Local.Is4() || again.Local.Is4In6()) {
				want.Local = again.Local // mapped or not, as the destination is
				if again.Local.Unmap() != said.Local.Unmap() {
					t.Fatalf("to %v: %+v comes back as %+v", to, said, again)
				}
			}
			if again != want {
				t.Fatalf("to %v: %+v comes back as %+v", to, want, again)
			}
		}
	})
}
