package memsys

import (
	"slices"
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

// endTCP is what the last close does to a TCP socket. Bytes that nobody will read, or Linger, make it a reset.
func (s *socket) endTCP() {
	st := s.stream
	switch {
	case st.state == listening:
		s.endListening()
	case st.state == waiting:
		s.giveUp()
	case st.other == nil, !s.established():
	case st.in.received > 0, s.options[sys.Linger] == 0:
		s.resetPeer()
	default:
		st.other.stream.in.ended = true
	}
	if other := st.other; other != nil && other != s {
		st.other = nil
		if other.stream.other == s {
			other.stream.other = nil
		}
		other.arrive()
		other.notify()
	}
	st.state = over
}

// resetPeer has the other end get a reset.
func (s *socket) resetPeer() {
	if other := s.stream.other; other != nil && other != s {
		other.reset(other.resetError())
	}
	s.stream.other = nil
}

// resetError is what a reset means: after the peer's FIN that nobody will take what is written.
func (s *socket) resetError() syscall.Errno {
	if s.stream.in.over() && !s.stream.writeOver {
		return syscall.EPIPE
	}
	return syscall.ECONNRESET
}

// reset ends a TCP socket. What it has received can still be read.
func (s *socket) reset(err syscall.Errno) {
	st := s.stream
	if st.state == connected && !s.established() {
		return
	}
	st.in.cut()
	if other := st.other; other != nil && other.stream.other == s {
		other.stream.other = nil
	}
	st.state, st.other = over, nil
	st.readOver, st.writeOver = true, true
	s.pending = err
	if st.listener.of != nil { // nobody will ever have seen it
		s.undefer()
		s.end()
	}
	s.notify()
}

// disconnect is Connect to nobody: the socket is as new, at the address that Bind named.
func (s *socket) disconnect() {
	st := s.stream
	switch {
	case st.state == listening:
		s.endListening()
	case st.state == waiting:
		s.giveUp()
		s.pending = syscall.ECONNRESET
	case st.state == connected && s.established():
		s.resetPeer()
		s.pending = syscall.ECONNRESET
	}
	if other := st.other; other != nil && other.stream.other == s {
		other.stream.other = nil
	}
	ring := st.in.ring
	*st = stream{mostBytes: st.mostBytes}
	st.in.ring = ring
	if s.accepted {
		s.release()
		s.keepPort = false
	}
	s.dissolve()
	s.notify()
}

// giveUp takes a socket that waits for its connection off the listener that it waits for.
func (s *socket) giveUp() {
	if l := s.stream.listener.of; l != nil {
		l.stream.listener.pending = slices.DeleteFunc(l.stream.listener.pending, func(x *socket) bool { return x == s })
		s.stream.listener.of = nil
	}
}
