package weirtls

import (
	"sync"

	"github.com/weirnet/weir"
)

// chunk is a link of a Sender's queue: a record's worth at most.
type chunk struct {
	next *chunk
	data []byte // up to its capacity
}

// A queue begins with a small one, so that a thousand connections with an answer each do not take a thousand large ones.
const (
	smallChunk = 4 << 10
	largeChunk = mostPlain
)

func (k *chunk) full() bool { return len(k.data) == cap(k.data) }

func (k *chunk) add(b []byte) (n int) {
	n = min(len(b), cap(k.data)-len(k.data))
	k.data = append(k.data, b[:n]...)
	return n
}

// chunkPools are of all Senders of a loop, whose connections hold nothing while nothing is to be sent.
type chunkPools struct{ small, large sync.Pool }

type chunkKey struct{}

func chunkPoolsOf(l *weir.Loop) *chunkPools {
	return l.Local(chunkKey{}, func() any {
		return &chunkPools{
			small: sync.Pool{New: func() any { return &chunk{data: make([]byte, 0, smallChunk)} }},
			large: sync.Pool{New: func() any { return &chunk{data: make([]byte, 0, largeChunk)} }},
		}
	}).(*chunkPools)
}

func (p *chunkPools) get(large bool) *chunk {
	if large {
		return p.large.Get().(*chunk)
	}
	return p.small.Get().(*chunk)
}

func (p *chunkPools) put(k *chunk) {
	pool := &p.small
	if cap(k.data) == largeChunk {
		pool = &p.large
	}
	k.data = k.data[:0]
	pool.Put(k)
}
