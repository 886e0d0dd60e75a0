package memsys

import (
	"net/netip"
	"time"
)

// datagram is one that waits for its reader, or many that are read as one.
type datagram struct {
	buf     []byte
	from    netip.AddrPort
	to      netip.Addr
	iface   int
	class   uint8
	segment uint16
	at      time.Time // zero where RecvTime was off
	charge  int
}

// queue is a ring of datagrams. It grows and does not shrink: tests fill the same socket again.
type queue struct {
	ring    []datagram // its length is zero or a power of two
	head    int
	count   int
	charged int
}

func (q *queue) len() int { return q.count }

func (q *queue) push(d datagram) {
	if q.count == len(q.ring) {
		q.grow()
	}
	q.ring[(q.head+q.count)&(len(q.ring)-1)] = d
	q.count++
	q.charged += d.charge
}

func (q *queue) pop() datagram {
	d := q.ring[q.head]
	q.ring[q.head] = datagram{}
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.count--
	q.charged -= d.charge
	return d
}

func (q *queue) grow() {
	ring := make([]datagram, max(8, 2*len(q.ring)))
	n := copy(ring, q.ring[q.head:])
	copy(ring[n:], q.ring[:q.head])
	q.ring, q.head = ring, 0
}

func (q *queue) clear(b *buffers) {
	for q.count > 0 {
		b.put(q.pop().buf)
	}
}
