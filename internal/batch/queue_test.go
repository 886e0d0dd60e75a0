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

// datagram is datagram n, for a destination of its own.
func datagram(n, size int) *sys.Message {
	return &sys.Message{Buf: payloadOf(n, size), Addr: addrOf(n)}
}

// train is a train of so many bytes for destination n.
func train(n, size, segment int) *sys.Message {
	m := datagram(n, size)
	m.Control.Segment = uint16(segment)
	return m
}

func TestQueueOrder(t *testing.T) {
	t.Parallel()
	var pool Pool
	q := NewQueue(&pool)
	if q.Len() != 0 || q.Bytes() != 0 || q.Trains() != 0 {
		t.Errorf("new: %d datagrams, %d bytes, %d trains", q.Len(), q.Bytes(), q.Trains())
	}
	for i := range 100 { // grows, while the head is not at the beginning
		m := datagram(i, i)
		m.Flags, m.Control.TrafficClass = sys.Flags(i%3), uint8(i)
		q.Push(m)
		if i%4 == 3 {
			q.Drop(1)
		}
	}
	bytesLeft := 0
	for i := range 75 {
		n := 25 + i
		d := q.At(i)
		if !bytes.Equal(d.Payload, payloadOf(n, n)) || d.Addr != addrOf(n) ||
			d.Flags != sys.Flags(n%3) || d.Control != (sys.Control{TrafficClass: uint8(n)}) {
			t.Errorf("datagram %d is %d bytes for %v, flags %v, %+v", i, len(d.Payload), d.Addr, d.Flags, d.Control)
		}
		bytesLeft += n
	}
	if q.Len() != 75 || q.Bytes() != bytesLeft || q.Trains() != 75 {
		t.Errorf("%d datagrams, %d bytes, %d trains; want 75, %d, 75", q.Len(), q.Bytes(), q.Trains(), bytesLeft)
	}
	q.Drop(0)
	q.Clear()
	if q.Len() != 0 || q.Bytes() != 0 || q.Trains() != 0 {
		t.Errorf("empty: %d datagrams, %d bytes, %d trains", q.Len(), q.Bytes(), q.Trains())
	}
}

// TestQueueCopies holds "copies": what the caller does with its memory afterwards is not seen, nor does writing
// behind an entry reach another.
func TestQueueCopies(t *testing.T) {
	t.Parallel()
	var pool Pool
	q := NewQueue(&pool)
	mem := []byte("first")
	push := func(n int) { q.Push(&sys.Message{Buf: mem, Addr: addrOf(n)}) }
	push(1)
	copy(mem, "SECON")
	push(2)
	copy(mem, "d+joi")
	if !q.Join(&sys.Message{Buf: mem, Addr: addrOf(2)}, NoLimit) {
		t.Fatal("two of one size for one destination are no train")
	}
	copy(mem, "third")
	push(3)
	copy(mem, "xxxxx")

	_ = append(q.At(0).Payload, "overrun"...)
	_ = append(q.At(1).First(), "overrun"...)
	_ = append(q.At(1).Payload, "overrun"...)
	for i, want := range []string{"first", "SECONd+joi", "third"} {
		if got := string(q.At(i).Payload); got != want {
			t.Errorf("entry %d is %q, want %q", i, got, want)
		}
	}
	if got := string(q.At(1).First()); got != "SECON" {
		t.Errorf("the first of the train is %q", got)
	}
}

func TestSegments(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		bytes   int
		segment uint16
		want    int
	}{{0, 0, 1}, {9, 0, 1}, {0, 9, 1}, {1, 9, 1}, {9, 9, 1}, {10, 9, 2}, {18, 9, 2}, {19, 9, 3}, {65_507, 1, 65_507}, {65_507, 65_506, 2}} {
		if got := Segments(row.bytes, row.segment); got != row.want {
			t.Errorf("%d bytes in segments of %d are %d datagrams, want %d", row.bytes, row.segment, got, row.want)
		}
	}
}

