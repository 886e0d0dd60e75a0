package stream

// Sizes of chunks. A queue begins with a small one, so that a thousand connections with an answer each do not take
// a thousand large ones.
const (
	smallChunkBytes = 4 << 10
	largeChunkBytes = 64 << 10
)

// What a pool holds back from the garbage collector: 4 MiB of each size.
const (
	keptSmallChunks = 1024
	keptLargeChunks = 64
)

// chunk is a link of a queue: bytes with or without descriptors, or a file and no bytes.
type chunk struct {
	next     *chunk
	from, to int // the bytes still to be written are data[from:to]
	data     []byte
	fds      []int // go with the first byte
	file     *File
}

// Pool lends chunks to queues that share an owner. The zero Pool is ready for use.
//
//   - Owner: loop only.
type Pool struct {
	small, large chunkStack
}

// get returns an empty chunk.
func (p *Pool) get(large bool) *chunk {
	if large {
		return p.large.get(largeChunkBytes)
	}
	return p.small.get(smallChunkBytes)
}

func (p *Pool) put(c *chunk) {
	if len(c.data) == largeChunkBytes {
		p.large.put(c, keptLargeChunks)
	} else {
		p.small.put(c, keptSmallChunks)
	}
}

// Trim gives back all but a small chunk, for a pool that a single queue has: what a burst took would be held for as long
// as the queue is there.
func (p *Pool) Trim() {
	p.large = chunkStack{}
	if c := p.small.first; c != nil {
		c.next = nil
		p.small.n = 1
	}
}

// chunkStack is a stack of chunks of one size.
type chunkStack struct {
	first *chunk
	n     int
}

func (s *chunkStack) get(size int) *chunk {
	c := s.first
	if c == nil {
		return &chunk{data: make([]byte, size)}
	}
	s.first, c.next = c.next, nil
	s.n--
	return c
}

func (s *chunkStack) put(c *chunk, most int) {
	if s.n == most {
		return
	}
	*c = chunk{data: c.data, next: s.first}
	s.first = c
	s.n++
}
