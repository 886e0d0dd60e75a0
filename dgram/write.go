package dgram

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

// Write sends b as one datagram to the peer.
//
//   - Owner: b is the caller's again when Write returns.
//   - Errors: in a *net.OpError. What the caller did wrong (no peer, an address of the other family, port 0); EMSGSIZE, in
//     an *os.SyscallError, for a datagram larger than the path or the protocol takes; os.ErrDeadlineExceeded where the
//     kernel's buffer stayed full; net.ErrClosed. A datagram that the system refuses is lost and counted, without an error.
//   - Source: send(2), udp(7).
func (c *Conn) Write(b []byte) (int, error) {
	n, err := c.write(b, nil, netip.AddrPort{}, nil)
	if errors.Is(err, errNoAddress) {
		return 0, c.opError("write", nil, os.NewSyscallError("write", syscall.EDESTADDRREQ))
	}
	return n, err
}

// WriteTo is Write to an address, a *net.UDPAddr, of a Conn without a peer.
func (c *Conn) WriteTo(b []byte, to net.Addr) (int, error) {
	addr, ok := to.(*net.UDPAddr)
	if !ok {
		return 0, c.opError("write", to, syscall.EINVAL)
	}
	return c.WriteToUDP(b, addr)
}

// WriteToUDP is WriteTo with the address as its type.
func (c *Conn) WriteToUDP(b []byte, to *net.UDPAddr) (int, error) {
	at, err := addrPort(to)
	if err != nil {
		return 0, c.opError("write", to, err)
	}
	return c.writeTo(b, at, to)
}

// WriteToUDPAddrPort is WriteTo with the address as a netip.AddrPort.
func (c *Conn) WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error) {
	return c.writeTo(b, to, nil)
}

// writeTo is write of a Conn without a peer.
func (c *Conn) writeTo(b []byte, to netip.AddrPort, name *net.UDPAddr) (int, error) {
	if c.peer != nil && !to.IsValid() && !c.closed.Load() {
		return 0, c.opError("write", nil, net.ErrWriteToConnected)
	}
	return c.write(b, nil, to, name)
}

// WriteMsgUDP is WriteTo, or Write where to is nil, with control messages in the kernel's form (struct cmsghdr), such as the
// address to send from, ECN, or the size of the datagrams that b is many of (UDP_SEGMENT).
//
//   - Shape: oobn is len(oob) without an error. With a control message that this package does not know, oob may be 128
//     bytes, and all of it goes to the kernel as it is, once: a train that is refused is lost then.
//   - Errors: as Write's; EIO and EINVAL of what the device cannot segment do not come, as the datagrams are sent singly.
//   - Platforms: oob on Linux alone: elsewhere as package net.
//   - Source: sendmsg(2), ip(7) IP_PKTINFO, udp(7) UDP_SEGMENT.
func (c *Conn) WriteMsgUDP(b, oob []byte, to *net.UDPAddr) (n, oobn int, err error) {
	at, err := addrPort(to)
	if err != nil {
		return 0, 0, c.opError("write", to, err)
	}
	if n, err = c.write(b, oob, at, to); err != nil {
		return n, 0, err
	}
	return n, len(oob), nil
}

// WriteMsgUDPAddrPort is WriteMsgUDP with the address as a netip.AddrPort, whose zero is the peer.
func (c *Conn) WriteMsgUDPAddrPort(b, oob []byte, to netip.AddrPort) (n, oobn int, err error) {
	if n, err = c.write(b, oob, to, nil); err != nil {
		return n, 0, err
	}
	return n, len(oob), nil
}

// addrPort is zero for nil.
func addrPort(a *net.UDPAddr) (netip.AddrPort, error) {
	if a == nil {
		return netip.AddrPort{}, nil
	}
	if a.Port != int(uint16(a.Port)) {
		return netip.AddrPort{}, syscall.EINVAL // as package net, and not another port
	}
	if a.IP == nil {
		return netip.AddrPortFrom(netip.IPv6Unspecified(), uint16(a.Port)), nil // as package net: this machine
	}
	return a.AddrPort(), nil
}

// write sends one datagram or train. name is to where it is known in that form, for an error.
func (c *Conn) write(b, oob []byte, to netip.AddrPort, name *net.UDPAddr) (int, error) {
	s := c.send.singles.Get().(*sender)
	m := &s.batch.Msgs[0]
	separate, err := c.compose(m, b, oob, to)
	switch {
	case err != nil:
	case separate:
		err = c.send.separate(m)
	default:
		_, err = s.flush(1)
	}
	s.release(1)
	c.send.singles.Put(s)
	if err != nil {
		return 0, c.opError("write", netAddr(to, name), err)
	}
	return len(b), nil
}

func netAddr(to netip.AddrPort, name *net.UDPAddr) net.Addr {
	switch {
	case name != nil:
		return name
	case to.IsValid():
		return net.UDPAddrFromAddrPort(to)
	}
	return nil
}

// compose fills m. separate says that it is a train that the kernel does not take as one.
func (c *Conn) compose(m *sys.Message, b, oob []byte, to netip.AddrPort) (separate bool, err error) {
	if err := c.send.usable(); err != nil {
		return false, err
	}
	m.Buf, m.Raw, m.Control = b, nil, sys.Control{}
	if m.Addr, err = c.address(len(b), to); err != nil || len(oob) == 0 {
		return false, err
	}
	control, known := sys.ParseRaw(oob)
	if !known {
		if len(oob) > sys.MaxRawBytes {
			return false, fmt.Errorf("%d bytes of control messages; there is room for %d: %w", len(oob), sys.MaxRawBytes, syscall.EINVAL)
		}
		m.Raw = oob
		return false, nil
	}
	m.Control = control
	segment := int(control.Segment)
	switch {
	case segment == 0:
	case len(b) <= segment:
		m.Control.Segment = 0 // one datagram is no train: some devices get its checksum wrong (Linux before 6.12)
	case len(b) > maxSegments*segment || !c.send.takesTrain(m.Addr.Addr(), segment):
		return true, nil
	}
	return false, nil
}

// maxSegments is UDP_MAX_SEGMENTS of Linux before 6.9.
const maxSegments = 64
