package memsys

import (
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

// maxBacklog is net.core.somaxconn.
const maxBacklog = 4096

// listener is what a socket that listens has, and one that is on its way to another's Accept.
type listener struct {
	backlog  int
	queue    []*socket // what Accept takes
	deferred []*socket // connections that DeferAccept holds back
	pending  []*socket // clients whose connection found the queue full

	of *socket // of a connection in deferred and a client in pending: where that is
}

// full is Linux's: one more than the backlog fits.
func (l *listener) full() bool { return len(l.queue) > l.backlog }

func (k kernel) Listen(fd, backlog int) error {
	k.n.mu.Lock()
	defer k.n.mu.Unlock()
	k.n.calls.Listen++
	s, err := k.n.streamAt(fd)
	if err != nil {
		return err
	}
	if backlog < 0 || backlog > maxBacklog { // the kernel compares unsigned
		backlog = maxBacklog
	}
	if s.kind == sys.UnixStream {
		err = s.listenUnix()
	} else {
		err = s.listenTCP()
	}
	if err != nil {
		return err
	}
	s.stream.listener.backlog = backlog
	s.admit()
	s.notify()
	return nil
}

func (s *socket) listenTCP() error {
	st := s.stream
	switch {
	case st.state == listening:
		return nil
	case st.step != unasked || st.state != idle:
		return syscall.EINVAL
	}
	if s.local.Port() == 0 {
		port, ok := s.ports().ephemeral()
		if !ok {
			return syscall.EADDRINUSE
		}
		s.claimPort(port)
	} else if s.conflicts(s.local) {
		return syscall.EADDRINUSE
	}
	st.state, st.writeOver = listening, false
	return nil
}

// endListening resets the connections that nobody took. One that DeferAccept held back is forgotten, which its client
// learns when it writes. Clients that still wait for theirs come again, and find another listener, or none.
func (s *socket) endListening() {
	l := &s.stream.listener
	queue, deferred, pending := l.queue, l.deferred, l.pending
	*l = listener{}
	s.stream.state = over
	for _, child := range deferred {
		child.stream.listener.of = nil
		child.stream.other.stream.other = nil
		child.stream.other = nil
		child.end()
	}
	for _, child := range queue {
		if child.established() {
			child.resetPeer()
		}
		child.end()
	}
	for _, client := range pending {
		client.stream.listener.of = nil
		client.knock()
	}
}
