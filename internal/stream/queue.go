package stream

import (
	"os"

	"github.com/weirnet/weir/internal/sys"
)

// File is a stretch of a file to be written.
type File struct {
	File   *os.File
	Offset int64
	Left   int64 // bytes, at least 1 when it is pushed
	Done   func(error)
	Copy   bool // the kernel cannot send it: it is read and written
}

// Kind is what a Part consists of.
type Kind uint8

const (
	Nothing     Kind = iota // the queue is empty
	Bytes                   // for Write
	Descriptors             // bytes and descriptors that go with the first of them, for WriteFiles
	FileBytes               // for SendFile
)

// Part is what goes out next in one call.
type Part struct {
	Kind Kind
	FDs  []int // of Descriptors; the queue owns them until Wrote returns them
	File *File // of FileBytes
	More bool  // something follows in the queue
}

// Queue is what a connection has still to write, in order. The zero Queue is empty, and an empty one holds no
// memory. It has no limit of its own; the owner keeps one by Bytes and Items.
//
//   - Owner: loop only. The pool is the same in all calls.
type Queue struct {
	head, tail *chunk
	bytes      int
	items      int
}

// Empty tells that there is nothing to write.
func (q *Queue) Empty() bool { return q.head == nil }

// Bytes is the number of bytes held in memory; those of files do not count.
func (q *Queue) Bytes() int { return q.bytes }

// Items is the number of files and of messages with descriptors. Each of the latter takes a chunk of its own,
// however few bytes it has.
func (q *Queue) Items() int { return q.items }

// Push copies b behind what is there.
func (q *Queue) Push(p *Pool, b []byte) {
	for len(b) > 0 {
		c := q.tail
		if c == nil || c.to == len(c.data) || c.fds != nil {
			// What outgrew a chunk will need more than a small one.
			follows := c != nil && c.file == nil && c.fds == nil
			c = p.get(follows || len(b) > smallChunkBytes)
			q.append(c)
		}
		b = b[q.fill(c, b):]
	}
}

// PushFiles copies b, which must not be empty, behind what is there, and has descriptors go with its first byte. The
// queue owns them from then on.
func (q *Queue) PushFiles(p *Pool, b []byte, fds []int) {
	if len(fds) > 0 {
		c := p.get(len(b) > smallChunkBytes)
		c.fds = fds
		q.append(c)
		q.items++
		b = b[q.fill(c, b):]
	}
	q.Push(p, b)
}

// PushFile has a file follow what is there.
func (q *Queue) PushFile(f *File) {
	q.append(&chunk{file: f})
	q.items++
}

func (q *Queue) append(c *chunk) {
	if q.tail == nil {
		q.head = c
	} else {
		q.tail.next = c
	}
	q.tail = c
}

func (q *Queue) fill(c *chunk, b []byte) int {
	n := copy(c.data[c.to:], b)
	c.to += n
	q.bytes += n
	return n
}

// Next tells what goes out next in one call, and fills v with its bytes: up to a file, or to the next message with
// descriptors, as one call carries those of its first byte alone. Such a message goes alone, too, its first chunk at
// most: what is in the same call comes with the same read, and who reads could not tell where the message ends. What it
// told stays in the queue.
//
//   - Shape: at most cap(v.Bufs) buffers, which must not be 0; none for a file. They are valid until the next call
//     of Wrote or Clear.
func (q *Queue) Next(v *sys.Vector) Part {
	v.Bufs = v.Bufs[:0]
	c := q.head
	switch {
	case c == nil:
		return Part{}
	case c.file != nil:
		return Part{Kind: FileBytes, File: c.file, More: c.next != nil}
	}
	if c.fds != nil {
		v.Bufs = append(v.Bufs, c.data[c.from:c.to])
		return Part{Kind: Descriptors, FDs: c.fds, More: c.next != nil}
	}
	part := Part{Kind: Bytes}
	for c != nil && len(v.Bufs) < cap(v.Bufs) {
		v.Bufs = append(v.Bufs, c.data[c.from:c.to])
		if c = c.next; c != nil && (c.file != nil || c.fds != nil) {
			break
		}
	}
	part.More = c != nil
	return part
}

// Wrote says that the first n bytes of what Next gave have gone, and returns the descriptors that went with them,
// which are the caller's to close.
func (q *Queue) Wrote(p *Pool, n int) (sent []int) {
	if n > 0 && q.head.fds != nil {
		sent, q.head.fds = q.head.fds, nil
		q.items--
	}
	q.bytes -= n
	for n > 0 {
		c := q.head
		if c == nil || c.file != nil || c.fds != nil {
			panic("stream: more was written than Next gave")
		}
		k := min(n, c.to-c.from)
		c.from += k
		n -= k
		if c.from == c.to {
			q.unlink()
			p.put(c)
		}
	}
	return sent
}

// WroteFile says that n more bytes of the file at the head have gone. When none is left, the file is taken out and
// returned.
func (q *Queue) WroteFile(n int64) (done *File) {
	f := q.head.file
	f.Offset += n
	f.Left -= n
	if f.Left > 0 {
		return nil
	}
	return q.DropFile()
}

// DropFile takes the file at the head out; nil where there is none.
func (q *Queue) DropFile() *File {
	if q.head == nil || q.head.file == nil {
		return nil
	}
	f := q.head.file
	q.unlink()
	q.items--
	return f
}

func (q *Queue) unlink() {
	q.head = q.head.next
	if q.head == nil {
		q.tail = nil
	}
}

// Clear takes everything out, and gives descriptors to closeFD and files to file, in their order. The queue is
// empty when these are called.
func (q *Queue) Clear(p *Pool, closeFD func(int), file func(*File)) {
	c := q.head
	*q = Queue{}
	for c != nil {
		next, fds, f := c.next, c.fds, c.file
		if f == nil {
			p.put(c)
		}
		for _, fd := range fds {
			closeFD(fd)
		}
		if f != nil {
			file(f)
		}
		c = next
	}
}
