package stream

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirnet/weir/internal/sys"
)

// unit is what the model's queue consists of: what is left of a push, or a file.
type unit struct {
	b    []byte
	fds  []int
	file *File
}

// model is the queue as a list of units, beside the queue.
type model struct {
	pool  Pool
	q     Queue
	units []unit
	fd    int // the last one used
	at    int // where the next bytes are cut from
}

func (m *model) cut(size int) []byte {
	m.at = (m.at + 31) % 251
	return noise[m.at:][:size]
}

// next is the bytes that one call can write: up to a file, or descriptors behind the first byte. What goes with
// descriptors is a chunk of their message.
func (m *model) next() (b []byte) {
	if u := m.units[0]; u.fds != nil {
		return u.b[:min(len(u.b), largeChunkBytes)]
	}
	for i, u := range m.units {
		if u.file != nil || i > 0 && u.fds != nil {
			break
		}
		b = append(b, u.b...)
	}
	return b
}

// wrote takes n bytes out, and the descriptors that went with them.
func (m *model) wrote(n int) (fds []int) {
	for n > 0 {
		u := &m.units[0]
		if u.fds != nil {
			fds, u.fds = u.fds, nil
		}
		k := min(n, len(u.b))
		u.b = u.b[k:]
		n -= k
		if len(u.b) == 0 {
			m.units = m.units[1:]
		}
	}
	return fds
}

// TestQueueModel does to a queue and to a list whatever comes, and sees that they agree.
func TestQueueModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &model{}
		size := rapid.OneOf(rapid.IntRange(1, 40), rapid.IntRange(1, 9000),
			rapid.SampledFrom([]int{smallChunkBytes, smallChunkBytes + 1, largeChunkBytes, largeChunkBytes + 1, 2*largeChunkBytes + 5}))
		t.Repeat(map[string]func(*rapid.T){
			"": m.check,
			"push": func(t *rapid.T) {
				b := m.cut(size.Draw(t, "size"))
				m.q.Push(&m.pool, b)
				m.units = append(m.units, unit{b: b})
			},
			"push descriptors": func(t *rapid.T) {
				b := m.cut(size.Draw(t, "size"))
				fds := make([]int, rapid.IntRange(1, 3).Draw(t, "descriptors"))
				for i := range fds {
					m.fd++
					fds[i] = m.fd
				}
				m.q.PushFiles(&m.pool, b, fds)
				m.units = append(m.units, unit{b: b, fds: fds})
			},
			"push a file": func(t *rapid.T) {
				f := &File{Offset: 10, Left: rapid.Int64Range(1, 5).Draw(t, "left")}
				m.q.PushFile(f)
				m.units = append(m.units, unit{file: f})
			},
			"write": m.write,
			"drop":  m.drop,
			"clear": func(t *rapid.T) {
				if rapid.IntRange(0, 3).Draw(t, "rarely") == 0 {
					m.clear(t)
				}
			},
		})
		m.clear(t)
	})
}

// write asks for a part and writes some of it.
func (m *model) write(t *rapid.T) {
	v := sys.NewVector(rapid.IntRange(1, 4).Draw(t, "room"))
	part := m.q.Next(v)
	got := slices.Concat(v.Bufs...)
	switch {
	case len(m.units) == 0:
		if part.Kind != Nothing || len(v.Bufs) != 0 || part.More {
			t.Fatalf("of an empty queue: %+v, %d buffers", part, len(v.Bufs))
		}
		return
	case m.units[0].file != nil:
		m.writeFile(t, part, len(v.Bufs))
		return
	}
	if slices.ContainsFunc(v.Bufs, func(b []byte) bool { return len(b) == 0 }) {
		t.Fatal("an empty buffer")
	}
	want := m.next()
	if len(got) < len(want) && len(v.Bufs) < cap(v.Bufs) {
		t.Fatalf("%d bytes in %d buffers of %d, where %d can go", len(got), len(v.Bufs), cap(v.Bufs), len(want))
	}
	if !bytes.HasPrefix(want, got) {
		t.Fatalf("the next %d bytes are not those that were pushed", len(got))
	}
	fds := m.units[0].fds
	kind := Bytes
	if fds != nil {
		kind = Descriptors
	}
	if part.Kind != kind || !slices.Equal(part.FDs, fds) || part.File != nil || part.More != (len(got) < m.inMemory() || m.last().file != nil) {
		t.Fatalf("%+v with descriptors %v, %d bytes", part, fds, len(got))
	}
	n := rapid.IntRange(0, len(got)).Draw(t, "written")
	if sent, want := m.q.Wrote(&m.pool, n), m.wrote(n); !slices.Equal(sent, want) {
		t.Fatalf("after %d bytes descriptors %v are done with, want %v", n, sent, want)
	}
}

