package memsys

import "math/bits"

// buffers keeps payload memory for reuse, by powers of two, so that steady traffic does not allocate.
type buffers struct {
	free [19][][]byte // up to 262144 bytes, more than a datagram has where nobody changed its buffer
}

func (b *buffers) get(size int) []byte {
	class := bits.Len(uint(max(size, 1) - 1))
	if class >= len(b.free) {
		return make([]byte, size)
	}
	list := b.free[class]
	if len(list) == 0 {
		return make([]byte, size, 1<<class)
	}
	buf := list[len(list)-1]
	b.free[class] = list[:len(list)-1]
	return buf[:size]
}

func (b *buffers) put(buf []byte) {
	class := bits.Len(uint(cap(buf) - 1))
	if class < len(b.free) {
		b.free[class] = append(b.free[class], buf)
	}
}
