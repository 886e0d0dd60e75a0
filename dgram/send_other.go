//go:build !linux

package dgram

import (
	"errors"
	"net"
	"os"
	"syscall"
)

// transmit sends the first message by package net, which waits where it must.
func (s *sender) transmit(from, _ int) error {
	m := &s.batch.Msgs[from]
	_, _, err := s.conn.udp.WriteMsgUDPAddrPort(m.Buf, m.Raw, m.Addr)
	s.conn.counters.sendCalls.Add(1)
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, net.ErrClosed) {
		return plain(err)
	}
	s.sent, s.err = 1, reason(err)
	return nil
}

// flush sends the queue datagram by datagram.
func (r *repair) flush() error {
	s := r.conn.send.singles.Get().(*sender)
	defer r.conn.send.singles.Put(s)
	for r.queue.Len() > 0 {
		t := r.queue.At(0)
		m := &s.batch.Msgs[0]
		m.Buf, m.Addr = t.First(), t.Addr
		err := s.transmit(0, 1)
		switch {
		case err != nil:
			return err
		case s.err == nil:
			r.conn.counters.sentMessages(s.batch.Msgs[:1])
		default:
			if err := r.conn.send.giveUp(m, s.err); err != nil {
				r.tooBig = err
			}
		}
		r.queue.Drop(1)
	}
	return nil
}

// reason is the errno within an error of package net, or the error.
func reason(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}