func (m *model) last() unit { return m.units[len(m.units)-1] }

func (m *model) inMemory() (n int) {
	for _, u := range m.units {
		n += len(u.b)
	}
	return n
}

func (m *model) writeFile(t *rapid.T, part Part, buffers int) {
	f := m.units[0].file
	if part.Kind != FileBytes || part.File != f || part.FDs != nil || buffers != 0 || part.More != (len(m.units) > 1) {
		t.Fatalf("of a file: %+v, %d buffers", part, buffers)
	}
	n, was := rapid.Int64Range(0, f.Left).Draw(t, "written"), *f
	done := m.q.WroteFile(n)
	if f.Offset != was.Offset+n || f.Left != was.Left-n || (done == f) != (f.Left == 0) || done != nil && done != f {
		t.Fatalf("after %d bytes of %+v: %+v, done %v", n, was, *f, done)
	}
	if done != nil {
		m.units = m.units[1:]
	}
}

func (m *model) drop(t *rapid.T) {
	var want *File
	if len(m.units) > 0 {
		want = m.units[0].file
	}
	if got := m.q.DropFile(); got != want {
		t.Fatalf("dropped %v, want %v", got, want)
	}
	if want != nil {
		m.units = m.units[1:]
	}
}

func (m *model) clear(t *rapid.T) {
	var fds, wantFDs []int
	var files, wantFiles []*File
	for _, u := range m.units {
		wantFDs = append(wantFDs, u.fds...)
		if u.file != nil {
			wantFiles = append(wantFiles, u.file)
		}
	}
	m.q.Clear(&m.pool, func(fd int) { fds = append(fds, fd) }, func(f *File) { files = append(files, f) })
	m.units = nil
	if !slices.Equal(fds, wantFDs) || !slices.Equal(files, wantFiles) {
		t.Fatalf("given up: descriptors %v, files %v; want %v, %v", fds, files, wantFDs, wantFiles)
	}
	m.check(t)
}

// check holds the counters, that an empty queue holds no memory, and that no chunk is lent twice.
func (m *model) check(t *rapid.T) {
	inMemory, items := m.inMemory(), 0
	for _, u := range m.units {
		if u.file != nil || u.fds != nil {
			items++
		}
	}
	if m.q.Bytes() != inMemory || m.q.Items() != items || m.q.Empty() != (len(m.units) == 0) {
		t.Fatalf("%d bytes, %d items, empty %v; want %d, %d, %v", m.q.Bytes(), m.q.Items(), m.q.Empty(), inMemory, items, len(m.units) == 0)
	}
	if m.q.Empty() && m.q != (Queue{}) {
		t.Fatalf("an empty queue holds %+v", m.q)
	}
	seen := map[*chunk]bool{}
	for _, list := range []*chunk{m.q.head, m.pool.small.first, m.pool.large.first} {
		for c := list; c != nil; c = c.next {
			if seen[c] {
				t.Fatal("a chunk is in two places")
			}
			seen[c] = true
		}
	}
	for _, s := range []chunkStack{m.pool.small, m.pool.large} {
		n := 0
		for c := s.first; c != nil; c = c.next {
			if n++; c.from != 0 || c.to != 0 || c.fds != nil || c.file != nil {
				t.Fatalf("a chunk in the pool has %d:%d, descriptors %v", c.from, c.to, c.fds)
			}
		}
		if n != s.n {
			t.Fatalf("the pool counts %d chunks of %d", s.n, n)
		}
	}
}
