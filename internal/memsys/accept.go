package memsys

import (
	"net/netip"
	"slices"
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

func (k kernel) Accept(fd int) (int, netip.AddrPort, error) {
	k.n.mu.Lock()
	defer k.n.mu.Unlock()
	k.n.calls.Accept++
	s, err := k.n.socket(fd)
	switch {
	case err != nil:
		return -1, netip.AddrPort{}, err
	case k.n.full(): // Linux wants a descriptor before it looks for a connection
		return -1, netip.AddrPort{}, syscall.EMFILE
	case s.stream == nil:
		return -1, netip.AddrPort{}, syscall.EOPNOTSUPP
	case !s.listening():
		return -1, netip.AddrPort{}, syscall.EINVAL
	}
	l := &s.stream.listener
	if len(l.queue) == 0 {
		return -1, netip.AddrPort{}, syscall.EAGAIN
	}
	child := l.queue[0]
	conn, err := k.n.enter(child)
	if err != nil {
		return -1, netip.AddrPort{}, err
	}
	l.queue = slices.Delete(l.queue, 0, 1)
	s.admit()
	return conn, child.show(child.peer), nil
}

// admit lets clients in that have waited for room.
func (s *socket) admit() {
	l := &s.stream.listener
	for len(l.pending) > 0 && !l.full() {
		client := l.pending[0]
		l.pending = slices.Delete(l.pending, 0, 1)
		client.stream.listener.of = nil
		s.take(client)
	}
}

// take makes the connection of a TCP client. DeferAccept keeps it back until there is something to read.
func (s *socket) take(client *socket) {
	child := s.child()
	child.local, child.peer = client.peer, client.local
	s.net.tcp.join(child)
	join(child, client)
	client.stream.state = connected
	l := &s.stream.listener
	if s.on(sys.DeferAccept) {
		child.stream.listener.of = s
		l.deferred = append(l.deferred, child)
	} else {
		l.queue = append(l.queue, child)
		s.notify()
	}
	client.notify()
}

// child is a socket that has of its listener what accept(2) hands on.
func (s *socket) child() *socket {
	child := newSocket(s.net, s.family, s.kind)
	child.recvLimit, child.sendLimit = s.recvLimit, s.sendLimit
	if s.kind == sys.TCP {
		child.options = s.options
		child.options[sys.DeferAccept] = 0
		child.reuseAddr, child.reusePort, child.v6only, child.device = s.reuseAddr, s.reusePort, s.v6only, s.device
		child.keepAddr = true
	}
	child.stream.state, child.stream.step = connected, told
	return child
}

// join connects two sockets.
func join(a, b *socket) { a.stream.other, b.stream.other = b, a }

// arrive puts a connection that DeferAccept held back into the queue, as something has come.
func (s *socket) arrive() {
	l := s.stream.listener.of
	if l == nil || s.stream.state != connected || s.stream.in.count == 0 && !s.stream.in.ended {
		return
	}
	s.undefer()
	l.stream.listener.queue = append(l.stream.listener.queue, s)
	l.notify()
}

// undefer takes it off the listener.
func (s *socket) undefer() {
	if l := s.stream.listener.of; l != nil {
		l.stream.listener.deferred = slices.DeleteFunc(l.stream.listener.deferred, func(x *socket) bool { return x == s })
		s.stream.listener.of = nil
	}
}
