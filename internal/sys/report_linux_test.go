//go:build linux

package sys

import (
	"bytes"
	"net/netip"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// extendedErr builds a struct sock_extended_err with an offender behind it, as the kernel writes it.
func extendedErr(errno syscall.Errno, origin byte, info uint32, offender netip.Addr) []byte {
	b := append(words(uint32(errno)), origin, 3, 3, 0)
	b = append(b, words(info, 0)...)
	var raw rawName
	size := putName(&raw, netip.AddrPortFrom(offender, 0))
	if size == 0 {
		size = nameBytes4 // Linux leaves room, with AF_UNSPEC
	}
	return append(b, (*[nameBytes6]byte)(unsafe.Pointer(&raw))[:size]...)
}

func TestParseReport(t *testing.T) {
	t.Parallel()
	ip := netip.MustParseAddr
	refused4 := extendedErr(syscall.ECONNREFUSED, unix.SO_EE_ORIGIN_ICMP, 0, ip("127.0.0.1"))
	want4 := Report{Errno: syscall.ECONNREFUSED, Origin: OriginICMP, Offender: ip("127.0.0.1")}
	for _, c := range []struct {
		name string
		in   []byte
		want Report
	}{
		{"nothing", nil, Report{}},
		{"IPv4", cmsg(unix.IPPROTO_IP, unix.IP_RECVERR, refused4), want4},
		{
			"IPv6", cmsg(unix.IPPROTO_IPV6, unix.IPV6_RECVERR, extendedErr(syscall.EHOSTUNREACH, unix.SO_EE_ORIGIN_ICMP6, 0, ip("fe80::1%3"))),
			Report{Errno: syscall.EHOSTUNREACH, Origin: OriginICMP, Offender: ip("fe80::1%3")},
		},
		{
			"too large, by this machine", cmsg(unix.IPPROTO_IP, unix.IP_RECVERR, extendedErr(syscall.EMSGSIZE, unix.SO_EE_ORIGIN_LOCAL, 1500, netip.Addr{})),
			Report{Errno: syscall.EMSGSIZE, Origin: OriginLocal, Info: 1500},
		},
		{
			"too large, by a router", cmsg(unix.IPPROTO_IPV6, unix.IPV6_RECVERR, extendedErr(syscall.EMSGSIZE, unix.SO_EE_ORIGIN_ICMP6, 1280, ip("2001:db8::1"))),
			Report{Errno: syscall.EMSGSIZE, Origin: OriginICMP, Info: 1280, Offender: ip("2001:db8::1")},
		},
		{
			"another origin", cmsg(unix.IPPROTO_IP, unix.IP_RECVERR, extendedErr(0, unix.SO_EE_ORIGIN_TXSTATUS, 0, netip.Addr{})),
			Report{},
		},
		{"without an offender", cmsg(unix.IPPROTO_IP, unix.IP_RECVERR, refused4[:extendedErrBytes]), Report{Errno: syscall.ECONNREFUSED, Origin: OriginICMP}},
		{"with half an offender", cmsg(unix.IPPROTO_IP, unix.IP_RECVERR, refused4[:extendedErrBytes+7]), Report{Errno: syscall.ECONNREFUSED, Origin: OriginICMP}},
		{"too short", cmsg(unix.IPPROTO_IP, unix.IP_RECVERR, refused4[:extendedErrBytes-1]), Report{}},
		{
			"behind others", append(cmsg(unix.IPPROTO_IP, unix.IP_TOS, []byte{1}), cmsg(unix.IPPROTO_IP, unix.IP_RECVERR, refused4)...),
			want4,
		},
		{"of the level of another family's option", cmsg(unix.IPPROTO_IP, unix.IPV6_RECVERR, refused4), Report{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := parseReport(c.in); got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

// FuzzParseReport reads what a kernel might have written. What is behind the control messages must make no
// difference, and what is understood must survive being written and read again.
func FuzzParseReport(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		got := parseReport(data)
		for _, tail := range []byte{0x00, 0xff} {
			longer := append(bytes.Clone(data), bytes.Repeat([]byte{tail}, 64)...)
			if again := parseReport(longer[:len(data)]); again != got {
				t.Fatalf("with %#x behind it: %+v, else %+v", tail, again, got)
			}
		}
		origin := map[Origin]byte{OriginLocal: unix.SO_EE_ORIGIN_LOCAL, OriginICMP: unix.SO_EE_ORIGIN_ICMP}[got.Origin]
		b := cmsg(unix.IPPROTO_IP, unix.IP_RECVERR, extendedErr(got.Errno, origin, got.Info, got.Offender))
		if again := parseReport(b); again != got {
			t.Fatalf("%+v comes back as %+v", got, again)
		}
	})
}
