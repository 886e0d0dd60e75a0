package weirtest

import (
	"net/netip"

	"github.com/weirnet/weir"
	"github.com/weirnet/weir/internal/memsys"
)

// Network is a network of one machine in memory, for tests. All methods are for any goroutine.
type Network struct {
	net    *memsys.Net
	kernel *weir.Kernel
	watch  *watch
}

// NewNetwork makes a network without sockets. Inside a testing/synctest bubble, its loops belong to that.
func NewNetwork() *Network {
	n := &Network{net: memsys.New()}
	n.watch = newWatch(n.net.Backend())
	n.kernel = weir.NewKernel(n.watch.backend())
	return n
}

// Kernel is for Config.Kernel of the loops that are to be on the network.
func (n *Network) Kernel() *weir.Kernel { return n.kernel }

// AddAddr makes addr an address of the machine, besides 127.0.0.0/8 and ::1. The zone of a link-local one is a
// number.
func (n *Network) AddAddr(addr netip.Addr) { n.net.AddAddr(addr) }

// SetMaxDescriptors sets how many descriptors may be open on the network at a time, all loops together: what would make
// another one then fails with EMFILE, until it is called with a larger number, or 0 for any.
func (n *Network) SetMaxDescriptors(limit int) { n.net.SetMaxDescriptors(limit) }

// BlockSends has the sockets bound to local, those of connections included, take no datagrams and bytes any more, as
// with a full send buffer, which datagrams in memory never meet, until it is called with on false. It returns how many
// sockets that were. local is what UDP.LocalAddr tells.
func (n *Network) BlockSends(local netip.AddrPort, on bool) (sockets int) {
	for _, fd := range n.watch.descriptors() {
		addr, err := n.watch.LocalAddr(fd)
		if err != nil || unmap(addr) != unmap(local) {
			continue
		}
		if n.net.BlockSends(fd, on) == nil {
			sockets++
		}
	}
	return sockets
}

func unmap(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }
