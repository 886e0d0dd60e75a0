package weir

import (
	"net/netip"

	"github.com/weirnet/weir/internal/batch"
	"github.com/weirnet/weir/internal/sock"
)

// Connect sets the peer that the socket exchanges datagrams with, instead of an earlier one. Datagrams
// from others that are queued already are still delivered.
//
//   - Errors: ErrClosed, *OpError.
func (u *UDP) Connect(peer netip.AddrPort) error {
	peer, err := sock.ResolveZone(peer)
	if err == nil {
		err = checkPeer(peer)
	}
	if err == nil {
		err = u.connect(peer)
	}
	if err != nil {
		return u.opError("connect", peer, err)
	}
	return nil
}

// Disconnect takes the peer away: the socket hears everybody again. A local address that the system chose
// at Connect goes back to the wildcard; the port stays.
//
//   - Errors: ErrClosed, *OpError; with EADDRINUSE, somebody has taken the port at that moment.
func (u *UDP) Disconnect() error {
	port := u.local.Port()
	err := u.connect(netip.AddrPort{})
	if err == nil {
		err = u.learnLocal() // an unknown port may be another one
	}
	if err == nil && u.local.Port() != port {
		err = u.keepPort(port)
	}
	if err != nil {
		return u.opError("disconnect", u.peer, err)
	}
	return nil
}

// connect first sends what is queued, as that was addressed under the old rule.
func (u *UDP) connect(peer netip.AddrPort) error {
	if u.fd < 0 {
		return ErrClosed
	}
	u.sender.moveAll()
	u.flushAtOnce()
	if u.fd < 0 {
		return ErrClosed
	}
	to := peer
	if peer.IsValid() {
		var err error
		if to, err = sock.ForFamily(peer, u.family); err != nil {
			return err
		}
	}
	u.addressQueued()
	if err := u.loop.kernel.Connect(u.fd, to); err != nil {
		return err
	}
	u.peer = sock.Unmap(peer)
	u.checked, u.paths = checkedAddr{}, batch.Paths{}
	_ = u.learnLocal() // the socket is connected, whatever this answers
	return nil
}

// addressQueued gives the queued datagrams for the peer that is about to change its address.
func (u *UDP) addressQueued() {
	if u.sends.Len() == 0 || !u.peer.IsValid() {
		return
	}
	peer, _ := sock.ForFamily(u.peer, u.family) // it was the socket's peer, so it has an address there
	for i := range u.sends.Trains() {
		if t := u.sends.At(i); !t.Addr.IsValid() {
			t.Addr = peer
		}
	}
}

// keepPort binds the port again that a disconnect gave up, as Linux does with one that it chose itself
// (SOCK_BINDPORT_LOCK in __udp_disconnect).
func (u *UDP) keepPort(port uint16) error {
	wildcard, err := u.loop.kernel.LocalAddr(u.fd)
	if err == nil {
		err = u.loop.kernel.Bind(u.fd, netip.AddrPortFrom(wildcard.Addr(), port))
	}
	_ = u.learnLocal()
	return err
}

// learnLocal asks for the socket's own address; the last one known stays where that fails.
func (u *UDP) learnLocal() error {
	addr, err := u.loop.kernel.LocalAddr(u.fd)
	if err == nil {
		u.local = sock.Unmap(addr)
	}
	return err
}
