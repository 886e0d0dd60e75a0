package memsys

import (
	"net/netip"
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

// The largest payloads: 65535 less the headers of IPv4 and UDP; for IPv6 its own header does not count.
const (
	maxPayload4 = 65507
	maxPayload6 = 65527
)

func (k kernel) Recv(fd int, b *sys.RecvBatch, n int) (int, error) {
	k.n.mu.Lock()
	defer k.n.mu.Unlock()
	k.n.calls.Recv++
	s, err := k.n.socketOf(fd, sys.UDP)
	if err != nil {
		return 0, err
	}
	if err := s.takePending(); err != nil {
		return 0, err
	}
	if s.queue.len() == 0 {
		return 0, syscall.EAGAIN
	}
	got := min(n, s.queue.len())
	for i := range got {
		d := s.queue.pop()
		b.Msgs[i] = s.fill(b.Slot(i), d)
		k.n.buffers.put(d.buf)
	}
	return got, nil
}

// fill copies what fits the slot; the rest of the datagram is gone.
func (s *socket) fill(slot []byte, d datagram) sys.Message {
	m := sys.Message{Buf: slot[:copy(slot, d.buf)], Addr: s.show(d.from), Control: s.tell(&d)}
	if len(d.buf) > len(slot) {
		m.Flags = sys.Truncated
	}
	return m
}

func (k kernel) Send(fd int, b *sys.SendBatch, from, to int) (int, error) {
	k.n.mu.Lock()
	defer k.n.mu.Unlock()
	k.n.calls.Send++
	s, err := k.n.socketOf(fd, sys.UDP)
	if err != nil {
		return 0, err
	}
	for i := from; i < to; i++ {
		if err := s.send(&b.Msgs[i]); err != nil {
			if i > from { // sendmmsg(2) forgets the error; the next call meets it again, or not
				err = nil
			}
			return i - from, err
		}
	}
	return to - from, nil
}

// send sends one datagram. A pending error comes after all that is wrong with the datagram itself, as
// Linux looks for it only when it takes memory for the datagram.
func (s *socket) send(m *sys.Message) error {
	if err := s.autobind(); err != nil {
		return err
	}
	if s.family == sys.IPv4 && len(m.Buf) > 65535 {
		return syscall.EMSGSIZE
	}
	addr := m.Addr
	switch {
	case !addr.IsValid() && !s.connected():
		return syscall.EDESTADDRREQ
	case !addr.IsValid():
		addr = s.peer
	case addr.Port() == 0 && (s.family == sys.IPv6 || addr.Addr().Is4()):
		return syscall.EINVAL
	}
	way, err := s.route(addr, &m.Control)
	if err != nil {
		return err
	}
	segment := int(m.Control.Segment)
	if segment == 0 {
		segment = s.options[sys.SegmentSize]
	}
	if len(m.Buf) > s.mostTo(way.to.Addr(), segment) {
		s.tooLarge(way.to)
		return syscall.EMSGSIZE
	}
	if err := s.takePending(); err != nil {
		return err
	}
	if s.blocked {
		return syscall.EAGAIN
	}
	if segment != 0 {
		if err := s.maySegment(len(m.Buf), segment, way.to.Addr()); err != nil {
			return err
		}
	}
	if way.to.Addr().IsMulticast() && !s.loops(way.to.Addr(), way.iface) {
		return nil
	}
	s.net.deliver(&packet{
		from: way.from, to: way.to, iface: way.iface,
		class: s.class(&m.Control, way.to.Addr()), segment: segment, paged: segment != 0, payload: m.Buf,
	})
	return nil
}

// mostTo is the largest payload for a destination: what the protocol can say, or what the interface takes of a
// datagram that may not be fragmented. Segments are measured one by one.
func (s *socket) mostTo(to netip.Addr, segment int) int {
	most, headers, discovery := maxPayload6, headers6, sys.PathMTUDiscovery6
	if to.Is4() {
		most, headers, discovery = maxPayload4, headers4, sys.PathMTUDiscovery
	}
	mode := sys.PathMTUMode(s.options[discovery])
	if segment == 0 && (mode == sys.FragmentNever || mode == sys.FragmentProbe) {
		most = min(most, s.net.mtuFor(to)-headers)
	}
	return most
}

// maxSegments is UDP_MAX_SEGMENTS of newer kernels.
const maxSegments = 128

// maySegment tells whether a payload may be sent so. A segment is never fragmented.
func (s *socket) maySegment(size, segment int, to netip.Addr) error {
	headers := headers6
	if to.Is4() {
		headers = headers4
	}
	switch {
	case headers+min(size, segment) > s.net.mtuFor(to):
		return syscall.EMSGSIZE
	case size > segment*maxSegments:
		return syscall.EINVAL
	}
	return nil
}
