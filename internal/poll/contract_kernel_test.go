//go:build linux

package poll_test

import (
	"net"
	"net/netip"
	"strconv"
	"testing"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys/systest"
)

func TestContract(t *testing.T) {
	systest.Run(t, func(*testing.T) poll.Backend { return poll.Native() })
}

func TestZones(t *testing.T) {
	addr, ok := linkLocal(t)
	if !ok {
		t.Skip("no interface has a link-local address")
	}
	systest.RunZones(t, poll.Native(), addr)
}

func TestPaths(t *testing.T) { systest.RunPaths(t, poll.Native()) }

// linkLocal finds an address with a zone, and writes the zone as the interface's number.
func linkLocal(t *testing.T) (netip.Addr, bool) {
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range interfaces {
		if i.Flags&net.FlagUp == 0 {
			continue
		}
		addrs, err := i.Addrs()
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range addrs {
			p, err := netip.ParsePrefix(a.String())
			if err == nil && p.Addr().Is6() && p.Addr().IsLinkLocalUnicast() {
				return p.Addr().WithZone(strconv.Itoa(i.Index)), true
			}
		}
	}
	return netip.Addr{}, false
}
