package systest

import (
	"net/netip"
	"strconv"
	"syscall"
	"testing"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
)

// RunZones asserts that the zone of a link-local address goes out and comes back as a number. It is
// apart from the suite, as not every machine has such an address; linkLocal must be one of the
// backend's own.
func RunZones(t *testing.T, b poll.Backend, linkLocal netip.Addr) {
	r := newRig(t, b)
	here := netip.AddrPortFrom(linkLocal, 0)
	from, to := r.bound(here.String()), r.bound(here.String())
	r.equal(r.local(to).Addr(), linkLocal)
	r.roundTrip(from, to, linkLocal.String(), linkLocal.String())

	zone, err := strconv.Atoi(linkLocal.Zone())
	r.must(err)
	heard := sys.Control{Local: linkLocal, Interface: uint32(zone)}
	r.turnOn(to, sys.RecvLocal6)
	wild := r.bound("[::]:0")
	for _, c := range []sys.Control{{}, {Local: linkLocal}, {Interface: heard.Interface}, heard} {
		r.sendWith(wild, "x", r.local(to), c)
		m := r.recv(to)
		r.equal(m.Addr, netip.AddrPortFrom(linkLocal, r.local(wild).Port()))
		r.equal(m.Control, heard)
	}
	for _, iface := range []int{r.loopbackNumber(), noInterface} {
		c := sys.Control{Interface: uint32(iface)}
		r.want(r.trySendWith(wild, nil, r.local(to), c), syscall.EINVAL)
	}
	r.setOption(to, sys.RecvLocal6, 0)

	peer := r.local(to)
	r.must(r.Kernel.Connect(from, peer))
	remote, err := r.Kernel.RemoteAddr(from)
	r.must(err)
	r.equal(remote, peer)
	r.send(from, "by default", none)
	r.equal(r.recv(to).Addr, r.local(from))

	other := linkLocal.WithZone("99999999")
	if err := r.Kernel.Bind(r.socket(sys.IPv6), netip.AddrPortFrom(other, 0)); err == nil {
		t.Error("the same address in another zone can be bound")
	}
	r.want(r.Kernel.Bind(r.socket(sys.IPv6), netip.AddrPortFrom(linkLocal.WithZone(""), 0)), syscall.EINVAL)
}
