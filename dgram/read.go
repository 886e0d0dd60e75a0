package dgram

import (
	"net"
	"net/netip"

	"github.com/weirnet/weir/internal/sys"
)

// Read receives one datagram into b. What does not fit is cut off, which Stats.Truncated counts and ReadMsgUDP tells.
//
//   - Shape: n == 0 without an error is an empty datagram, or that b is empty: then none is received.
//   - Errors: os.ErrDeadlineExceeded, net.ErrClosed, in a *net.OpError; no others.
func (c *Conn) Read(b []byte) (n int, err error) {
	if len(b) == 0 && !c.closed.Load() {
		return 0, nil
	}
	n, _, _, _, _, err = c.read(b, nil, false)
	return n, err
}

// ReadFrom is Read that tells the source, a *net.UDPAddr. It is the same one for many datagrams of a source, and must not
// be changed.
func (c *Conn) ReadFrom(b []byte) (n int, from net.Addr, err error) {
	n, _, _, _, name, err := c.read(b, nil, true)
	if err != nil {
		return 0, nil, err
	}
	return n, name, nil
}

// ReadFromUDP is ReadFrom with the address as its type.
func (c *Conn) ReadFromUDP(b []byte) (n int, from *net.UDPAddr, err error) {
	n, _, _, _, from, err = c.read(b, nil, true)
	return n, from, err
}

// ReadFromUDPAddrPort is Read that tells the source.
func (c *Conn) ReadFromUDPAddrPort(b []byte) (n int, from netip.AddrPort, err error) {
	n, _, _, from, _, err = c.read(b, nil, false)
	return n, from, err
}

// ReadMsgUDP is ReadFromUDP that puts what the kernel says of the datagram into oob, in its own form (struct cmsghdr): what
// socket options ask for that were set by SyscallConn, or by SetControlMessage of golang.org/x/net's ipv4.NewPacketConn(c).
//
//   - Shape: oobn <= len(oob), whole messages alone. flags is MSG_TRUNC where the datagram, MSG_CTRUNC where oob was too
//     small for all.
//   - Platforms: oob and flags on Linux alone.
//   - Source: recvmsg(2).
func (c *Conn) ReadMsgUDP(b, oob []byte) (n, oobn, flags int, from *net.UDPAddr, err error) {
	n, oobn, flags, _, from, err = c.read(b, oob, true)
	return n, oobn, flags, from, err
}

// ReadMsgUDPAddrPort is ReadMsgUDP with the source as a netip.AddrPort.
func (c *Conn) ReadMsgUDPAddrPort(b, oob []byte) (n, oobn, flags int, from netip.AddrPort, err error) {
	n, oobn, flags, from, _, err = c.read(b, oob, false)
	return n, oobn, flags, from, err
}

func (c *Conn) read(b, oob []byte, named bool) (n, oobn, flags int, from netip.AddrPort, name *net.UDPAddr, err error) {
	r := &c.recv
	r.mu.Lock()
	defer r.mu.Unlock()
	d, err := r.take()
	if err != nil {
		return 0, 0, 0, netip.AddrPort{}, nil, err
	}
	r.took(1)
	n = copy(b, d.payload)
	flags = c.truncated(n, &d)
	oobn, cut := d.control(oob)
	flags |= cut
	from = d.from()
	if named {
		name = r.names.of(from)
	}
	return n, oobn, flags, from, name, nil
}

// truncated counts a datagram of which n bytes were handed out, and tells whether there were more.
func (c *Conn) truncated(n int, d *datagram) (flags int) {
	if n == len(d.payload) && d.message.Flags&sys.Truncated == 0 {
		return 0
	}
	c.counters.truncated.Add(1)
	return msgTrunc
}

// control copies the datagram's control messages, and tells where some are missing.
func (d *datagram) control(oob []byte) (n, flags int) {
	if len(oob) == 0 {
		return 0, 0
	}
	n, cut := sys.CopyRaw(oob, d.message.Raw)
	if cut || d.message.Flags&sys.ControlCut != 0 {
		flags = msgCtrunc
	}
	return n, flags
}
