//go:build linux

package sys

import (
	"encoding/binary"
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// extendedErrBytes is struct sock_extended_err (ip(7)): errno, origin, type, code, pad, info, data. Behind it
// stands the address of the offender.
const extendedErrBytes = 16

// reportNative is a ReportBatch in the kernel's own form. Of the datagram that a report quotes nothing is
// taken, but the kernel wants an iovec.
type reportNative struct {
	hdrs     []mmsghdr
	iovs     []unix.Iovec
	names    []rawName
	controls controlSlots
	quoted   [1]byte
}

func (b *reportNative) init(n int) {
	b.hdrs = make([]mmsghdr, n)
	b.iovs = make([]unix.Iovec, n)
	b.names = make([]rawName, n)
	b.controls = newControlSlots(n, recvControlBytes)
	for i := range b.hdrs {
		b.iovs[i].Base = &b.quoted[0]
		b.iovs[i].SetLen(1)
		h := &b.hdrs[i].hdr
		h.Name = (*byte)(unsafe.Pointer(&b.names[i]))
		h.Iov = &b.iovs[i]
		h.SetIovlen(1)
		h.Control = unsafe.SliceData(b.controls.slot(i))
	}
}

func (s *real) RecvErrors(fd int, b *ReportBatch, n int) (int, error) {
	hdrs := b.native.hdrs[:n]
	for i := range hdrs {
		hdrs[i].hdr.Namelen = nameBytes6
		hdrs[i].hdr.SetControllen(recvControlBytes)
	}
	got, _, err := s.recvmmsg.call(unix.SYS_RECVMMSG, unix.SYS_RECVMSG, fd, hdrs, unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
	for i := range got {
		h := &hdrs[i].hdr
		b.Reports[i] = parseReport(b.native.controls.slot(i)[:min(h.Controllen, recvControlBytes)])
		b.Reports[i].Peer = getName(&b.native.names[i], h.Namelen)
	}
	return got, err
}

// parseReport reads the control messages of an entry of the error queue; its Peer is the message's address.
// What is not understood leaves a Report without an errno.
func parseReport(b []byte) (r Report) {
	for {
		level, typ, data, rest, ok := nextCmsg(b)
		if !ok {
			return r
		}
		b = rest
		recverr := level == unix.IPPROTO_IP && typ == unix.IP_RECVERR ||
			level == unix.IPPROTO_IPV6 && typ == unix.IPV6_RECVERR
		if !recverr || len(data) < extendedErrBytes {
			continue
		}
		r.Errno = syscall.Errno(binary.NativeEndian.Uint32(data))
		r.Origin = originOf(data[4])
		r.Info = binary.NativeEndian.Uint32(data[8:])
		r.Offender = offenderOf(data[extendedErrBytes:])
	}
}

func originOf(o uint8) Origin {
	switch o {
	case unix.SO_EE_ORIGIN_LOCAL:
		return OriginLocal
	case unix.SO_EE_ORIGIN_ICMP, unix.SO_EE_ORIGIN_ICMP6:
		return OriginICMP
	default:
		return OriginOther
	}
}

func offenderOf(b []byte) netip.Addr {
	var raw rawName
	mem := (*[nameBytes6]byte)(unsafe.Pointer(&raw))
	n := copy(mem[:], b)
	return getName(&raw, uint32(n)).Addr()
}
