package systest

import (
	"net/netip"
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
