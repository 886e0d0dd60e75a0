package batch

import (
	"bytes"
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirnet/weir/internal/sys"
)

func addrOf(n int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)}), uint16(n))
}

// noise is where payloads are cut from.
var noise = func() []byte {
	b := make([]byte, largeChunkBytes+251)
	for i := range b {
		b[i] = byte(i*7 + i>>8*13)
	}
	return b
}()

// payloadOf is size bytes that tell which datagram they are of. They are not to be written to.
func payloadOf(n, size int) []byte { return noise[n%251:][:size:size] }

func TestQueueOrder(t *testing.T) {
	t.Parallel()
	var pool Pool
	q := NewQueue(&pool)
	if q.Len() != 0 || q.Bytes() != 0 {
		t.Errorf("new: %d datagrams, %d bytes", q.Len(), q.Bytes())
	}
	for i := range 100 { // grows, while the head is not at the beginning
		q.Push(payloadOf(i, i), addrOf(i), sys.Flags(i%3))
		if i%4 == 3 {
			q.Drop(1)
		}
	}
	bytesLeft := 0
	for i := range 75 {
		n := 25 + i
		d := q.At(i)
		if !bytes.Equal(d.Payload, payloadOf(n, n)) || d.Addr != addrOf(n) || d.Flags != sys.Flags(n%3) {
			t.Errorf("datagram %d is %d bytes for %v, flags %v", i, len(d.Payload), d.Addr, d.Flags)
		}
		bytesLeft += n
	}
	if q.Len() != 75 || q.Bytes() != bytesLeft {
		t.Errorf("%d datagrams, %d bytes; want 75, %d", q.Len(), q.Bytes(), bytesLeft)
	}
	q.Drop(0)
	q.Drop(75)
	if q.Len() != 0 || q.Bytes() != 0 {
		t.Errorf("empty: %d datagrams, %d bytes", q.Len(), q.Bytes())
	}
}

// TestQueueCopies holds "copies payload": what the caller does with its memory afterwards is not seen, nor
// does writing to one entry, or behind it, reach another.
func TestQueueCopies(t *testing.T) {
	t.Parallel()
	var pool Pool
	q := NewQueue(&pool)
	mem := []byte("first")
	q.Push(mem, addrOf(1), 0)
	copy(mem, "xxxxx")
	q.Push([]byte("second"), addrOf(2), 0)
	first := q.At(0).Payload
	if string(first) != "first" {
		t.Errorf("got %q", first)
	}
	_ = append(first, "overrun"...)
	if got := string(q.At(1).Payload); got != "second" {
		t.Errorf("behind the first stands %q", got)
	}
}

// TestQueueMemory holds "an empty queue holds no memory but that of its entries".
func TestQueueMemory(t *testing.T) {
	t.Parallel()
	var pool Pool
	q := NewQueue(&pool)
	for range 10 {
		for i := range 6 {
			q.Push(payloadOf(i, 30_000), addrOf(i), 0) // two a chunk
		}
		q.Drop(6)
	}
	if kept(&pool) != 3 || q.filling != nil {
		t.Errorf("the pool has %d chunks, the queue one: %v; want 3, false", kept(&pool), q.filling != nil)
	}
	for _, d := range q.entries {
		if d.Payload != nil || d.chunk != nil {
			t.Error("a dropped entry still points to memory")
		}
	}
}

// TestQueueReusesChunk: a queue that empties and fills again stays in one chunk.
func TestQueueReusesChunk(t *testing.T) {
	t.Parallel()
	var pool Pool
	q := NewQueue(&pool)
	for i := range 1000 {
		q.Push(payloadOf(i, 1000), addrOf(i), 0)
		if i == 0 {
			q.Push(payloadOf(i, 1000), addrOf(i), 0)
		}
		q.Drop(1)
		if got := q.At(0).Payload; !bytes.Equal(got, payloadOf(max(i, 0), 1000)) {
			t.Fatalf("datagram %d was overwritten", i)
		}
	}
	q.Drop(q.Len())
	if kept(&pool) > 3 {
		t.Errorf("1,000 datagrams of which 2 were queued at a time took %d chunks", kept(&pool))
	}
}

// TestPoolLimit: what is over goes to the garbage collector.
func TestPoolLimit(t *testing.T) {
	t.Parallel()
	var pool Pool
	q := NewQueue(&pool)
	for i := range keptLargeChunks + 10 {
		q.Push(payloadOf(i, largeChunkBytes), addrOf(i), 0)
	}
	for i := range q.Len() {
		if !bytes.Equal(q.At(i).Payload, payloadOf(i, largeChunkBytes)) {
			t.Errorf("datagram %d was overwritten", i)
		}
	}
	q.Drop(q.Len())
	if kept(&pool) != keptLargeChunks || freeChunks(t, &pool) != keptLargeChunks {
		t.Errorf("the pool says that it has %d chunks, and has %d; want %d", kept(&pool), freeChunks(t, &pool), keptLargeChunks)
	}
}

type failer interface{ Fatalf(string, ...any) }

// freeChunks counts a pool's chunks, and checks that each is there once and unused.
func freeChunks(t failer, p *Pool) int {
	seen := map[*chunk]bool{}
	for _, first := range []*chunk{p.small.first, p.large.first} {
		for c := first; c != nil; c = c.next {
			if seen[c] {
				t.Fatalf("a chunk is in the pool twice")
			}
			if c.used != 0 || c.live != 0 {
				t.Fatalf("a chunk in the pool has %d bytes used, %d datagrams", c.used, c.live)
			}
			seen[c] = true
		}
	}
	return len(seen)
}

