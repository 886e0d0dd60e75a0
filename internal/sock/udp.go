// Package sock opens sockets: which calls in which order, with an error that names the call or the
// option that failed, and no descriptor left behind.
package sock

import (
	"fmt"
	"net/netip"
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

// UDPOptions is what a UDP socket is opened with.
type UDPOptions struct {
	Local     netip.AddrPort // no address at all: the wildcard, of IPv6 and IPv4 at once where there is IPv6
	Peer      netip.AddrPort // connect to it where valid
	IPv6Only  bool
	ReuseAddr bool
	ReusePort bool
	Device    string // "": any
	UDPSettings
}

// UDPSettings is what can be told to a socket that is open, too. Zero values leave what is.
type UDPSettings struct {
	Broadcast       bool
	RecvBufferBytes int
	SendBufferBytes int

	TTL                int
	TrafficClass       int
	MulticastTTL       int
	NoMulticastLoop    bool
	MulticastInterface int
	PathMTUDiscovery   *sys.PathMTUMode

	Reports          bool
	RecvLocal        bool
	RecvTrafficClass bool
	RecvTime         bool
}

// Error is a step that failed while a socket was opened.
type Error struct {
	Step string // the call, or the option by its platform-neutral name
	Err  error
}

func (e *Error) Error() string { return e.Step + ": " + e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// OpenUDP opens, binds and, where a peer is given, connects a socket.
func OpenUDP(k sys.Kernel, o UDPOptions) (fd int, family sys.Family, err error) {
	fd, family, local, err := socketFor(k, sys.UDP, o)
	if err != nil {
		return -1, 0, err
	}
	if err := prepareUDP(k, fd, family, local, o); err != nil {
		_ = k.Close(fd)
		return -1, 0, err
	}
	return fd, family, nil
}

// socketFor makes a socket of the kind for o's addresses, and tells its local address in full.
func socketFor(k sys.Setup, kind sys.Kind, o UDPOptions) (fd int, family sys.Family, local netip.AddrPort, err error) {
	family, local = FamilyOf(o)
	fd, err = k.Socket(family, kind)
	if err == syscall.EAFNOSUPPORT && !o.IPv6Only && !o.Local.Addr().IsValid() && !o.Peer.IsValid() {
		// No IPv6 on this system: the wildcard is IPv4's then.
		family, local = sys.IPv4, netip.AddrPortFrom(netip.IPv4Unspecified(), o.Local.Port())
		fd, err = k.Socket(family, kind)
	}
	if err != nil {
		return -1, 0, local, &Error{"socket", err}
	}
	return fd, family, local, nil
}

func prepareUDP(k sys.Kernel, fd int, family sys.Family, local netip.AddrPort, o UDPOptions) error {
	if err := claim(k, fd, family, o); err != nil {
		return err
	}
	if err := o.UDPSettings.Apply(k, fd, family); err != nil {
		return err
	}
	if err := k.Bind(fd, local); err != nil {
		return &Error{"bind", err}
	}
	if o.Peer.IsValid() {
		peer, err := ForFamily(o.Peer, family)
		if err == nil {
			err = k.Connect(fd, peer)
		}
		if err != nil {
			return &Error{"connect", err}
		}
	}
	return nil
}

// claim sets what bears on who may have the local address.
func claim(k sys.Options, fd int, family sys.Family, o UDPOptions) error {
	if family == sys.IPv6 {
		if err := k.SetOption(fd, sys.IPv6Only, boolInt(o.IPv6Only)); err != nil {
			return &Error{"IPv6Only", err}
		}
	}
	return Claim(k, fd, o)
}

// Claim sets how the local address may be shared with other sockets, before it is bound.
func Claim(k sys.Options, fd int, o UDPOptions) error {
	return applyAll([]setting{
		{"ReuseAddr", o.ReuseAddr, func() error { return k.SetOption(fd, sys.ReuseAddr, 1) }},
		{"ReusePort", o.ReusePort, func() error { return k.SetOption(fd, sys.ReusePort, 1) }},
		{fmt.Sprintf("Device %q", o.Device), o.Device != "", func() error { return k.BindToDevice(fd, o.Device) }},
	})
}

// Apply tells a socket its settings.
//
//   - Errors: *Error with the setting's name.
func (o *UDPSettings) Apply(k sys.Options, fd int, family sys.Family) error {
	set := func(id sys.Option, value int) func() error {
		return func() error { return k.SetOption(fd, id, value) }
	}
	twin := func(t Twin, value int) func() error {
		return func() error { return t.Set(k, fd, family, value) }
	}
	return applyAll([]setting{
		{"Broadcast", o.Broadcast, set(sys.Broadcast, 1)},
		{"RecvBufferBytes", o.RecvBufferBytes != 0, func() error {
			return SetBuffer(k, fd, sys.RecvBuffer, sys.RecvBufferForce, o.RecvBufferBytes)
		}},
		{"SendBufferBytes", o.SendBufferBytes != 0, func() error {
			return SetBuffer(k, fd, sys.SendBuffer, sys.SendBufferForce, o.SendBufferBytes)
		}},
		{"TTL", o.TTL != 0, twin(TTL(), o.TTL)},
		{"TrafficClass", o.TrafficClass != 0, twin(TrafficClass(), o.TrafficClass)},
		{"MulticastTTL", o.MulticastTTL != 0, twin(MulticastTTL(), o.MulticastTTL)},
		{"NoMulticastLoop", o.NoMulticastLoop, twin(MulticastLoop(), 0)},
		{"MulticastInterface", o.MulticastInterface != 0, twin(MulticastInterface(), o.MulticastInterface)},
		{"PathMTUDiscovery", o.PathMTUDiscovery != nil, func() error {
			return PathMTUDiscovery().Set(k, fd, family, int(*o.PathMTUDiscovery))
		}},
		{"Reports", o.Reports, twin(Reports(), 1)},
		{"ReceiveLocal", o.RecvLocal, set(RecvLocal(family), 1)},
		{"ReceiveECN", o.RecvTrafficClass, twin(RecvTrafficClass(), 1)},
		{"ReceiveTime", o.RecvTime, set(sys.RecvTime, 1)},
	})
}

// FamilyOf tells which family a socket for o needs, and its local address in full.
func FamilyOf(o UDPOptions) (sys.Family, netip.AddrPort) {
	ip := o.Local.Addr()
	if !ip.IsValid() {
		ip = netip.IPv6Unspecified()
		if o.Peer.Addr().Unmap().Is4() {
			ip = netip.IPv4Unspecified()
		}
	}
	if ip.Is4() {
		return sys.IPv4, netip.AddrPortFrom(ip, o.Local.Port())
	}
	return sys.IPv6, netip.AddrPortFrom(ip, o.Local.Port())
}

// ForFamily is addr as a socket of the family takes it: an IPv6 one knows IPv4 addresses as mapped.
func ForFamily(addr netip.AddrPort, family sys.Family) (netip.AddrPort, error) {
	ip := addr.Addr()
	switch {
	case family == sys.IPv6 && ip.Is4():
		return netip.AddrPortFrom(netip.AddrFrom16(ip.As16()), addr.Port()), nil
	case family == sys.IPv4 && ip.Is4In6():
		return netip.AddrPortFrom(ip.Unmap(), addr.Port()), nil
	case family == sys.IPv4 && !ip.Is4():
		return netip.AddrPort{}, fmt.Errorf("%v on an IPv4 socket: %w", ip, syscall.EAFNOSUPPORT)
	}
	return addr, nil
}

// Unmap is an address as users see it: IPv4 where it is IPv4, whatever socket it came through.
func Unmap(addr netip.AddrPort) netip.AddrPort {
	if addr.Addr().Is4In6() {
		return netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())
	}
	return addr
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
