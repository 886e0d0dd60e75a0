package stream

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/weirnet/weir/internal/sys"
)

// noise is where bytes are cut from.
var noise = func() []byte {
	b := make([]byte, 4*largeChunkBytes)
	for i := range b {
		b[i] = byte(i*7 + i>>8*13)
	}
	return b
}()

// shape is the sizes of what Next gives, with the part's kind in front.
func shape(q *Queue, most int) string {
	v := sys.NewVector(most)
	v.Bufs = append(v.Bufs, noise[:99]) // of the call before
	part := q.Next(v)
	var s strings.Builder
	s.WriteString([...]string{"nothing", "bytes", "descriptors", "file"}[part.Kind])
	for _, b := range v.Bufs {
		s.WriteString(fmt.Sprint(" ", len(b)))
	}
	if part.FDs != nil {
		s.WriteString(fmt.Sprint(" ", part.FDs))
	}
	if part.More {
		s.WriteString(" more")
	}
	return s.String()
}

func TestNext(t *testing.T) {
	t.Parallel()
	type push struct {
		bytes int
		fds   []int
		file  bool
	}
	for _, row := range []struct {
		name   string
		pushed []push
		most   int
		wrote  int // before it is asked
		want   string
	}{
		{"empty", nil, 8, 0, "nothing"},
		{"no bytes", []push{{}}, 8, 0, "nothing"},
		{"bytes", []push{{bytes: 5}}, 8, 0, "bytes 5"},
		{"bytes that join", []push{{bytes: 5}, {bytes: 6}}, 8, 0, "bytes 11"},
		{"the tail is filled first", []push{{bytes: 4000}, {bytes: 1000}}, 8, 0, "bytes 4096 904"},
		{"too large for a small chunk", []push{{bytes: 4097}}, 8, 0, "bytes 4097"},
		{"larger than a chunk", []push{{bytes: 140000}}, 8, 0, "bytes 65536 65536 8928"},
		{"more than there is room for", []push{{bytes: 140000}}, 2, 0, "bytes 65536 65536 more"},
		{"some have gone", []push{{bytes: 140000}}, 8, 65537, "bytes 65535 8928"},
		{"bytes behind a gone chunk", []push{{bytes: 4096}, {bytes: 7}}, 8, 4096, "bytes 7"},
		{"a file", []push{{file: true}}, 8, 0, "file"},
		{"a file and bytes", []push{{file: true}, {bytes: 1}}, 8, 0, "file more"},
		{"bytes and a file", []push{{bytes: 1}, {file: true}}, 8, 0, "bytes 1 more"},
		{"a full vector and a file", []push{{bytes: 1}, {file: true}}, 1, 0, "bytes 1 more"},
		{"descriptors", []push{{bytes: 2, fds: []int{7, 8}}}, 8, 0, "descriptors 2 [7 8]"},
		{"descriptors and bytes", []push{{bytes: 2, fds: []int{7}}, {bytes: 3}}, 8, 0, "descriptors 2 [7] more"},
		{"many bytes with descriptors", []push{{bytes: 70000, fds: []int{7}}}, 8, 0, "descriptors 65536 [7] more"},
		{"bytes and descriptors", []push{{bytes: 3}, {bytes: 2, fds: []int{7}}}, 8, 0, "bytes 3 more"},
		{"two with descriptors", []push{{bytes: 2, fds: []int{7}}, {bytes: 3, fds: []int{8}}}, 8, 0, "descriptors 2 [7] more"},
		{"descriptors that have gone", []push{{bytes: 2, fds: []int{7}}, {bytes: 3}}, 8, 1, "bytes 1 3"},
		{"no descriptors", []push{{bytes: 2}, {bytes: 3, fds: []int{}}}, 8, 0, "bytes 5"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var pool Pool
			var q Queue
			for _, p := range row.pushed {
				switch {
				case p.file:
					q.PushFile(&File{Left: 1})
				case p.fds != nil:
					q.PushFiles(&pool, noise[:p.bytes], p.fds)
				default:
					q.Push(&pool, noise[:p.bytes])
				}
			}
			q.Wrote(&pool, row.wrote)
			if got := shape(&q, row.most); got != row.want {
				t.Errorf("next is %s, want %s", got, row.want)
			}
			if again := shape(&q, row.most); again != row.want {
				t.Errorf("asked again: %s, want %s", again, row.want)
			}
		})
	}
}

