//go:build linux

package sys

import (
	"net/netip"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestNameRoundTrip(t *testing.T) {
	t.Parallel()
	// weir:ports only parsed
	for _, c := range []struct {
		name, addr, want string // want: empty for the same
		size             uint32
	}{
		{name: "IPv4", addr: "127.0.0.1:8080", size: 16},
		{name: "IPv4, all ones", addr: "255.255.255.255:65535", size: 16},
		{name: "IPv6", addr: "[2001:db8::1]:53", size: 28},
		{name: "mapped stays IPv6", addr: "[::ffff:127.0.0.1]:53", size: 28},
		{name: "small zone", addr: "[fe80::1%2]:1", size: 28},
		{name: "zone beyond the table", addr: "[fe80::1%64]:1", size: 28},
		{name: "largest zone", addr: "[fe80::1%4294967295]:1", size: 28},
		{name: "zone 0 is none", addr: "[fe80::1%0]:1", want: "[fe80::1]:1", size: 28},
		{name: "a zone that is no number is none", addr: "[fe80::1%eth0]:1", want: "[fe80::1]:1", size: 28},
		{name: "a zone that is too large is none", addr: "[fe80::1%4294967296]:1", want: "[fe80::1]:1", size: 28},
	} {
		t.Run(c.name, func(t *testing.T) {
			addr := netip.MustParseAddrPort(c.addr)
			want := addr
			if c.want != "" {
				want = netip.MustParseAddrPort(c.want)
			}
			raw := rawName{Flowinfo: 7, Scope_id: 7} // left by another address
			if size := putName(&raw, addr); size != c.size {
				t.Errorf("%d bytes, want %d", size, c.size)
			}
			if got := getName(&raw, c.size); got != want {
				t.Errorf("got %v, want %v", got, want)
			}
			if got := fromSockaddr(toSockaddr(addr)); got != want {
				t.Errorf("by way of unix.Sockaddr: got %v, want %v", got, want)
			}
		})
	}
}

func TestNameBytes(t *testing.T) {
	t.Parallel()
	var raw rawName
	putName(&raw, netip.MustParseAddrPort("1.2.3.4:258"))
	got := *(*[8]byte)(unsafe.Pointer(&raw))
	want := [8]byte{2: 1, 3: 2, 4: 1, 5: 2, 6: 3, 7: 4} // port and address in the network's order
	*(*uint16)(unsafe.Pointer(&want)) = unix.AF_INET    // the family in the machine's
	if got != want {
		t.Errorf("got % x, want % x", got, want)
	}
}

func TestNameOfNobody(t *testing.T) {
	t.Parallel()
	var raw rawName
	if size := putName(&raw, netip.AddrPort{}); size != 0 {
		t.Errorf("the zero AddrPort has %d bytes", size)
	}
	raw.Family = unix.AF_INET6
	for _, size := range []uint32{0, 1, 15, 16, 27} {
		if got := getName(&raw, size); got.IsValid() {
			t.Errorf("%d bytes of an IPv6 name are %v", size, got)
		}
	}
	raw.Family = unix.AF_UNIX
	if got := getName(&raw, nameBytes6); got.IsValid() {
		t.Errorf("a unix name is %v", got)
	}
	if got := fromSockaddr(&unix.SockaddrUnix{Name: "x"}); got.IsValid() {
		t.Errorf("a unix address is %v", got)
	}
}

// FuzzName reads what a kernel might have written, and asserts that what it means survives being
// written and read again.
func FuzzName(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte, size uint32) {
		var raw rawName
		copy((*[unix.SizeofSockaddrInet6]byte)(unsafe.Pointer(&raw))[:], data)
		addr := getName(&raw, size)
		if !addr.IsValid() {
			return
		}
		again := rawName{Flowinfo: ^uint32(0), Scope_id: ^uint32(0)}
		wrote := putName(&again, addr)
		if wrote == 0 || wrote > size {
			t.Fatalf("%v was read from %d bytes and is written in %d", addr, size, wrote)
		}
		if got := getName(&again, wrote); got != addr {
			t.Fatalf("%v comes back as %v", addr, got)
		}
	})
}
