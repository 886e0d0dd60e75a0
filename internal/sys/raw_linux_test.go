//go:build linux

package sys

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// rawCmsg is a control message of somebody else's.
func rawCmsg(level, typ int32, data ...byte) []byte {
	b, room := appendCmsg(make([]byte, 0, unix.CmsgSpace(len(data))), level, typ, len(data))
	copy(room, data)
	return b
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func TestCopyRaw(t *testing.T) {
	t.Parallel()
	class := rawCmsg(unix.IPPROTO_IP, unix.IP_TOS, 3)
	info := rawCmsg(unix.IPPROTO_IP, unix.IP_PKTINFO, make([]byte, pktinfo4Bytes)...)
	gro := rawCmsg(unix.IPPROTO_UDP, unix.UDP_GRO, 9, 0, 0, 0)
	for _, row := range []struct {
		name string
		raw  []byte
		room int
		want []byte
		cut  bool
	}{
		{"nothing", nil, 100, nil, false},
		{"one", class, 100, class, false},
		{"one with just enough room", class, len(class), class, false},
		{"one with a byte too little", class, len(class) - 1, nil, true},
		{"no room", class, 0, nil, true},
		{"two", join(class, info), 100, join(class, info), false},
		{"room for the first", join(class, info), len(class) + 1, class, true},
		{"room for the smaller, which is the second", join(info, class), len(class), class, true},
		{"that of GRO is left out", join(class, gro, info), 100, join(class, info), false},
		{"that of GRO alone", gro, 0, nil, false},
		{"what is no control message ends it", join(class, []byte{1, 2, 3}), 100, class, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			dst := bytes.Repeat([]byte{0xee}, row.room)
			n, cut := CopyRaw(dst, row.raw)
			if !bytes.Equal(dst[:n], row.want) || cut != row.cut {
				t.Errorf("% x, cut %v; want % x, %v", dst[:n], cut, row.want, row.cut)
			}
			if !bytes.Equal(dst[n:], bytes.Repeat([]byte{0xee}, row.room-n)) {
				t.Errorf("behind it: % x", dst[n:])
			}
		})
	}
}

func TestParseRaw(t *testing.T) {
	t.Parallel()
	v4, v6 := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")
	info4 := make([]byte, pktinfo4Bytes)
	binary.NativeEndian.PutUint32(info4, 7)
	copy(info4[4:], v4.AsSlice())
	info6 := append(v6.AsSlice(), 7, 0, 0, 0)
	binary.NativeEndian.PutUint32(info6[16:], 7)
	long := func(v uint32) []byte { return binary.NativeEndian.AppendUint32(nil, v) }
	class := rawCmsg(unix.IPPROTO_IP, unix.IP_TOS, 3)
	for _, row := range []struct {
		name string
		raw  []byte
		want Control
		ok   bool
	}{
		{"nothing", nil, Control{}, true},
		{"TOS, a byte", class, Control{TrafficClass: 3, HasTrafficClass: true}, true},
		{"TOS, an int", rawCmsg(unix.IPPROTO_IP, unix.IP_TOS, long(3)...), Control{TrafficClass: 3, HasTrafficClass: true}, true},
		{"a traffic class", rawCmsg(unix.IPPROTO_IPV6, unix.IPV6_TCLASS, long(3)...), Control{TrafficClass: 3, HasTrafficClass: true}, true},
		{"pktinfo", rawCmsg(unix.IPPROTO_IP, unix.IP_PKTINFO, info4...), Control{Local: v4, Interface: 7}, true},
		{"pktinfo of no address", rawCmsg(unix.IPPROTO_IP, unix.IP_PKTINFO, make([]byte, 12)...), Control{}, true},
		{"pktinfo of IPv6", rawCmsg(unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, info6...), Control{Local: v6, Interface: 7}, true},
		{"pktinfo of no IPv6 address", rawCmsg(unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, make([]byte, 20)...), Control{}, true},
		{"segments", rawCmsg(unix.IPPROTO_UDP, unix.UDP_SEGMENT, binary.NativeEndian.AppendUint16(nil, 1200)...), Control{Segment: 1200}, true},
		{"many", join(class, rawCmsg(unix.IPPROTO_UDP, unix.UDP_SEGMENT, binary.NativeEndian.AppendUint16(nil, 9)...)), Control{TrafficClass: 3, HasTrafficClass: true, Segment: 9}, true},
		{"an unknown one", rawCmsg(unix.IPPROTO_IP, unix.IP_TTL, long(3)...), Control{}, false},
		{"an unknown one behind a known", join(class, rawCmsg(unix.SOL_SOCKET, unix.SO_MARK, long(3)...)), Control{}, false},
		{"one that is too short", rawCmsg(unix.IPPROTO_IP, unix.IP_PKTINFO, 1), Control{}, false},
		{"TOS of two bytes", rawCmsg(unix.IPPROTO_IP, unix.IP_TOS, 3, 0), Control{}, false},
		{"TOS of none", rawCmsg(unix.IPPROTO_IP, unix.IP_TOS), Control{}, false},
		{"segments of a byte", rawCmsg(unix.IPPROTO_UDP, unix.UDP_SEGMENT, 1), Control{}, false},
		{"half a header", class[:cmsgHeaderBytes-1], Control{}, false},
		{"a length beyond the end", class[:cmsgHeaderBytes], Control{}, false},
		{"a tail", join(class, []byte{0}), Control{}, false},
		{"without the padding", class[:unix.CmsgLen(1)], Control{TrafficClass: 3, HasTrafficClass: true}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if got, ok := ParseRaw(row.raw); got != row.want || ok != row.ok {
				t.Errorf("%+v, %v; want %+v, %v", got, ok, row.want, row.ok)
			}
		})
	}
}

