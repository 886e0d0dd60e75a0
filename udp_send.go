package weir

import (
	"net/netip"
	"syscall"

	"github.com/weirnet/weir/internal/batch"
	"github.com/weirnet/weir/internal/sock"
)

// The most that a UDP datagram carries: 65,535 bytes less the UDP header and, over IPv4, the IP header.
const (
	maxPayload4 = 65_507
	maxPayload6 = 65_527
)

// Send sends b as one datagram to an address, or to the peer of a connected socket when to is the zero
// AddrPort. b is copied into a queue, which goes to the kernel after the batch of datagrams that is being
// delivered on this socket, when it holds 64, and at the end of the turn; what the kernel refuses then goes
// to OnError. Other goroutines send by a function that they Post.
//
//   - Errors: ErrWouldBlock when the queue is full (OnDrain follows), ErrClosed, also when a Stop
//     only waits for the queue, else *OpError for a
//     datagram that cannot be sent as asked: EMSGSIZE, EDESTADDRREQ (no peer and no address), EISCONN (both),
//     EAFNOSUPPORT (an IPv6 address on an IPv4 socket), EINVAL (port 0, or a zone
//     that is not a number), EACCES (broadcast to 255.255.255.255 not allowed).
func (u *UDP) Send(b []byte, to netip.AddrPort) error {
	if u.fd < 0 || u.stopping == drainingSends {
		return ErrClosed
	}
	dest, err := u.destination(b, to)
	if err != nil {
		return u.opError("send", to, err)
	}
	if n := u.sends.Len(); n >= u.limits.sends || n > 0 && u.sends.Bytes()+len(b) > u.limits.sendBytes {
		u.refused = true
		u.counters.refused.Add(1)
		return ErrWouldBlock
	}
	u.sends.Push(b, dest, 0)
	if u.sends.Len() == sendBatch && !u.blocked {
		u.flush()
	} else if !u.flushDue {
		u.flushDue = true
		u.loop.turnEnd.add(u)
	}
	return nil
}

// destination checks a datagram and is its address as the kernel takes it.
func (u *UDP) destination(b []byte, to netip.AddrPort) (netip.AddrPort, error) {
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
	if to.Addr().Unmap() == limitedBroadcast && !u.limits.broadcast {
		return to, syscall.EACCES
	}
	return sock.ForFamily(to, u.family)
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
	u.counters.sendCalls.Add(uint64(sent.Calls))
	u.counters.sent.Add(uint64(sent.Datagrams))
	u.counters.sentBytes.Add(uint64(sent.Bytes))
	u.counters.lost.Add(uint64(sent.Failed))
	if sent.Dead != nil {
		u.counters.unsent.Add(uint64(u.sends.Len()))
		u.sends.Drop(u.sends.Len())
		u.close(u.opError("send", netip.AddrPort{}, sent.Dead))
		return
	}
	if sent.Blocked {
		u.blocked = true
		u.changed()
	}
	if u.refused && u.sends.Len() <= u.limits.sends/2 && u.sends.Bytes() <= u.limits.sendBytes/2 {
		u.refused, u.drained = false, true
		u.changed()
	}
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
		u.loop.charge(0)
	}
}

// lostSend hears of a datagram that the kernel refused.
func (u *UDP) lostSend(d *batch.Datagram, err error) {
	to := sock.Unmap(d.Addr)
	if !to.IsValid() {
		to = u.peer
	}
	u.deferError(u.opError("send", to, err))
}
