package batch

import (
	"net/netip"

	"github.com/weirnet/weir/internal/sys"
)

// Train is one entry of a Queue: a datagram, or many of one size for one destination, side by side in memory
// as the kernel takes and gives them with segmentation offload. Payload is valid until the entry is dropped.
type Train struct {
	Payload []byte
	Addr    netip.AddrPort // source or destination
	Control sys.Control    // with a Segment where there are many datagrams
	Flags   sys.Flags
	chunk   *chunk
}

// Len is the number of datagrams.
func (t *Train) Len() int { return Segments(len(t.Payload), t.Control.Segment) }

// First is the first datagram's payload.
func (t *Train) First() []byte {
	if s := int(t.Control.Segment); s > 0 && s < len(t.Payload) {
		return t.Payload[:s:s]
	}
	return t.Payload
}

// single takes the segment size away where there is only one datagram.
func (t *Train) single() {
	if len(t.Payload) <= int(t.Control.Segment) {
		t.Control.Segment = 0
	}
}

// Segments is the number of datagrams in a payload of so many bytes.
func Segments(bytes int, segment uint16) int {
	if segment == 0 || bytes == 0 {
		return 1
	}
	return (bytes + int(segment) - 1) / int(segment)
}

// What the kernel takes as one train: UDP_MAX_SEGMENTS of Linux before 6.9, and the largest datagram of IPv4.
const (
	maxSegments   = 64
	maxTrainBytes = 65_507
)

// Queue is a queue of datagrams whose payloads it copies into chunks of a pool. An empty queue holds no
// memory but that of its entries. It has no limit of its own; the owner keeps one by Len and Bytes.
type Queue struct {
	pool    *Pool
	entries []Train // circular; its length is a power of two, or 0
	head    int
	trains  int
	n       int // datagrams
	bytes   int
	peak    int // the most bytes since the queue was empty
	filling *chunk
}

// NewQueue makes an empty queue that borrows from pool.
func NewQueue(pool *Pool) Queue { return Queue{pool: pool} }

// Len is the number of datagrams, Bytes that of their payload bytes, Trains that of the entries they are in.
func (q *Queue) Len() int    { return q.n }
func (q *Queue) Bytes() int  { return q.bytes }
func (q *Queue) Trains() int { return q.trains }

// Push copies a datagram or train, at most 64 KiB of payload, behind the last one. A train of one is a datagram.
func (q *Queue) Push(m *sys.Message) {
	if q.trains == len(q.entries) {
		q.grow()
	}
	c := q.room(len(m.Buf))
	stored := c.data[c.used : c.used+len(m.Buf) : c.used+len(m.Buf)]
	copy(stored, m.Buf)
	c.used += len(m.Buf)
	c.live++
	t := q.At(q.trains)
	*t = Train{Payload: stored, Addr: m.Addr, Control: m.Control, Flags: m.Flags, chunk: c}
	t.single()
	q.trains++
	q.grown(t.Len(), len(stored))
}

// Join adds a datagram to the last train, if it is for the same destination with the same Control and not
// larger than those in it, the last is not smaller, and the train has room. A segment is at most largest bytes.
func (q *Queue) Join(m *sys.Message, largest int) bool {
	if q.trains == 0 {
		return false
	}
	t := q.At(q.trains - 1)
	c, size := t.chunk, len(m.Buf)
	segment := int(t.Control.Segment)
	if segment == 0 {
		segment = len(t.Payload)
	}
	switch {
	case size == 0 || size > segment || segment > largest || m.Addr != t.Addr:
		return false
	case len(t.Payload)%segment != 0 || len(t.Payload) >= maxSegments*segment || len(t.Payload)+size > maxTrainBytes:
		return false
	case c != q.filling || len(c.data)-c.used < size || !t.sameControl(&m.Control):
		return false
	}
	from := c.used - len(t.Payload)
	copy(c.data[c.used:], m.Buf)
	c.used += size
	t.Payload = c.data[from:c.used:c.used]
	t.Control.Segment = uint16(segment)
	q.grown(1, size)
	return true
}

// sameControl tells that c, which is a single datagram's, is the train's but for the segments.
// Full tells that the last train has no room for another datagram of its size.
func (q *Queue) Full() bool {
	if q.trains == 0 {
		return false
	}
	t := q.At(q.trains - 1)
	segment := int(t.Control.Segment)
	if segment == 0 {
		segment = len(t.Payload)
	}
	return len(t.Payload)+segment > min(maxTrainBytes, maxSegments*segment) || t.chunk != q.filling ||
		len(t.chunk.data)-t.chunk.used < segment
}

func (t *Train) sameControl(c *sys.Control) bool {
	mine := t.Control
	mine.Segment = 0
	return mine == *c
}

func (q *Queue) grown(datagrams, bytes int) {
	q.n += datagrams
	q.bytes += bytes
	q.peak = max(q.peak, q.bytes)
}

// At is the train i places behind the first.
func (q *Queue) At(i int) *Train {
	return &q.entries[(q.head+i)&(len(q.entries)-1)]
}

// Drop takes the first n datagrams out.
func (q *Queue) Drop(n int) {
	for n > 0 {
		t := q.At(0)
		if have := t.Len(); have > n {
			q.cut(t, n)
			return
		} else {
			n -= have
		}
		q.dropTrain(t)
	}
}

// cut takes the first n datagrams out of a train that has more.
func (q *Queue) cut(t *Train, n int) {
	bytes := n * int(t.Control.Segment)
	t.Payload = t.Payload[bytes:]
	t.single()
	q.n -= n
	q.bytes -= bytes
}

func (q *Queue) dropTrain(t *Train) {
	q.n -= t.Len()
	q.bytes -= len(t.Payload)
	q.release(t.chunk)
	*t = Train{}
	q.head = (q.head + 1) & (len(q.entries) - 1)
	q.trains--
	if q.trains > 0 {
		return
	}
	if q.filling != nil {
		q.pool.put(q.filling)
		q.filling = nil
	}
}

// KeepFirst takes everything out but the first datagram, whose memory may be in use.
func (q *Queue) KeepFirst() {
	for q.trains > 1 {
		t := q.At(q.trains - 1)
		q.release(t.chunk)
		*t = Train{}
		q.trains--
	}
	t := q.At(0)
	t.Payload, t.Control.Segment = t.First(), 0
	q.n, q.bytes = 1, len(t.Payload)
	if q.filling != t.chunk {
		q.pool.put(q.filling)
		q.filling = t.chunk
	}
	t.chunk.used = len(t.chunk.data) // what is behind it was in use: nothing can join
}

// Clear takes everything out.
func (q *Queue) Clear() { q.Drop(q.n) }

// release gives a chunk back when the last train in it is gone. The one being filled holds the newest, so
// it goes back when the queue is empty.
func (q *Queue) release(c *chunk) {
	c.live--
	if c.live == 0 && c != q.filling {
		q.pool.put(c)
	}
}

// room is a chunk with size bytes left. An empty queue begins with a small one, unless it held more than that
// when it was last in use: a train cannot go on in another chunk.
func (q *Queue) room(size int) *chunk {
	if c := q.filling; c == nil || len(c.data)-c.used < size {
		q.filling = q.pool.get(c != nil || max(size, q.peak) > smallChunkBytes)
		if c == nil {
			q.peak = 0
		}
	}
	return q.filling
}

func (q *Queue) grow() {
	entries := make([]Train, max(2*len(q.entries), 16))
	for i := range q.trains {
		entries[i] = *q.At(i)
	}
	q.entries, q.head = entries, 0
}