// TestQueueCut drops datagrams out of a train, and holds "with a Segment where there are many datagrams".
func TestQueueCut(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name         string
		pushed, drop int
		segment      int // at the beginning 100
		left         int // datagrams
	}{
		{"none of five", 440, 0, 100, 5},
		{"one of five", 440, 1, 100, 4},
		{"all but two", 440, 3, 100, 2},
		{"all but the shorter last", 440, 4, 0, 1},
		{"all but one of their size", 500, 4, 0, 1},
		{"a train of one", 100, 0, 0, 1},
		{"a train of one that is shorter", 40, 0, 0, 1},
		{"a train of nothing", 0, 0, 0, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var pool Pool
			q := NewQueue(&pool)
			q.Push(datagram(1, 10))
			q.Push(train(2, row.pushed, 100))
			q.Push(datagram(3, 10))
			q.Drop(1 + row.drop)
			first, want := q.At(0), payloadOf(2, row.pushed)[100*row.drop:]
			if !bytes.Equal(first.Payload, want) || int(first.Control.Segment) != row.segment || first.Len() != row.left {
				t.Errorf("%d bytes, segments of %d, %d datagrams", len(first.Payload), first.Control.Segment, first.Len())
			}
			if q.Len() != row.left+1 || q.Bytes() != len(want)+10 || q.Trains() != 2 {
				t.Errorf("%d datagrams, %d bytes, %d trains left", q.Len(), q.Bytes(), q.Trains())
			}
			q.Drop(row.left)
			if q.Len() != 1 || q.Bytes() != 10 || !bytes.Equal(q.At(0).Payload, payloadOf(3, 10)) {
				t.Errorf("behind it: %d datagrams, %d bytes", q.Len(), q.Bytes())
			}
		})
	}
}

// TestKeepFirst: "takes everything out but the first datagram, whose memory may be in use".
func TestKeepFirst(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		queued []*sys.Message
		chunks int
	}{
		{"one", []*sys.Message{datagram(1, 100)}, 1},
		{"of a train", []*sys.Message{train(1, 250, 100)}, 1},
		{"of many in a chunk", []*sys.Message{datagram(1, 100), datagram(2, 100), train(3, 300, 100)}, 1},
		{"of many chunks", []*sys.Message{train(1, 300, 100), datagram(2, 40_000), datagram(3, 40_000)}, 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var pool Pool
			q := NewQueue(&pool)
			for _, m := range row.queued {
				q.Push(m)
			}
			first := q.At(0).First()
			q.KeepFirst()
			left := q.At(0)
			if q.Len() != 1 || q.Trains() != 1 || q.Bytes() != 100 || &left.Payload[0] != &first[0] || left.Len() != 1 || cap(left.Payload) != 100 {
				t.Errorf("%d datagrams, %d bytes in %d trains left", q.Len(), q.Bytes(), q.Trains())
			}
			if q.Join(datagram(1, 100), NoLimit) {
				t.Error("one joined, behind which there was another")
			}
			q.Push(datagram(4, 100))
			if !bytes.Equal(q.At(0).Payload, payloadOf(1, 100)) || !bytes.Equal(q.At(1).Payload, payloadOf(4, 100)) {
				t.Error("they were overwritten")
			}
			q.Clear()
			if freeChunks(t, &pool) != max(row.chunks, 2) { // the last took one more, or one that was free
				t.Errorf("%d chunks came back, want %d", freeChunks(t, &pool), max(row.chunks, 2))
			}
		})
	}
}

