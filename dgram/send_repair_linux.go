//go:build linux

package dgram

import (
	"github.com/weirnet/weir/internal/batch"
)

// flush sends the queue, and waits where it must.
func (r *repair) flush() error {
	if err := r.conn.raw.Control(func(fd uintptr) { r.flushOnce(fd) }); err != nil {
		return plain(err)
	}
	if !r.blocked {
		return nil
	}
	return r.conn.send.await(r.flushOnce)
}

func (r *repair) flushOnce(fd uintptr) bool {
	sent := batch.Flush(r.conn.kernel, int(fd), r.scratch, &r.queue, &r.hooks)
	r.count(&sent)
	return !r.blocked
}
