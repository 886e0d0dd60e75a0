package batch

// chunkBytes holds the largest datagram there is (65,527 bytes over IPv6).
const chunkBytes = 64 << 10

// keptChunks is how many free chunks a pool holds back from the garbage collector.
const keptChunks = 32

// chunk is a piece of memory that datagrams are packed into, one behind the other.
type chunk struct {
	next *chunk
	used int // bytes given out
	live int // datagrams in them that are still queued
	data [chunkBytes]byte
}

// Pool lends chunks to queues that share an owner. The zero Pool is ready for use.
type Pool struct {
	free *chunk
	kept int
}

func (p *Pool) get() *chunk {
	c := p.free
	if c == nil {
		return new(chunk)
	}
	p.free, c.next = c.next, nil
	p.kept--
	return c
}

func (p *Pool) put(c *chunk) {
	if p.kept == keptChunks {
		return
	}
	c.used, c.live = 0, 0
	c.next, p.free = p.free, c
	p.kept++
}
