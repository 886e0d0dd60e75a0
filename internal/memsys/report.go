package memsys

import (
	"net/netip"
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

// quoted4 is how much of an IPv4 datagram's payload an ICMP message of at most 576 bytes repeats, quoted6 that of
// an IPv6 one of at most 1280.
const (
	quoted4 = 576 - 2*20 - 2*8
	quoted6 = 1280 - 2*40 - 2*8
)

// reports is an error queue.
type reports struct {
	list    []report
	charged int
}

type report struct {
	sys.Report // addresses as the socket's owner sees them
	charge     int
}

func (q *reports) len() int { return len(q.list) }

func (q *reports) clear() { *q = reports{} }

// report queues one, unless the receive buffer is full. Linux tells nobody of those.
func (s *socket) report(r sys.Report, charge int) {
	if s.charged()+charge >= s.recvLimit {
		return
	}
	s.reports.list = append(s.reports.list, report{r, charge})
	s.reports.charged += charge
}

// reportsOf tells whether the socket wants reports of datagrams to a.
func (s *socket) reportsOf(a netip.Addr) bool {
	if a.Is4() {
		return s.on(sys.Reports)
	}
	return s.on(sys.Reports6)
}

// refuse is a "port unreachable" about a packet that the socket has sent.
func (s *socket) refuse(p *packet) {
	wants := s.reportsOf(p.to.Addr())
	if !wants && !s.connected() {
		return // it could not tell for whom it is
	}
	if wants {
		s.report(sys.Report{
			Errno:    syscall.ECONNREFUSED,
			Origin:   sys.OriginICMP,
			Peer:     s.show(p.to),
			Offender: s.showAddr(p.to.Addr()),
		}, reportCharge(p))
	}
	s.pending = syscall.ECONNREFUSED
	s.notify()
}

// reportCharge is that of an ICMP message, which has the headers of the datagram before what it quotes.
func reportCharge(p *packet) int {
	size := len(p.payload)
	if p.segmented() {
		size = p.segment
	}
	if p.to.Addr().Is4() {
		return truesize(headers4+min(size, quoted4), true)
	}
	return truesize(headers6+min(size, quoted6), false)
}

// tooLarge is the report of this machine that a datagram does not fit. It leaves no pending error. Of an IPv4
// destination it has the port of the connected peer, if any.
func (s *socket) tooLarge(to netip.AddrPort) {
	if !s.reportsOf(to.Addr()) {
		return
	}
	if to.Addr().Is4() {
		to = netip.AddrPortFrom(to.Addr(), s.peer.Port())
	}
	s.report(sys.Report{
		Errno:  syscall.EMSGSIZE,
		Origin: sys.OriginLocal,
		Peer:   s.show(to),
		Info:   uint32(s.net.mtuFor(to.Addr())),
	}, truesize(0, true))
	s.notify()
}

func (k kernel) RecvErrors(fd int, b *sys.ReportBatch, n int) (int, error) {
	k.n.mu.Lock()
	defer k.n.mu.Unlock()
	k.n.calls.RecvErrors++
	s, err := k.n.socket(fd)
	if err != nil {
		return 0, err
	}
	if s.reports.len() == 0 {
		return 0, syscall.EAGAIN
	}
	got := min(n, s.reports.len())
	for i := range got {
		b.Reports[i] = s.takeReport()
	}
	return got, nil
}

// takeReport takes the first one. With each that an ICMP message brought, the pending error becomes the next one's.
func (s *socket) takeReport() sys.Report {
	q := &s.reports
	first := q.list[0]
	q.charged -= first.charge
	q.list = q.list[:copy(q.list, q.list[1:])]
	switch {
	case q.len() > 0 && q.list[0].Origin == sys.OriginICMP:
		s.pending = q.list[0].Errno
	case first.Origin == sys.OriginICMP:
		s.pending = 0
	}
	return first.Report
}
