package memsys

import "syscall"

func (s *socket) listenUnix() error {
	switch {
	case s.name == "", s.stream.state != idle && s.stream.state != listening:
		return syscall.EINVAL
	}
	s.stream.state = listening
	return nil
}

// connectUnix looks at the own state last, as Linux does.
func (s *socket) connectUnix(to *socket) error {
	l := &to.stream.listener
	switch {
	case !to.listening():
		return syscall.ECONNREFUSED
	case l.full():
		return syscall.EAGAIN
	case s.stream.state == connected:
		return syscall.EISCONN
	case s.stream.state != idle:
		return syscall.EINVAL
	}
	child := to.child()
	child.name = to.name
	join(child, s)
	s.stream.state = connected
	l.queue = append(l.queue, child)
	to.notify()
	s.notify()
	return nil
}

// endUnix is what the last close does to a UnixStream socket: what its peer wrote and nobody read is an error
// there, as is a connection that nobody took.
func (s *socket) endUnix() {
	st := s.stream
	s.endName()
	if st.state == listening {
		queue := st.listener.queue
		st.listener = listener{}
		for _, child := range queue {
			child.stream.other.pending = syscall.ECONNRESET
			child.end()
		}
	}
	unread := st.in.count > 0
	s.dropFiles()
	st.in.count, st.in.received = 0, 0
	if other := st.other; st.state == connected && !st.ended {
		if unread {
			other.pending = syscall.ECONNRESET
		}
		other.stream.readOver, other.stream.writeOver = true, true
		other.notify()
	}
	st.ended = true
}
