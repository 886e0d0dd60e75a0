package memsys_test

import (
	"net/netip"
	"testing"
	"testing/synctest"

	"github.com/weirnet/weir/internal/memsys"
	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys/systest"
)

func TestContract(t *testing.T) {
	systest.Run(t, func(*testing.T) poll.Backend { return memsys.New().Backend() })
}

// TestContractInBubble runs each case where time stands still until all wait: a Wait that blocked on
// anything but channels and timers would hang here.
func TestContractInBubble(t *testing.T) {
	for _, c := range systest.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { c.Run(t, memsys.New().Backend()) })
		})
	}
}

func TestZones(t *testing.T) {
	n := memsys.New()
	addr := netip.MustParseAddr("fe80::1%7")
	n.AddAddr(addr)
	systest.RunZones(t, n.Backend(), addr)
}

func TestMulticast(t *testing.T) {
	n := memsys.New()
	n.AddInterface(7, "wire")
	n.AddAddr(netip.MustParseAddr("fe80::1%7"))
	systest.RunMulticast(t, n.Backend(), 7)
}
