package dgram

import (
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

// SyscallConn gives access to the descriptor, for options of the socket: its Control costs nothing. Who calls its Read gets
// datagrams past the Conn: GRO is off from then on, so that each comes as it was sent, but for those that the kernel had
// joined before, and what the Conn has read ahead is not among them.
func (c *Conn) SyscallConn() (syscall.RawConn, error) { return rawConn{c.raw, c}, nil }

type rawConn struct {
	syscall.RawConn
	conn *Conn
}

func (r rawConn) Read(f func(fd uintptr) bool) error {
	r.conn.separateReceives()
	return r.RawConn.Read(f)
}

// separateReceives has the kernel not join datagrams any more.
func (c *Conn) separateReceives() {
	if c.recv.joined.Swap(false) {
		_ = control(c.raw, func(fd int) error { return c.kernel.SetOption(fd, sys.RecvJoined, 0) })
	}
}
