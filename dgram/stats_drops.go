package dgram

import "sync"

// dropCounter makes a count of the kernel's, which wraps at 32 bits, one that does not, and keeps it when the socket is
// closed.
type dropCounter struct {
	mu    sync.Mutex
	total uint64
	last  uint32
	begun bool // last is set: what was dropped before the Conn was made is another's
}

// see is told of a count. Who asked the kernel first may be here last, with less than was seen: that is no 2³² more.
func (d *dropCounter) see(kernel uint32) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	more := int32(kernel - d.last)
	if d.begun && more > 0 {
		d.total += uint64(more)
	}
	if !d.begun || more > 0 {
		d.last, d.begun = kernel, true
	}
	return d.total
}

func (d *dropCounter) kept() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.total
}

func (n *counters) drops(kernel uint32, known bool) uint64 {
	if known {
		return n.dropped.see(kernel)
	}
	return n.dropped.kept()
}

// keepDrops notes what the kernel has dropped up to now.
func (n *counters) keepDrops(c *Conn) {
	if m, known, _ := c.memory(); known {
		n.dropped.see(m.Drops)
	}
}