// TestFirstChunk holds that a queue begins with a small chunk when that is enough, also behind a file.
func TestFirstChunk(t *testing.T) {
	t.Parallel()
	var pool Pool
	var q Queue
	sizes := func() (s []int) {
		for c := q.head; c != nil; c = c.next {
			s = append(s, len(c.data))
		}
		return s
	}
	q.Push(&pool, noise[:smallChunkBytes])
	q.Push(&pool, noise[:1])
	q.PushFile(&File{Left: 1})
	q.Push(&pool, noise[:1])
	q.PushFiles(&pool, noise[:1], []int{1})
	if got, want := sizes(), []int{smallChunkBytes, largeChunkBytes, 0, smallChunkBytes, smallChunkBytes}; !slices.Equal(got, want) {
		t.Errorf("chunks of %d, want %d", got, want)
	}
	q.Clear(&pool, func(int) {}, func(*File) {})
	q.Push(&pool, noise[:smallChunkBytes+1])
	if got, want := sizes(), []int{largeChunkBytes}; !slices.Equal(got, want) {
		t.Errorf("chunks of %d, want %d", got, want)
	}
}

// TestPushCopies holds that what the caller does with its memory afterwards is not seen.
func TestPushCopies(t *testing.T) {
	t.Parallel()
	var pool Pool
	var q Queue
	b := []byte("before")
	q.Push(&pool, b)
	copy(b, "behind")
	v := sys.NewVector(1)
	if q.Next(v); string(v.Bufs[0]) != "before" {
		t.Errorf("next is %q", v.Bufs[0])
	}
}

// TestWrittenTooMuch holds that a caller that miscounts learns it at once, not by bytes in the wrong order.
func TestWrittenTooMuch(t *testing.T) {
	t.Parallel()
	for name, behind := range map[string]func(*Queue, *Pool){
		"nothing":     func(*Queue, *Pool) {},
		"a file":      func(q *Queue, _ *Pool) { q.PushFile(&File{Left: 9}) },
		"descriptors": func(q *Queue, p *Pool) { q.PushFiles(p, noise[:9], []int{1}) },
	} {
		func() {
			defer func() {
				if got := recover(); got != "stream: more was written than Next gave" {
					t.Errorf("%s behind what Next gave: %v", name, got)
				}
			}()
			var pool Pool
			var q Queue
			q.Push(&pool, noise[:3])
			behind(&q, &pool)
			q.Wrote(&pool, 4)
		}()
	}
}

func TestQueueSize(t *testing.T) {
	t.Parallel()
	if size := unsafe.Sizeof(Queue{}); size > 48 {
		t.Errorf("a queue takes %d bytes; there is one for each connection", size)
	}
}

// TestQueueAllocs holds that small messages in a steady state do not allocate.
func TestQueueAllocs(t *testing.T) {
	var pool Pool
	var q Queue
	v := sys.NewVector(8)
	for _, row := range []struct {
		name string
		left int // bytes that stay in the queue
	}{{"emptied each time", 0}, {"never empty", 100}} {
		q.Push(&pool, noise[:row.left])
		if n := testing.AllocsPerRun(200, func() {
			for range 100 {
				q.Push(&pool, noise[:200])
				q.Push(&pool, noise[:300])
				q.Next(v)
				q.Wrote(&pool, 500)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", row.name, n)
		}
	}
}

// TestPoolTrim holds that one small chunk stays, with which small messages do not allocate.
func TestPoolTrim(t *testing.T) {
	t.Parallel()
	var pool Pool
	var q Queue
	pool.Trim()
	for range 3 {
		q.PushFiles(&pool, noise[:1], []int{1})
	}
	q.Push(&pool, noise[:2*largeChunkBytes])
	q.Clear(&pool, func(int) {}, nil)
	if pool.small.n != 3 || pool.large.n != 2 {
		t.Fatalf("%d small and %d large chunks, and the test shows nothing", pool.small.n, pool.large.n)
	}
	pool.Trim()
	if pool.small.n != 1 || pool.small.first == nil || pool.small.first.next != nil || pool.large.n != 0 || pool.large.first != nil {
		t.Errorf("after Trim: %+v", pool)
	}
}

// TestPoolLimit holds what a pool keeps back from the collector.
func TestPoolLimit(t *testing.T) {
	t.Parallel()
	var pool Pool
	for _, row := range []struct {
		large bool
		stack *chunkStack
		size  int
		most  int
	}{{false, &pool.small, 4096, 1024}, {true, &pool.large, 65536, 64}} {
		lent := make([]*chunk, row.most+2)
		for i := range lent {
			lent[i] = pool.get(row.large)
			if len(lent[i].data) != row.size {
				t.Fatalf("a chunk of %d bytes, want %d", len(lent[i].data), row.size)
			}
		}
		for _, c := range lent {
			pool.put(c)
		}
		if row.stack.n != row.most {
			t.Errorf("%d chunks of %d bytes are kept, want %d", row.stack.n, row.size, row.most)
		}
	}
}
