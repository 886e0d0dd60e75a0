package batch

// Sizes of chunks. A queue begins with a small one, so that a thousand sockets with an answer each do not take
// a thousand large ones. A large one holds the largest datagram there is (65,527 bytes over IPv6).
const (
	smallChunkBytes = 4 << 10
	largeChunkBytes = 64 << 10
)

// What a pool holds back from the garbage collector: 8 MiB of small chunks and 4 MiB of large ones.
const (
	keptSmallChunks = 2048
	keptLargeChunks = 64
)

// chunk is a piece of memory that datagrams are packed into, one behind the other.
type chunk struct {
	next *chunk
	used int // bytes given out
	live int // datagrams in them that are still queued
	data []byte
}

// Pool lends chunks to queues that share an owner. The zero Pool is ready for use.
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

// What Trim leaves: 256 KiB of each size.
const (
	trimmedSmallChunks = 64
	trimmedLargeChunks = 4
)

// Trim gives the garbage collector what is above what a steady traffic needs.
func (p *Pool) Trim() {
	p.small.trim(trimmedSmallChunks)
	p.large.trim(trimmedLargeChunks)
}

// chunkStack is a stack of chunks of one size.
type chunkStack struct {
	first *chunk
	n     int
}

func (f *chunkStack) get(size int) *chunk {
	c := f.first
	if c == nil {
		return &chunk{data: make([]byte, size)}
	}
	f.first, c.next = c.next, nil
	f.n--
	return c
}

func (f *chunkStack) put(c *chunk, most int) {
	if f.n == most {
		return
	}
	c.used, c.live = 0, 0
	c.next, f.first = f.first, c
	f.n++
}

func (f *chunkStack) trim(most int) {
	for f.n > most {
		f.first = f.first.next
		f.n--
	}
}