// TestJoin: "for the same destination with the same Control and not larger than those in it, the last is not
// smaller, and the train has room. A segment is at most largest bytes."
func TestJoin(t *testing.T) {
	t.Parallel()
	control := sys.Control{Local: ipOf(9), Interface: 3, TrafficClass: 2, HasTrafficClass: true}
	with := func(change func(*sys.Message)) *sys.Message {
		m := datagram(1, 100)
		m.Control = control
		change(m)
		return m
	}
	same := with(func(*sys.Message) {})
	one := []*sys.Message{datagram(1, 100)}
	for _, row := range []struct {
		name    string
		queued  []*sys.Message // the first is pushed, the others are joined
		drop    int
		m       *sys.Message
		largest int
		joins   bool
	}{
		{name: "nothing is queued", m: datagram(1, 100)},
		{name: "same size", queued: one, m: datagram(1, 100), joins: true},
		{name: "smaller", queued: one, m: datagram(1, 99), joins: true},
		{name: "larger", queued: one, m: datagram(1, 101)},
		{name: "empty", queued: one, m: datagram(1, 0)},
		{name: "behind an empty one", queued: []*sys.Message{datagram(1, 0)}, m: datagram(1, 0)},
		{name: "behind a smaller one", queued: []*sys.Message{datagram(1, 100), datagram(1, 99)}, m: datagram(1, 99)},

		{name: "other destination", queued: one, m: datagram(2, 100)},
		{name: "other port", queued: one, m: &sys.Message{Buf: payloadOf(1, 100), Addr: netip.AddrPortFrom(ipOf(1), 9)}},
		{name: "same control", queued: []*sys.Message{same}, m: same, joins: true},
		{name: "same control, third", queued: []*sys.Message{same, same}, m: same, joins: true},
		{name: "other local address", queued: []*sys.Message{same}, m: with(func(m *sys.Message) { m.Control.Local = ipOf(8) })},
		{name: "other interface", queued: []*sys.Message{same}, m: with(func(m *sys.Message) { m.Control.Interface = 4 })},
		{name: "other traffic class", queued: []*sys.Message{same}, m: with(func(m *sys.Message) { m.Control.TrafficClass = 1 })},
		{name: "no traffic class", queued: []*sys.Message{same}, m: with(func(m *sys.Message) { m.Control.HasTrafficClass = false })},

		{name: "to a train", queued: []*sys.Message{train(1, 300, 100)}, m: datagram(1, 60), joins: true},
		{name: "to a train whose last is smaller", queued: []*sys.Message{train(1, 290, 100)}, m: datagram(1, 60)},
		{name: "to a train of one", queued: []*sys.Message{train(1, 100, 1000)}, m: datagram(1, 100), joins: true},
		{name: "is a train", queued: one, m: train(1, 100, 50)},
		{name: "to the rest of a train", queued: []*sys.Message{train(1, 300, 100)}, drop: 1, m: datagram(1, 100), joins: true},
		{name: "to the smaller last of a train", queued: []*sys.Message{train(1, 240, 100)}, drop: 2, m: datagram(1, 40), joins: true},
		{name: "larger than the smaller last of a train", queued: []*sys.Message{train(1, 240, 100)}, drop: 2, m: datagram(1, 41)},

		{name: "64th", queued: []*sys.Message{train(1, 63*10, 10)}, m: datagram(1, 10), joins: true},
		{name: "65th", queued: []*sys.Message{train(1, 64*10, 10)}, m: datagram(1, 10)},
		{name: "65,507 bytes", queued: []*sys.Message{train(1, 65_499, 9_357)}, m: datagram(1, 8), joins: true},
		{name: "65,508 bytes", queued: []*sys.Message{train(1, 65_499, 9_357)}, m: datagram(1, 9)},
		{name: "to the end of the chunk", queued: []*sys.Message{train(1, 3_600, 1_200)}, m: datagram(1, 496), joins: true},
		{name: "beyond the end of the chunk", queued: []*sys.Message{train(1, 3_600, 1_200)}, m: datagram(1, 497)},

		{name: "as large as may be", queued: one, m: datagram(1, 100), largest: 100, joins: true},
		{name: "larger than may be", queued: one, m: datagram(1, 100), largest: 99},
		{name: "behind one that is larger than may be", queued: one, m: datagram(1, 50), largest: 99},
		{name: "to a train with larger ones than may be", queued: []*sys.Message{train(1, 300, 100)}, m: datagram(1, 50), largest: 99},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var pool Pool
			q := NewQueue(&pool)
			var want []byte
			for i, m := range row.queued {
				if i == 0 {
					q.Push(m)
				} else if !q.Join(m, NoLimit) {
					t.Fatal("what is to be there does not join")
				}
				want = append(want, m.Buf...)
			}
			n := q.Len() - row.drop
			if row.drop > 0 {
				want = want[row.drop*int(q.At(0).Control.Segment):]
				q.Drop(row.drop)
			}
			largest := row.largest
			if largest == 0 {
				largest = NoLimit
			}
			before := Train{}
			if n > 0 {
				before = *q.At(0)
			}
			if got := q.Join(row.m, largest); got != row.joins {
				t.Fatalf("Join is %v", got)
			}
			if !row.joins {
				if n > 0 && (!bytes.Equal(q.At(0).Payload, before.Payload) || q.At(0).Control != before.Control) {
					t.Error("what was not joined changed the train")
				}
				if q.Len() != n || q.Bytes() != len(want) {
					t.Errorf("%d datagrams, %d bytes; want %d, %d", q.Len(), q.Bytes(), n, len(want))
				}
				return
			}
			want = append(want, row.m.Buf...)
			after := q.At(0)
			control := row.m.Control
			control.Segment = uint16(len(before.First()))
			if !bytes.Equal(after.Payload, want) || cap(after.Payload) != len(want) || after.Control != control || after.Addr != row.m.Addr {
				t.Errorf("%d bytes, room for %d, for %v, %+v", len(after.Payload), cap(after.Payload), after.Addr, after.Control)
			}
			if q.Len() != n+1 || after.Len() != n+1 || q.Trains() != 1 || q.Bytes() != len(want) {
				t.Errorf("%d datagrams, %d bytes, %d trains", q.Len(), q.Bytes(), q.Trains())
			}
		})
	}
}