// TestWholeControl: of a slot that was too small for all, the message at its very end may be half of one.
func TestWholeControl(t *testing.T) {
	t.Parallel()
	class, info := rawCmsg(unix.IPPROTO_IP, unix.IP_TOS, 3), rawCmsg(unix.IPPROTO_IP, unix.IP_PKTINFO, make([]byte, 12)...)
	half := bytes.Clone(info[:cmsgHeaderBytes+4])
	if wordBytes == 8 {
		binary.NativeEndian.PutUint64(half, uint64(len(half)))
	} else {
		binary.NativeEndian.PutUint32(half, uint32(len(half)))
	}
	for name, row := range map[string]struct{ slot, want []byte }{
		"nothing":              {nil, nil},
		"half of one":          {half, nil},
		"half of the second":   {join(class, half), class},
		"no room for a header": {join(class, []byte{1, 2, 3}), class},
	} {
		if got := wholeControl(row.slot); !bytes.Equal(got, row.want) {
			t.Errorf("%s: % x; want % x", name, got, row.want)
		}
	}
}

// FuzzRaw reads what a program might have written, and copies what a kernel might have. A copy is within its room, holds
// whole messages, and says the same as the original as far as nothing was cut; what ParseRaw understands the kernel is told.
func FuzzRaw(f *testing.F) {
	f.Add([]byte(nil), 0)
	f.Add(rawCmsg(unix.IPPROTO_IP, unix.IP_TOS, 3), 24)
	f.Add(join(rawCmsg(unix.IPPROTO_IP, unix.IP_PKTINFO, make([]byte, 12)...), rawCmsg(unix.IPPROTO_UDP, unix.UDP_GRO, 9, 0, 0, 0)), 32)
	f.Add(rawCmsg(unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, bytes.Repeat([]byte{1}, 20)...), 100)
	f.Add(rawCmsg(unix.IPPROTO_UDP, unix.UDP_SEGMENT, 0, 5), 500)
	f.Fuzz(func(t *testing.T, raw []byte, room int) {
		room = max(min(room, 1000), 0)
		dst := make([]byte, room)
		n, cut := CopyRaw(dst, raw)
		if n > room || n > len(raw) || !cut && n == 0 && parseControl(raw) != (Control{Segment: parseControl(raw).Segment}) {
			t.Fatalf("%d of %d bytes, room for %d, cut %v", n, len(raw), room, cut)
		}
		if again, cut := CopyRaw(make([]byte, n), dst[:n]); again != n || cut {
			t.Fatalf("a copy of the copy: %d of %d bytes, cut %v", again, n, cut)
		}
		if !cut {
			want := parseControl(raw)
			want.Segment = 0
			if got := parseControl(dst[:n]); got != want {
				t.Fatalf("the copy says %+v, the original %+v", got, want)
			}
		}
		c, ok := ParseRaw(raw)
		if !ok {
			if c != (Control{}) {
				t.Fatalf("not understood, and %+v", c)
			}
			return
		}
		for _, to := range []netip.Addr{{}, netip.IPv4Unspecified(), netip.IPv6Unspecified()} {
			again, ok := ParseRaw(appendControl(make([]byte, 0, sendControlBytes), &c, to))
			if !ok || again.Segment != c.Segment || again.HasTrafficClass != c.HasTrafficClass || again.TrafficClass != c.TrafficClass {
				t.Fatalf("to %v: %+v is told as %+v, %v", to, c, again, ok)
			}
		}
	})
}
