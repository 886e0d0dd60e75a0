//go:build linux

package poll_test

import (
	"net"
	"net/netip"
	"testing"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys/systest"
)

func TestMulticast(t *testing.T) {
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range interfaces {
		if carriesMulticast(t, i) {
			systest.RunMulticast(t, poll.Native(), i.Index)
			return
		}
	}
	t.Skip("no interface carries multicast of both families")
}

// carriesMulticast asks for addresses too, which datagrams are sent from.
func carriesMulticast(t *testing.T, i net.Interface) bool {
	if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagMulticast == 0 || i.Flags&net.FlagLoopback != 0 {
		return false
	}
	addrs, err := i.Addrs()
	if err != nil {
		t.Fatal(err)
	}
	var ipv4, linkLocal, routed bool
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		if err != nil {
			continue
		}
		ipv4 = ipv4 || p.Addr().Is4()
		linkLocal = linkLocal || p.Addr().Is6() && p.Addr().IsLinkLocalUnicast()
		routed = routed || p.Addr().Is6() && p.Addr().IsGlobalUnicast()
	}
	return ipv4 && linkLocal && routed
}
