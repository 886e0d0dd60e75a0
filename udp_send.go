package weir

import (
	"fmt"
	"net/netip"
	"syscall"

	"github.com/weirnet/weir/internal/batch"
	"github.com/weirnet/weir/internal/sock"
	"github.com/weirnet/weir/internal/sys"
)

// The most that a UDP datagram carries: 65,535 bytes less the UDP header and, over IPv4, the IP header.
const (
	maxPayload4 = 65_507
	maxPayload6 = 65_527
)

// Send sends b as one datagram to an address, or to the peer of a connected socket when to is the zero
// AddrPort. b is copied into a queue, which goes to the kernel after the batch of datagrams that is being
// delivered on this socket, when it holds 64 trains or four of the largest, and at the end of the turn. A train is up
// to 64 datagrams of a size to one destination, which the kernel gets as one (GSO). What it refuses then goes to
// OnError. Other goroutines send by Sender.
//
//   - Errors: ErrWouldBlock when the queue is full (OnDrain follows), ErrClosed, also when a Stop only waits for
//     the queue, else *OpError for a datagram that cannot be sent as asked: EMSGSIZE, EDESTADDRREQ (no peer and no
//     address), EISCONN (both), EAFNOSUPPORT (an IPv6 address on an IPv4 socket), EINVAL (port 0, or a zone that is
//     not a number), EACCES (broadcast to 255.255.255.255 not allowed).
func (u *UDP) Send(b []byte, to netip.AddrPort) error {
	return u.send(b, to, nil)
}

// SendOptions is what goes with a datagram. The zero SendOptions says nothing.
type SendOptions struct {
	Local     netip.Addr // the address to send from, one of this machine's and no group; zero: the socket's, or the route's
	Interface int        // the number of the interface to leave by; 0: the route's
	ECN       ECN
}

// SendWith is Send with options.
//
//   - Errors: as Send; EAFNOSUPPORT for a Local of another family than the destination, EINVAL for a group.
//     What is not an address of this machine, or not an interface, the kernel finds out: OnError.
func (u *UDP) SendWith(b []byte, to netip.AddrPort, o SendOptions) error {
	return u.send(b, to, &o)
}

func (u *UDP) send(b []byte, to netip.AddrPort, o *SendOptions) error {
	if u.fd < 0 || u.stopping == drainingSends {
		return ErrClosed
	}
	var m sys.Message // filled in place: a literal is built beside it, and copied
	m.Buf, m.Addr = b, to
	if err := u.prepare(&m, o); err != nil {
		return u.opError("send", to, err)
	}
	if !u.roomFor(len(b)) {
		u.refused = true
		u.counters.refused.Add(1)
		return ErrWouldBlock
	}
	u.enqueue(&m)
	u.flushLong()
	return nil
}

// prepare makes of an address and options what the kernel takes, or says what is wrong with them.
func (u *UDP) prepare(m *sys.Message, o *SendOptions) (err error) {
	to := m.Addr
	m.Addr, err = u.destination(m.Buf, to)
	if err == nil && o != nil {
		m.Control, err = u.control(o, to)
	}
	return err
}

// Reply sends b to where d came from. Where UDPConfig.ReceiveLocal told to which address d was sent, the answer
// leaves from there, so that who asked one of many addresses hears from that one. It has no ECN mark: ReplyWith can
// give it one.
//
//   - Errors: as Send.
func (u *UDP) Reply(d *Datagram, b []byte) error { return u.ReplyWith(d, b, SendOptions{}) }

// ReplyWith is Reply with options. A Local that they name goes before that of d.
//
//   - Errors: as SendWith; EISCONN where the socket was connected to another peer since d was sent.
func (u *UDP) ReplyWith(d *Datagram, b []byte, o SendOptions) error {
	to := d.Source
	if to == u.peer {
		to = netip.AddrPort{}
	}
	if !o.Local.IsValid() && canBeSource(d.Local) && !d.notOwn {
		o.Local = d.Local
	}
	return u.send(b, to, &o)
}

// canBeSource tells that a datagram can be sent from an address: a group or everybody is none.
func canBeSource(a netip.Addr) bool {
	a = a.Unmap()
	return a.IsValid() && !a.IsMulticast() && !a.IsUnspecified() && a != limitedBroadcast
}

// roomFor tells whether the queue takes a datagram of that size.
func (u *UDP) roomFor(bytes int) bool {
	n := u.sends.Len()
	return n == 0 || n < u.limits.sends && u.sends.Bytes()+bytes <= u.limits.sendBytes
}

// enqueue queues a datagram. flushLong follows.
func (u *UDP) enqueue(m *sys.Message) {
	if !u.segment || !u.sends.Join(m, u.paths.Largest(m.Addr.Addr())) {
		u.sends.Push(m)
	}
}

// flushLong gives a long queue to the kernel now, and any other at the end of the turn.
func (u *UDP) flushLong() {
	long := u.sends.Trains() >= sendBatch || u.sends.Bytes() >= flushBytes && u.sends.Full()
	if long && !u.blocked {
		u.flush()
	} else if !u.flushDue {
		u.flushDue = true
		u.loop.turnEnd.add(u)
	}
}

const ecnMask = 3

