package batch

import "net/netip"

// Paths remembers to which destinations the kernel cannot segment what it is given. The zero Paths knows of
// none.
type Paths struct {
	largest map[netip.Addr]int // segments that pass, in bytes; 0: none do
	off     bool               // for all: more than maxPaths are known not to take them
}

const maxPaths = 1024

// NoLimit is the largest segment of a path of which nothing is known.
const NoLimit = maxTrainBytes

// Largest is the largest segment for a destination.
func (p *Paths) Largest(to netip.Addr) int {
	if p.off {
		return 0
	}
	if len(p.largest) > 0 {
		if n, known := p.largest[to]; known {
			return n
		}
	}
	return NoLimit
}

// Blame notes that segments of that size did not pass where single datagrams did. all says that it would be so
// with any size.
func (p *Paths) Blame(to netip.Addr, segment int, all bool) {
	if p.off {
		return
	}
	if p.largest == nil {
		p.largest = make(map[netip.Addr]int)
	}
	n := segment - 1
	if all {
		n = 0
	}
	p.largest[to] = min(n, p.Largest(to))
	if len(p.largest) > maxPaths {
		p.largest, p.off = nil, true
	}
}

// Off tells that nothing is segmented any more, whatever its destination.
func (p *Paths) Off() bool { return p.off }
