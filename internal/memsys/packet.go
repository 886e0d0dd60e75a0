package memsys

import (
	"net/netip"
	"time"

	"github.com/weirnet/weir/internal/sys"
)

// packet is a datagram on its way: what its headers say, or many at once that Linux has not cut apart yet.
type packet struct {
	from, to netip.AddrPort // in wire form
	iface    int            // where it arrives; that of another machine's if nobody is to get it
	class    uint8
	segment  int  // 0, or the size of each datagram in payload but the last
	paged    bool // it was sent as segments, and so lies in pages
	payload  []byte
}

// segmented tells whether the payload is more than one datagram.
func (p *packet) segmented() bool { return p.segment != 0 && len(p.payload) > p.segment }

// charge is what a receive buffer is charged for it.
func (p *packet) charge() int {
	if p.paged {
		return len(p.payload) + pagedOverhead
	}
	return truesize(len(p.payload), p.from.Addr().Is4())
}

// accept queues a packet. A socket without RecvJoined gets segments one by one.
func (s *socket) accept(p *packet) {
	if !p.segmented() || s.on(sys.RecvJoined) {
		s.enqueue(p)
		return
	}
	one := *p
	for rest := p.payload; len(rest) > 0; {
		n := min(p.segment, len(rest))
		one.payload, rest = rest[:n], rest[n:]
		one.segment = 0
		s.enqueue(&one)
	}
}

// enqueue takes a packet or drops it: an empty queue takes any, another what still fits its limit.
func (s *socket) enqueue(p *packet) {
	charge := p.charge()
	if charged := s.charged(); charged > 0 && charged+charge > s.recvLimit {
		s.drops++
		return
	}
	d := datagram{
		buf: s.net.buffers.get(len(p.payload)), from: p.from, to: p.to.Addr(),
		iface: p.iface, class: p.class, charge: charge,
	}
	if p.segmented() {
		d.segment = uint16(p.segment)
	}
	if s.on(sys.RecvTime) {
		d.at = time.Now()
	}
	copy(d.buf, p.payload)
	s.queue.push(d)
	s.notify()
}

// charged is what is in the receive buffer: reports are there too.
func (s *socket) charged() int {
	charged := s.queue.charged + s.reports.charged
	if s.stream != nil {
		charged += s.stream.in.received
	}
	return charged
}
