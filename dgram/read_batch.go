package dgram

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/net/ipv4"
)

// ReadBatch receives up to len(ms) datagrams. It waits for the first, and takes with it what the same system call brought:
// at first 2 messages of the kernel, under load up to 8, each of which may be a train of up to 64 datagrams; with
// Config.NoGRO up to 16, and no trains.
//
//   - Shape: 1 <= n <= len(ms). Buffers, of which there may be many, are filled; N, NN (of OOB), Flags and Addr are set.
//     Addr is a *net.UDPAddr as that of ReadFrom. flags must be 0.
//   - Errors: as Read's, only with n == 0.
//   - Source: recvmmsg(2); ReadBatch of golang.org/x/net/ipv4, and ipv6, which has the same type.
func (c *Conn) ReadBatch(ms []ipv4.Message, flags int) (n int, err error) {
	if err := noFlags(flags); err != nil {
		return 0, c.opError("read", nil, err)
	}
	if len(ms) == 0 {
		return 0, nil
	}
	r := &c.recv
	r.mu.Lock()
	defer r.mu.Unlock()
	d, err := r.take()
	if err != nil {
		return 0, err
	}
	for {
		c.put(&ms[n], &d)
		n++
		if n == len(ms) {
			break
		}
		more, ok := r.more()
		if !ok {
			break
		}
		d = more
	}
	r.took(n)
	return n, nil
}

// put hands a datagram out as a message.
func (c *Conn) put(m *ipv4.Message, d *datagram) {
	m.N = 0
	for _, b := range m.Buffers {
		m.N += copy(b, d.payload[m.N:])
	}
	m.Flags = c.truncated(m.N, d)
	var cut int
	m.NN, cut = d.control(m.OOB)
	m.Flags |= cut
	m.Addr = c.recv.names.of(d.from())
}

var errFlags = errors.New("flags are not supported")

func noFlags(flags int) error {
	if flags != 0 {
		return fmt.Errorf("%w: %#x: %w", errFlags, flags, syscall.EOPNOTSUPP)
	}
	return nil
}
