package batch

import "net/netip"

// Paths remembers to which destinations the kernel cannot segment what it is given. The zero Paths knows of
// none.
type Paths struct {
	largest map[netip.Addr]int // segments that pass, in bytes; 0: none do
}

const maxPaths = 1024

// NoLimit is the largest segment of a path of which nothing is known.
const NoLimit = maxTrainBytes

// Largest is the largest segment for a destination.
func (p *Paths) Largest(to netip.Addr) int {
	if len(p.largest) > 0 {
		if n, known := p.largest[to]; known {
			return n
		}
	}
	return NoLimit
}

// Blame notes that segments of that size did not pass where single datagrams did. all says that it would be so
// with any size. Of more than maxPaths destinations one is forgotten, whichever: to learn it again costs one
// refused train, and nobody can have it switched off for others.
func (p *Paths) Blame(to netip.Addr, segment int, all bool) {
	if p.largest == nil {
		p.largest = make(map[netip.Addr]int)
	}
	n := segment - 1
	if all {
		n = 0
	}
	n = min(n, p.Largest(to))
	if _, known := p.largest[to]; !known && len(p.largest) == maxPaths {
		for other := range p.largest {
			delete(p.largest, other)
			break
		}
	}
	p.largest[to] = n
}
