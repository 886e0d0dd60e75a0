package batch

import (
	"net/netip"

	"github.com/weirnet/weir/internal/sys"
)

// Datagram is one entry of a Queue. Payload is valid until the entry is dropped.
type Datagram struct {
	Payload []byte
	Addr    netip.AddrPort // source or destination
	Flags   sys.Flags
	chunk   *chunk
}

// Queue is a queue of datagrams whose payloads it copies into chunks of a pool. An empty queue holds no
// memory but that of its entries. It has no limit of its own; the owner keeps one by Len and Bytes.
type Queue struct {
	pool    *Pool
	entries []Datagram // circular; its length is a power of two, or 0
	head    int
	n       int
	bytes   int
	filling *chunk
}

// NewQueue makes an empty queue that borrows from pool.
func NewQueue(pool *Pool) Queue { return Queue{pool: pool} }

// Len is the number of datagrams, Bytes that of their payload bytes.
func (q *Queue) Len() int   { return q.n }
func (q *Queue) Bytes() int { return q.bytes }

// Push copies payload, at most 64 KiB of it, behind the last datagram.
func (q *Queue) Push(payload []byte, addr netip.AddrPort, flags sys.Flags) {
	if q.n == len(q.entries) {
		q.grow()
	}
	c := q.room(len(payload))
	stored := c.data[c.used : c.used+len(payload) : c.used+len(payload)]
	copy(stored, payload)
	c.used += len(payload)
	c.live++
	*q.At(q.n) = Datagram{Payload: stored, Addr: addr, Flags: flags, chunk: c}
	q.n++
	q.bytes += len(payload)
}

// At is the datagram i places behind the first.
func (q *Queue) At(i int) *Datagram {
	return &q.entries[(q.head+i)&(len(q.entries)-1)]
}

// Drop takes the first n datagrams out.
func (q *Queue) Drop(n int) {
	for range n {
		d := q.At(0)
		q.bytes -= len(d.Payload)
		q.release(d.chunk)
		*d = Datagram{}
		q.head = (q.head + 1) & (len(q.entries) - 1)
		q.n--
	}
	if q.n == 0 && q.filling != nil {
		q.pool.put(q.filling)
		q.filling = nil
	}
}

// release gives a chunk back when the last datagram in it is gone. The one being filled holds the newest, so
// it goes back when the queue is empty.
func (q *Queue) release(c *chunk) {
	c.live--
	if c.live == 0 && c != q.filling {
		q.pool.put(c)
	}
}

// room is a chunk with size bytes left: a small one for the first datagrams of an empty queue.
func (q *Queue) room(size int) *chunk {
	if c := q.filling; c == nil || len(c.data)-c.used < size {
		q.filling = q.pool.get(c != nil || size > smallChunkBytes)
	}
	return q.filling
}

func (q *Queue) grow() {
	entries := make([]Datagram, max(2*len(q.entries), 16))
	for i := range q.n {
		entries[i] = *q.At(i)
	}
	q.entries, q.head = entries, 0
}
