//go:build linux

package sys

import (
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mmsghdr is struct mmsghdr of recvmmsg(2).
type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
}

// recvNative is a RecvBatch in the kernel's own form. Headers are set up once; after a call only those
// that it used are set back, so a call costs what it received, not what it asked for.
type recvNative struct {
	hdrs  []mmsghdr
	iovs  []unix.Iovec
	names []rawName

	controls controlSlots
}

func (b *recvNative) init(slots [][]byte) {
	b.controls = newControlSlots(len(slots), recvControlBytes)
	b.hdrs = make([]mmsghdr, len(slots))
	b.iovs = make([]unix.Iovec, len(slots))
	b.names = make([]rawName, len(slots))
	for i, slot := range slots {
		b.iovs[i].Base = unsafe.SliceData(slot)
		b.iovs[i].SetLen(len(slot))
		h := &b.hdrs[i].hdr
		h.Name = (*byte)(unsafe.Pointer(&b.names[i]))
		h.Namelen = nameBytes6
		h.Iov = &b.iovs[i]
		h.SetIovlen(1)
		h.Control = unsafe.SliceData(b.controls.slot(i))
		h.SetControllen(recvControlBytes)
	}
}

func (s *real) Recv(fd int, b *RecvBatch, n int) (int, error) {
	got, err := s.recv(fd, b.native.hdrs[:n])
	for i := range got {
		h := &b.native.hdrs[i]
		m := &b.Msgs[i]
		m.Buf = b.slots[i][:h.len]
		m.Addr = getName(&b.native.names[i], h.hdr.Namelen)
		m.Flags = flagsOf(h.hdr.Flags)
		m.Control, m.Raw = Control{}, nil
		if h.hdr.Controllen != 0 {
			m.Raw = b.native.controls.slot(i)[:min(h.hdr.Controllen, recvControlBytes)]
			if m.Flags&ControlCut != 0 {
				m.Raw = wholeControl(m.Raw)
			}
			m.Control = parseControl(m.Raw)
			if m.Addr.Addr().Is4In6() && m.Control.Local.Is4() { // RecvLocal alone on an IPv6 socket
				m.Control.Local = netip.AddrFrom16(m.Control.Local.As16())
			}
		}
		h.hdr.Namelen = nameBytes6
		h.hdr.SetControllen(recvControlBytes)
		h.hdr.Flags = 0
	}
	return got, err
}

func flagsOf(msg int32) (f Flags) {
	if msg&unix.MSG_TRUNC != 0 {
		f |= Truncated
	}
	if msg&unix.MSG_CTRUNC != 0 {
		f |= ControlCut
	}
	return f
}

// sendNative is a SendBatch in the kernel's own form.
type sendNative struct {
	hdrs  []mmsghdr
	iovs  []unix.Iovec
	names []rawName

	controls controlSlots
}

func (b *sendNative) init(n int) {
	b.controls = newControlSlots(n, sendControlBytes)
	b.hdrs = make([]mmsghdr, n)
	b.iovs = make([]unix.Iovec, n)
	b.names = make([]rawName, n)
	for i := range b.hdrs {
		b.hdrs[i].hdr.Iov = &b.iovs[i]
		b.hdrs[i].hdr.SetIovlen(1)
	}
}

func (s *real) Send(fd int, b *SendBatch, from, to int) (int, error) {
	for i := from; i < to; i++ {
		m := &b.Msgs[i]
		b.native.iovs[i].Base = unsafe.SliceData(m.Buf)
		b.native.iovs[i].SetLen(len(m.Buf))
		h := &b.native.hdrs[i].hdr
		h.Namelen = putName(&b.native.names[i], m.Addr)
		h.Name = (*byte)(unsafe.Pointer(&b.native.names[i]))
		if h.Namelen == 0 {
			h.Name = nil
		}
		h.Control = nil
		h.SetControllen(0)
		if m.Control != (Control{}) || len(m.Raw) > 0 {
			control := append(b.native.controls.slot(i)[:0], m.Raw[:min(len(m.Raw), MaxRawBytes)]...)
			control = appendControl(control, &m.Control, s.destination(fd, m))
			h.Control = unsafe.SliceData(control)
			h.SetControllen(len(control))
		}
	}
	return s.send(fd, b.native.hdrs[from:to])
}

// destination is where a datagram with a Control goes, as far as it has to be known: an interface is told to
// IPv4 and IPv6 apart, and one of them refuses what the other one is told.
func (s *real) destination(fd int, m *Message) netip.Addr {
	if m.Addr.IsValid() || m.Control.Local.IsValid() || m.Control.Interface == 0 {
		return m.Addr.Addr()
	}
	peer, _ := s.RemoteAddr(fd) // none: the kernel will say so
	return peer.Addr()
}