// TestQueueMemory holds "an empty queue holds no memory but that of its entries".
func TestQueueMemory(t *testing.T) {
	t.Parallel()
	var pool Pool
	q := NewQueue(&pool)
	for range 10 {
		for i := range 6 {
			q.Push(datagram(i, 30_000)) // two a chunk
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

// TestQueueReusesChunk: a queue that never empties takes a few chunks in turn.
func TestQueueReusesChunk(t *testing.T) {
	t.Parallel()
	var pool Pool
	q := NewQueue(&pool)
	q.Push(datagram(0, 1000))
	for i := 1; i < 1000; i++ {
		q.Push(datagram(i, 1000))
		q.Drop(1)
		if !bytes.Equal(q.At(0).Payload, payloadOf(i, 1000)) {
			t.Fatalf("datagram %d was overwritten", i)
		}
	}
	q.Clear()
	if kept(&pool) != 3 { // the small one that it began with, and two of which one is filled and one drained
		t.Errorf("1,000 datagrams of which 2 were queued at a time took %d chunks, want 3", kept(&pool))
	}
}

// TestQueueFirstChunk: "begins with a small one, unless it held more than that when it was last in use".
func TestQueueFirstChunk(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		held  []int // the sizes of datagrams when it was last in use
		first int
		large bool
	}{
		{"new", nil, 1, false},
		{"new, and a large datagram", nil, smallChunkBytes + 1, true},
		{"held as much", []int{4000, 96}, 1, false},
		{"held more", []int{4000, 97}, 1, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var pool Pool
			q := NewQueue(&pool)
			for i, size := range row.held {
				q.Push(datagram(i, size))
			}
			q.Clear()
			q.Push(datagram(0, row.first))
			if large := len(q.filling.data) == largeChunkBytes; large != row.large {
				t.Errorf("the first chunk is large: %v", large)
			}
			q.Clear()
			q.Push(datagram(0, 1)) // the time before the last is forgotten
			if large := len(q.filling.data) == largeChunkBytes; large != (row.first > smallChunkBytes) {
				t.Errorf("the next first chunk is large: %v", large)
			}
		})
	}
}

// TestQueuePeakByJoin: what joins counts too, so that the next burst is not cut at the end of a small chunk.
func TestQueuePeakByJoin(t *testing.T) {
	t.Parallel()
	var pool Pool
	q := NewQueue(&pool)
	add := func(n int) {
		for range n {
			if m := datagram(1, 1200); !q.Join(m, NoLimit) {
				q.Push(m)
			}
		}
	}
	add(3) // fills a small chunk
	q.Drop(2)
	add(1) // begins a large one
	add(30)
	if q.Trains() != 2 {
		t.Errorf("34 datagrams became %d trains, want 2", q.Trains())
	}
	q.Clear()
	add(34)
	if q.Trains() != 1 {
		t.Errorf("the next 34 became %d trains, want 1", q.Trains())
	}
}

// TestPoolLimit: what is over goes to the garbage collector.
func TestPoolLimit(t *testing.T) {
	t.Parallel()
	var pool Pool
	q := NewQueue(&pool)
	for i := range keptLargeChunks + 10 {
		q.Push(datagram(i, largeChunkBytes))
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
	answer := datagram(0, 6)
	turn := func() {
		for i := range queues {
			queues[i].Push(answer)
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

// model is a queue as a slice of datagrams.
type model struct {
	queue   Queue
	entries []modelEntry
}

// modelEntry is one datagram.
type modelEntry struct {
	payload []byte
	addr    netip.AddrPort
	control sys.Control // without the segment size
	flags   sys.Flags
	train   int // datagrams with the same number are queued as one entry
	segment int // how large those in front of it in its entry are, or itself where it is the first
}

// fits tells by the documentation of Join whether a datagram joins.
func (m *model) fits(msg *sys.Message, largest int) bool {
	if len(m.entries) == 0 {
		return false
	}
	last := m.entries[len(m.entries)-1]
	n, size := 0, 0
	for _, e := range m.entries {
		if e.train == last.train {
			n++
			size += len(e.payload)
		}
	}
	whole := len(last.payload) == last.segment || n == 1
	segment := last.segment
	if n == 1 {
		segment = len(last.payload)
	}
	room := len(m.queue.filling.data) - m.queue.filling.used
	return len(msg.Buf) > 0 && len(msg.Buf) <= segment && segment <= largest && whole &&
		n < 64 && size+len(msg.Buf) <= 65_507 && len(msg.Buf) <= room &&
		msg.Addr == last.addr && msg.Control == last.control
}

// TestQueueModel drives queues that share a pool, and compares them with slices of datagrams after each step.
func TestQueueModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var pool Pool
		queues := [3]model{}
		for i := range queues {
			queues[i].queue = NewQueue(&pool)
		}
		n, trains := 0, 0
		seen := map[*chunk]bool{}
		size := rapid.OneOf(
			rapid.IntRange(0, 64), rapid.IntRange(1000, 3000), rapid.IntRange(20_000, 35_000),
			rapid.SampledFrom([]int{0, 65_507, 65_535, largeChunkBytes}),
		)
		pick := func(t *rapid.T) *model { return &queues[rapid.IntRange(0, len(queues)-1).Draw(t, "queue")] }
		message := func(t *rapid.T, size int) *sys.Message {
			n++
			return &sys.Message{
				Buf:   payloadOf(n, size),
				Addr:  addrOf(rapid.IntRange(0, 1).Draw(t, "to")),
				Flags: sys.Flags(n % 4),
				Control: rapid.SampledFrom([]sys.Control{
					{}, {}, {TrafficClass: 2, HasTrafficClass: true}, {Interface: 1},
				}).Draw(t, "control"),
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				m := pick(t)
				for range rapid.IntRange(1, 10).Draw(t, "count") {
					msg := message(t, size.Draw(t, "size"))
					m.queue.Push(msg)
					trains++
					m.entries = append(m.entries, modelEntry{msg.Buf, msg.Addr, msg.Control, msg.Flags, trains, len(msg.Buf)})
				}
			},
			"push a train": func(t *rapid.T) {
				m := pick(t)
				msg := message(t, size.Draw(t, "size"))
				segment := rapid.IntRange(max(1, len(msg.Buf)/70), min(len(msg.Buf)+10, 65_535)).Draw(t, "segment")
				control := msg.Control
				msg.Control.Segment = uint16(segment)
				m.queue.Push(msg)
				trains++
				for rest, first := msg.Buf, true; first || len(rest) > 0; first = false {
					s := min(segment, len(rest))
					m.entries = append(m.entries, modelEntry{rest[:s], msg.Addr, control, msg.Flags, trains, segment})
					rest = rest[s:]
				}
			},
			"join": func(t *rapid.T) {
				m := pick(t)
				size := size
				if len(m.entries) > 0 { // most are to fit
					last := len(m.entries[len(m.entries)-1].payload)
					size = rapid.OneOf(rapid.Just(last), rapid.Just(last), rapid.IntRange(max(last-2, 0), last+1), size)
				}
				for range rapid.IntRange(1, 70).Draw(t, "count") {
					msg := message(t, min(size.Draw(t, "size"), largeChunkBytes))
					if len(m.entries) > 0 && rapid.IntRange(0, 9).Draw(t, "same") > 0 {
						last := m.entries[len(m.entries)-1]
						msg.Addr, msg.Control = last.addr, last.control
					}
					largest := rapid.SampledFrom([]int{NoLimit, NoLimit, NoLimit, 2000, 50, 0}).Draw(t, "largest")
					want := m.fits(msg, largest)
					if got := m.queue.Join(msg, largest); got != want {
						t.Fatalf("Join of %d bytes is %v", len(msg.Buf), got)
					}
					if want {
						last := m.entries[len(m.entries)-1]
						if n := len(m.entries); n == 1 || m.entries[n-2].train != last.train {
							last.segment = len(last.payload) // what is left of a train begins one of its own
							m.entries[n-1] = last
						}
						m.entries = append(m.entries, modelEntry{msg.Buf, msg.Addr, msg.Control, last.flags, last.train, last.segment})
					}
				}
			},
			"drop": func(t *rapid.T) {
				m := pick(t)
				d := rapid.IntRange(0, len(m.entries)).Draw(t, "count")
				m.queue.Drop(d)
				m.entries = m.entries[d:]
			},
			"keep the first": func(t *rapid.T) {
				if m := pick(t); len(m.entries) > 0 {
					m.queue.KeepFirst()
					m.entries = m.entries[:1:1]
				}
			},
			"clear": func(t *rapid.T) {
				m := pick(t)
				m.queue.Clear()
				m.entries = nil
			},
			"": func(t *rapid.T) {
				live := map[*chunk]int{}
				for i := range queues {
					queues[i].check(t, live)
				}
				checkPool(t, &pool, live, seen)
			},
		})
		for i := range queues {
			queues[i].queue.Clear()
		}
		if n > 0 && len(seen) > 0 && freeChunks(t, &pool) == 0 {
			t.Fatalf("%d datagrams went through, and no memory came back", n)
		}
	})
}

// checkPool checks that no chunk is in two places, and none in no place.
func checkPool(t *rapid.T, pool *Pool, live map[*chunk]int, seen map[*chunk]bool) {
	if free := freeChunks(t, pool); free != kept(pool) || pool.large.n > keptLargeChunks {
		t.Fatalf("the pool has %d chunks and says %d", free, kept(pool))
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
}

// check compares a queue with its model, and enters the chunks that it uses.
func (m *model) check(t *rapid.T, live map[*chunk]int) {
	q := &m.queue
	size, trains := 0, 0
	mine := map[*chunk]int{}
	for rest := m.entries; len(rest) > 0; trains++ {
		entry := q.At(trains)
		if len(entry.Payload) != cap(entry.Payload) {
			t.Fatalf("entry %d has %d bytes and room for %d", trains, len(entry.Payload), cap(entry.Payload))
		}
		if many := entry.Len() > 1; many != (entry.Control.Segment > 0) {
			t.Fatalf("entry %d has %d datagrams and a segment size of %d", trains, entry.Len(), entry.Control.Segment)
		}
		mine[entry.chunk]++
		number := rest[0].train
		control := entry.Control
		control.Segment = 0
		for left := *entry; len(rest) > 0 && rest[0].train == number; rest = rest[1:] {
			e, d := rest[0], left.First()
			if !bytes.Equal(d, e.payload) || len(d) != cap(d) || entry.Addr != e.addr || control != e.control || entry.Flags != e.flags {
				t.Fatalf("datagram %d of %d is not what was queued", len(m.entries)-len(rest), len(m.entries))
			}
			left.Payload = left.Payload[len(d):]
			size += len(d)
			if over := len(left.Payload) > 0; over != (len(rest) > 1 && rest[1].train == number) {
				t.Fatalf("entry %d has %d bytes behind its last datagram", trains, len(left.Payload))
			}
		}
	}
	if q.Len() != len(m.entries) || q.Bytes() != size || q.Trains() != trains {
		t.Fatalf("%d datagrams, %d bytes, %d trains; want %d, %d, %d", q.Len(), q.Bytes(), q.Trains(), len(m.entries), size, trains)
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
			t.Fatalf("a chunk with %d entries counts %d", n, c.live)
		}
		live[c] = n
	}
}

// TestQueueAllocations: a queue in use allocates no more once it has grown.
func TestQueueAllocations(t *testing.T) {
	var pool Pool
	q := NewQueue(&pool)
	single, many := datagram(1, 1200), train(2, 5*1200, 1200)
	cycle := func() {
		for range 100 {
			if !q.Join(single, NoLimit) {
				q.Push(single)
			}
		}
		q.Push(many)
		q.Drop(70)
		q.Drop(35)
	}
	cycle()
	if n := testing.AllocsPerRun(20, cycle); n != 0 || q.Len() != 0 {
		t.Errorf("%v allocations, %d datagrams left", n, q.Len())
	}
}
