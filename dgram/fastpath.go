package dgram

import (
	"log/slog"
	"sync/atomic"
)

// lostPaths are the fast paths that the Logger was told of.
type lostPaths struct{ recvmmsg, sendmmsg, gso atomic.Bool }

// lost logs, once, that a fast path is off, which costs speed and nothing else.
func (c *Conn) lost(told *atomic.Bool, path string, why error) {
	if told.Swap(true) {
		return
	}
	c.logger.Warn("dgram: fast path lost", slog.String("path", path), slog.Any("reason", why), slog.String("conn", c.String()))
}

// tellUnbatched logs what the kernel says of batched calls, which a filter may refuse at any time.
func (c *Conn) tellUnbatched() {
	if c.single {
		return // nobody wants them
	}
	recv, send := c.kernel.Unbatched()
	if recv != nil {
		c.lost(&c.lostPaths.recvmmsg, "recvmmsg", recv)
	}
	if send != nil {
		c.lost(&c.lostPaths.sendmmsg, "sendmmsg", send)
	}
}
