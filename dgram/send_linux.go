//go:build linux

package dgram

import (
	"syscall"
)

// transmit sends messages from to to-1 of the batch, as many as one system call takes, and waits where it must. What it
// returns is of the deadline or of Close; what the kernel said is in s.
func (s *sender) transmit(from, to int) error {
	s.from, s.to = from, to
	if s.call == nil {
		s.call, s.wait = func(fd uintptr) { s.sendOnce(fd) }, s.sendOnce
	}
	if err := s.conn.raw.Control(s.call); err != nil {
		return plain(err)
	}
	s.conn.tellUnbatched()
	if s.err != syscall.EAGAIN {
		return nil
	}
	return s.conn.send.await(s.wait)
}

// sendOnce is one send call; false: it would have to wait.
func (s *sender) sendOnce(fd uintptr) bool {
	c := s.conn
	s.sent, s.err = c.kernel.Send(int(fd), s.batch, s.from, s.to)
	c.counters.sendCalls.Add(1)
	if s.err == syscall.EAGAIN {
		c.counters.wait.Add(1)
		return false
	}
	return true
}
