package weir

import (
	"net"
	"net/netip"
	"syscall"

	"github.com/weirnet/weir/internal/sock"
	"github.com/weirnet/weir/internal/sys"
)

// set changes an option of the open socket.
//
//   - Errors: ErrClosed, *OpError that names the option.
func (u *UDP) set(name string, apply func() error) error {
	if u.fd < 0 {
		return ErrClosed
	}
	if err := apply(); err != nil {
		return u.opError("set", netip.AddrPort{}, &sock.Error{Step: name, Err: err})
	}
	return nil
}

func (u *UDP) setInRange(name string, t sock.Twin, value, least, most int) error {
	return u.set(name, func() error {
		if err := sock.InRange("it", value, least, most); err != nil {
			return err
		}
		return t.Set(u.loop.kernel, u.fd, u.family, value)
	})
}

func flag(on bool) int {
	if on {
		return 1
	}
	return 0
}

// SetBroadcast allows sending to broadcast addresses, or forbids it.
//
//   - Errors: ErrClosed; *OpError that names the option, EINVAL for a value outside its limits.
func (u *UDP) SetBroadcast(on bool) error {
	return u.set("Broadcast", func() error {
		err := u.loop.kernel.SetOption(u.fd, sys.Broadcast, flag(on))
		if err == nil {
			u.broadcast, u.checked = on, checkedAddr{}
		}
		return err
	})
}

// SetTTL sets the time to live, over IPv6 the hop limit, of unicast datagrams: 1 to 255.
//
//   - Errors: as SetBroadcast.
func (u *UDP) SetTTL(hops int) error { return u.setInRange("TTL", sock.TTL(), hops, 1, 255) }

// SetTrafficClass sets the byte of that name, over IPv4 TOS: 0 to 255.
//
//   - Errors: as SetBroadcast.
func (u *UDP) SetTrafficClass(class int) error {
	err := u.setInRange("TrafficClass", sock.TrafficClass(), class, 0, 255)
	if err == nil {
		u.class = uint8(class)
	}
	return err
}

// SetFragment says what to do with datagrams larger than the path takes.
//
//   - Errors: as SetBroadcast.
func (u *UDP) SetFragment(f Fragmentation) error {
	return u.set("Fragment", func() error {
		mode := f.mode()
		if mode == nil {
			return syscall.EINVAL // what the system's was, the kernel does not tell any more
		}
		return sock.PathMTUDiscovery().Set(u.loop.kernel, u.fd, u.family, int(*mode))
	})
}

// SetBuffers asks for buffers of the kernel, as UDPConfig does; 0 leaves one as it is. Stats tells what was
// granted.
//
//   - Errors: as SetBroadcast.
func (u *UDP) SetBuffers(recvBytes, sendBytes int) error {
	for _, b := range []struct {
		name         string
		plain, force sys.Option
		bytes        int
	}{
		{"RecvBufferBytes", sys.RecvBuffer, sys.RecvBufferForce, recvBytes},
		{"SendBufferBytes", sys.SendBuffer, sys.SendBufferForce, sendBytes},
	} {
		if b.bytes == 0 {
			continue
		}
		err := u.set(b.name, func() error {
			if b.bytes < 0 {
				return syscall.EINVAL
			}
			return sock.SetBuffer(u.loop.kernel, u.fd, b.plain, b.force, b.bytes)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// PathMTU is the largest packet that the path to the peer of a connected socket takes, in bytes with IP header,
// as far as the kernel knows.
//
//   - Errors: ErrClosed; *OpError: ENOTCONN without a peer.
func (u *UDP) PathMTU() (int, error) {
	if u.fd < 0 {
		return 0, ErrClosed
	}
	n, err := 0, error(syscall.ENOTCONN)
	if u.peer.IsValid() {
		n, err = u.pathMTU()
	}
	if err != nil {
		return 0, u.opError("get", netip.AddrPort{}, &sock.Error{Step: "PathMTU", Err: err})
	}
	return n, nil
}

// SetMulticastTTL sets the time to live, over IPv6 the hop limit, of multicast datagrams: 0 (this machine) to
// 255.
//
//   - Errors: as SetBroadcast.
func (u *UDP) SetMulticastTTL(hops int) error {
	return u.setInRange("MulticastTTL", sock.MulticastTTL(), hops, 0, 255)
}

// SetMulticastLoop says whether multicast that is sent comes back to members on this machine. It does so by
// default.
//
//   - Errors: as SetBroadcast.
func (u *UDP) SetMulticastLoop(on bool) error {
	return u.set("MulticastLoop", func() error {
		return sock.MulticastLoop().Set(u.loop.kernel, u.fd, u.family, flag(on))
	})
}

// SetMulticastInterface says where multicast leaves; nil is where the route says.
//
//   - Errors: as SetBroadcast.
func (u *UDP) SetMulticastInterface(i *net.Interface) error {
	return u.set("MulticastInterface", func() error {
		return sock.MulticastInterface().Set(u.loop.kernel, u.fd, u.family, indexOf(i))
	})
}

func indexOf(i *net.Interface) int {
	if i == nil {
		return 0
	}
	return i.Index
}

// Join has the socket hear what is sent to a multicast group, by an interface; nil is the one that the route to
// the group says. Leave ends it. A socket bound to the wildcard hears what comes to its port for any group that a
// socket of the machine has joined (ip(7), IP_MULTICAST_ALL); Datagram.Local tells for which.
//
//   - Errors: as SetBroadcast; EADDRINUSE when it has joined already, ENODEV.
//   - Source: RFC 3678.
func (u *UDP) Join(group netip.Addr, i *net.Interface) error {
	return u.membership("Join", sys.Membership{Group: group, Interface: indexOf(i)}, true)
}

// Leave ends what Join began.
//
//   - Errors: as SetBroadcast; EADDRNOTAVAIL when it had not joined.
func (u *UDP) Leave(group netip.Addr, i *net.Interface) error {
	return u.membership("Leave", sys.Membership{Group: group, Interface: indexOf(i)}, false)
}

// JoinSource has the socket hear what one source sends to a multicast group (source-specific multicast).
//
//   - Errors: as Join.
func (u *UDP) JoinSource(group, source netip.Addr, i *net.Interface) error {
	return u.membership("JoinSource", sys.Membership{Group: group, Source: source, Interface: indexOf(i)}, true)
}

// LeaveSource ends what JoinSource began.
//
//   - Errors: as Leave.
func (u *UDP) LeaveSource(group, source netip.Addr, i *net.Interface) error {
	return u.membership("LeaveSource", sys.Membership{Group: group, Source: source, Interface: indexOf(i)}, false)
}

func (u *UDP) membership(name string, m sys.Membership, join bool) error {
	return u.set(name, func() error {
		m.Group, m.Source = m.Group.Unmap(), m.Source.Unmap()
		switch {
		case !m.Group.IsMulticast():
			return syscall.EINVAL
		case u.family == sys.IPv4 && !m.Group.Is4(), m.Source.IsValid() && m.Source.Is4() != m.Group.Is4():
			return syscall.EAFNOSUPPORT
		}
		return u.loop.kernel.Membership(u.fd, m, join)
	})
}