// kept is how many chunks a pool says that it has.
func kept(p *Pool) int { return p.small.n + p.large.n }

// TestSmallChunks: many queues with little in them take little memory, and find it again in the pool.
func TestSmallChunks(t *testing.T) {
	var pool Pool
	queues := make([]Queue, 1000)
	for i := range queues {
		queues[i] = NewQueue(&pool)
	}
	turn := func() {
		for i := range queues {
			queues[i].Push([]byte("answer"), addrOf(i), 0)
		}
		for i := range queues {
			queues[i].Drop(1)
		}
	}
	turn()
	if pool.small.n != len(queues) || pool.large.n != 0 {
		t.Errorf("%d small and %d large chunks for %d queues", pool.small.n, pool.large.n, len(queues))
	}
	if n := testing.AllocsPerRun(10, turn); n != 0 {
		t.Errorf("%v allocations a turn", n)
	}
}

// model is a queue as slices.
type model struct {
	queue   Queue
	entries []modelEntry
}

type modelEntry struct {
	payload []byte
	addr    netip.AddrPort
	flags   sys.Flags
}

// TestQueueModel drives queues that share a pool, and compares them with slices after each step.
func TestQueueModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var pool Pool
		queues := [3]model{}
		for i := range queues {
			queues[i].queue = NewQueue(&pool)
		}
		n := 0
		seen := map[*chunk]bool{}
		pick := func(t *rapid.T) *model { return &queues[rapid.IntRange(0, len(queues)-1).Draw(t, "queue")] }
		size := rapid.OneOf(
			rapid.IntRange(0, 64), rapid.IntRange(1000, 3000), rapid.IntRange(20_000, 35_000),
			rapid.SampledFrom([]int{0, 65_507, 65_535, largeChunkBytes}),
		)
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				m := pick(t)
				for range rapid.IntRange(1, 10).Draw(t, "count") {
					e := modelEntry{payloadOf(n, size.Draw(t, "size")), addrOf(n), sys.Flags(n % 4)}
					m.queue.Push(e.payload, e.addr, e.flags)
					m.entries = append(m.entries, e)
					n++
				}
			},
			"drop": func(t *rapid.T) {
				m := pick(t)
				d := rapid.IntRange(0, len(m.entries)).Draw(t, "count")
				m.queue.Drop(d)
				m.entries = m.entries[d:]
			},
			"empty": func(t *rapid.T) {
				m := pick(t)
				m.queue.Drop(len(m.entries))
				m.entries = nil
			},
			"": func(t *rapid.T) {
				live := map[*chunk]int{}
				for i := range queues {
					queues[i].check(t, live)
				}
				if free := freeChunks(t, &pool); free != kept(&pool) || pool.large.n > keptLargeChunks {
					t.Fatalf("the pool has %d chunks and says %d", free, kept(&pool))
				}
				for _, first := range []*chunk{pool.small.first, pool.large.first} {
					for c := first; c != nil; c = c.next {
						if _, ok := live[c]; ok {
							t.Fatalf("a chunk is in the pool and in use")
						}
						live[c] = 0
					}
				}
				for c := range live {
					seen[c] = true
				}
				for c := range seen { // only a full pool gives memory away
					if _, ok := live[c]; !ok && pool.large.n < keptLargeChunks {
						t.Fatalf("a chunk is lost")
					} else if !ok {
						delete(seen, c)
					}
				}
			},
		})
		for i := range queues {
			queues[i].queue.Drop(len(queues[i].entries))
		}
		if n > 0 && freeChunks(t, &pool) == 0 {
			t.Fatalf("%d datagrams went through, and no memory came back", n)
		}
	})
}

// check compares a queue with its model, and enters the chunks that it uses.
func (m *model) check(t *rapid.T, live map[*chunk]int) {
	q := &m.queue
	size := 0
	mine := map[*chunk]int{}
	for i, e := range m.entries {
		d := q.At(i)
		if !bytes.Equal(d.Payload, e.payload) || d.Addr != e.addr || d.Flags != e.flags {
			t.Fatalf("datagram %d of %d is not what was pushed", i, len(m.entries))
		}
		if len(d.Payload) != cap(d.Payload) {
			t.Fatalf("datagram %d has %d bytes and room for %d", i, len(d.Payload), cap(d.Payload))
		}
		size += len(e.payload)
		mine[d.chunk]++
	}
	if q.Len() != len(m.entries) || q.Bytes() != size {
		t.Fatalf("%d datagrams, %d bytes; want %d, %d", q.Len(), q.Bytes(), len(m.entries), size)
	}
	if q.Len() == 0 && q.filling != nil {
		t.Fatalf("an empty queue holds a chunk")
	}
	if q.filling != nil {
		mine[q.filling] += 0
	}
	for c, n := range mine {
		if _, ok := live[c]; ok {
			t.Fatalf("two queues share a chunk")
		}
		if c.live != n {
			t.Fatalf("a chunk with %d datagrams counts %d", n, c.live)
		}
		live[c] = n
	}
}

// TestQueueAllocations: a queue in use allocates no more once it has grown.
func TestQueueAllocations(t *testing.T) {
	var pool Pool
	q := NewQueue(&pool)
	payload := payloadOf(0, 1200)
	cycle := func() {
		for range 100 {
			q.Push(payload, addrOf(1), 0)
		}
		q.Drop(100)
	}
	cycle()
	if n := testing.AllocsPerRun(20, cycle); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
