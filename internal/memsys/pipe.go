package memsys

// pipe is one direction of a connection: a ring of bytes at the receiver. It grows and does not shrink.
type pipe struct {
	ring  []byte // its length is zero or a power of two
	head  int
	count int

	received int      // of count: they are with the receiver, the rest waits in the sender's buffer
	ended    bool     // the sender's FIN is behind the last byte
	total    int      // bytes that were ever put
	files    []passed // in the order of their bytes
}

// over tells whether the receiver has the FIN.
func (p *pipe) over() bool { return p.ended && p.received == p.count }

// free is the next part of the ring that put may fill, of at most n bytes.
func (p *pipe) free(n int) []byte {
	for p.count+n > len(p.ring) {
		p.grow()
	}
	from := (p.head + p.count) & (len(p.ring) - 1)
	return p.ring[from:min(from+n, len(p.ring))]
}

// put adds n bytes that are in the free part.
func (p *pipe) put(n int) {
	p.count += n
	p.total += n
}

func (p *pipe) write(b []byte) {
	for len(b) > 0 {
		n := copy(p.free(len(b)), b)
		p.put(n)
		b = b[n:]
	}
}

// read takes what is with the receiver.
func (p *pipe) read(b []byte) (n int) {
	for n < len(b) && p.received > 0 {
		part := p.ring[p.head:min(p.head+p.received, len(p.ring))]
		got := copy(b[n:], part)
		p.head = (p.head + got) & (len(p.ring) - 1)
		p.count -= got
		p.received -= got
		n += got
	}
	return n
}

// advance gives the receiver what its buffer takes of what waits.
func (p *pipe) advance(limit int) { p.received = max(p.received, min(p.count, limit)) }

// cut loses what the receiver does not have, and the FIN if that is so.
func (p *pipe) cut() {
	if !p.over() {
		p.ended = false
	}
	p.total -= p.count - p.received
	p.count = p.received
}

func (p *pipe) grow() {
	ring := make([]byte, max(4096, 2*len(p.ring)))
	n := copy(ring, p.ring[p.head:])
	copy(ring[n:], p.ring[:p.head])
	p.ring, p.head = ring, 0
}
