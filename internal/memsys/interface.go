package memsys

import (
	"net/netip"
	"strconv"
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

const (
	loopback    = 1     // the interface's number, and what 0 stands for where a route would choose
	loopbackMTU = 65536 // Linux's
)

// The largest MTU that IPv4 can tell, and what its and IPv6's header takes of one, with UDP's.
const (
	maxMTU4  = 65535
	headers4 = 28
	headers6 = 48
)

// AddInterface makes another interface. It has no address, but may carry multicast.
func (n *Net) AddInterface(number int, name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ifaces[number] = name
}

// SetMTU sets the MTU of all interfaces.
func (n *Net) SetMTU(bytes int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mtu = bytes
}

// ifaceOf is the interface by which an address of this network is reached.
func ifaceOf(a netip.Addr) int {
	zone := a.Zone()
	if zone == "" {
		return loopback
	}
	i, err := strconv.Atoi(zone)
	if err != nil {
		return loopback
	}
	return i
}

// zoneOf writes an interface as a zone.
func zoneOf(iface int) string { return strconv.Itoa(iface) }

func (k kernel) BindToDevice(fd int, name string) error {
	k.n.mu.Lock()
	defer k.n.mu.Unlock()
	k.n.calls.BindToDevice++
	s, err := k.n.socket(fd)
	if err != nil {
		return err
	}
	if name == "" {
		s.device = 0
		return nil
	}
	for number, has := range k.n.ifaces {
		if has == name {
			s.device = number
			return nil
		}
	}
	return syscall.ENODEV
}

// pathMTU is the one of a connected socket; all paths have the interfaces'.
func (s *socket) pathMTU(o sys.Option) (int, error) {
	switch {
	case o == sys.PathMTU6 && s.family != sys.IPv6:
		return 0, syscall.EOPNOTSUPP
	case !s.connected():
		return 0, syscall.ENOTCONN
	}
	return s.net.mtuFor(s.peer.Addr()), nil
}

func (n *Net) mtuFor(to netip.Addr) int {
	if to.Is4() {
		return min(n.mtu, maxMTU4)
	}
	return n.mtu
}