// control is what the kernel is to be told of a datagram.
func (u *UDP) control(o *SendOptions, to netip.AddrPort) (c sys.Control, err error) {
	if *o == (SendOptions{}) {
		return c, nil
	}
	if o.Interface < 0 || o.ECN > CE {
		return c, syscall.EINVAL
	}
	c.Interface = uint32(o.Interface)
	if o.ECN != NotECT && u.ecn {
		c.TrafficClass, c.HasTrafficClass = u.class&^ecnMask|uint8(o.ECN), true
	}
	if !o.Local.IsValid() {
		return c, nil
	}
	if !canBeSource(o.Local) {
		return c, fmt.Errorf("from %v, which no datagram can come from: %w", o.Local, syscall.EINVAL)
	}
	if !to.IsValid() {
		to = u.peer
	}
	if o.Local.Unmap().Is4() != to.Addr().Unmap().Is4() {
		return c, fmt.Errorf("from %v: %w", o.Local, syscall.EAFNOSUPPORT)
	}
	local, err := sock.ForFamily(netip.AddrPortFrom(o.Local, 0), u.family)
	c.Local = local.Addr()
	return c, err
}

// destination checks a datagram and is its address as the kernel takes it.
func (u *UDP) destination(b []byte, to netip.AddrPort) (netip.AddrPort, error) {
	if to == u.checked.as && to.IsValid() && len(b) <= maxPayload4 {
		return u.checked.dest, nil
	}
	connected, given := u.peer.IsValid(), to.IsValid()
	switch {
	case connected && given:
		return to, syscall.EISCONN
	case !connected && !given:
		return to, syscall.EDESTADDRREQ
	case connected:
		return to, checkSize(b, u.peer.Addr())
	}
	if err := checkPeer(to); err != nil {
		return to, err
	}
	if err := checkSize(b, to.Addr()); err != nil {
		return to, err
	}
	if to.Addr().Unmap() == limitedBroadcast && !u.broadcast {
		return to, syscall.EACCES
	}
	dest, err := sock.ForFamily(to, u.family)
	if err == nil {
		u.checked = checkedAddr{to, dest}
	}
	return dest, err
}

// checkedAddr is an address that was found good to send to, and is most likely the next one, too.
type checkedAddr struct {
	as, dest netip.AddrPort // as it was given, and as the kernel takes it
}

var limitedBroadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

func checkPeer(peer netip.AddrPort) error {
	if !peer.IsValid() {
		return syscall.EDESTADDRREQ
	}
	if peer.Port() == 0 {
		return syscall.EINVAL
	}
	return sock.CheckZone(peer)
}

func checkSize(b []byte, to netip.Addr) error {
	most := maxPayload6
	if to.Is4() || to.Is4In6() {
		most = maxPayload4
	}
	if len(b) > most {
		return syscall.EMSGSIZE
	}
	return nil
}

// flush gives the queue to the kernel, unless that waits for the socket to be writable.
func (u *UDP) flush() {
	u.flushDue = false
	if u.sends.Len() == 0 || u.blocked {
		return
	}
	l := u.loop
	sent := batch.Flush(l.kernel, u.fd, l.send, &u.sends, &u.hooks)
	u.counters.countSent(&sent)
	if sent.Dead != nil {
		u.counters.unsent.Add(uint64(u.sends.Len()))
		u.sends.Clear()
		u.close(u.opError("send", netip.AddrPort{}, sent.Dead))
		return
	}
	if sent.Blocked {
		u.blocked = true
		u.changed()
	}
	if u.sends.Len() > u.limits.sends/2 || u.sends.Bytes() > u.limits.sendBytes/2 {
		return
	}
	if u.refused {
		u.refused, u.drained = false, true
		u.changed()
	}
	u.sender.roomAgain()
}

// flushAtOnce gives the queue to the kernel also where the socket was not writable when last looked at.
func (u *UDP) flushAtOnce() {
	if u.fd >= 0 && u.sends.Len() > 0 {
		u.blocked = false
		u.flush()
		u.changed()
	}
}

// flushAfterBatch charges the flush of what a batch of datagrams was answered with to the socket.
func (u *UDP) flushAfterBatch() {
	if u.fd >= 0 && u.sends.Len() > 0 && !u.blocked {
		u.flush()
		u.loop.settle()
	}
}

// lostSend hears of a datagram or train that the kernel refused.
func (u *UDP) lostSend(t *batch.Train, err error) {
	to := sock.Unmap(t.Addr)
	if !to.IsValid() {
		to = u.peer
	}
	if err == syscall.EMSGSIZE {
		mtu := 0
		if u.peer.IsValid() {
			mtu, _ = u.pathMTU() // 0 where the kernel does not tell
		}
		err = &SizeError{Bytes: len(t.First()), MTU: mtu}
	}
	u.deferError(u.opError("send", to, err))
}

// retrySend runs before a datagram is tried again that got what may be an earlier one's error: as long as the
// error queue holds a report, the kernel may answer that to the next call, too.
func (u *UDP) retrySend() (taken int) { return u.drainQueue() }

// staleSend hears of an error that was an earlier datagram's. The error queue has said more of it, where there
// is one.
func (u *UDP) staleSend(err error) {
	u.failed = false
	if !u.reports.on {
		u.report(err)
	}
}

// noSegments hears that datagrams pass to a destination singly which did not pass as a train.
func (u *UDP) noSegments(t *batch.Train, err error) {
	u.paths.Blame(t.Addr.Addr(), int(t.Control.Segment), batch.DeviceCannot(err))
	if !u.told.gso {
		u.told.gso = true
		u.loop.fast.lost("gso", err, u.name())
	}
}

// noTrafficClass hears that datagrams pass without a traffic class which did not pass with one.
func (u *UDP) noTrafficClass(_ *batch.Train, err error) {
	u.ecn = false
	if !u.told.ecn {
		u.told.ecn = true
		u.loop.fast.lost("ecn", err, u.name())
	}
}
