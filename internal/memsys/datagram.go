package memsys

import (
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

// The largest payloads: 65535 less the headers of IPv4 and UDP; for IPv6 its own header does not count.
const (
	maxPayload4 = 65507
	maxPayload6 = 65527
)

func (k kernel) Recv(fd int, b *sys.RecvBatch, n int) (int, error) {
	k.n.mu.Lock()
	defer k.n.mu.Unlock()
	k.n.calls.Recv++
	s, err := k.n.socket(fd)
	if err != nil {
		return 0, err
	}
	if err := s.takePending(); err != nil {
		return 0, err
	}
	if s.queue.len() == 0 {
		return 0, syscall.EAGAIN
	}
	got := min(n, s.queue.len())
	for i := range got {
		d := s.queue.pop()
		b.Msgs[i] = s.fill(b.Slot(i), d)
		k.n.buffers.put(d.buf)
	}
	return got, nil
}

// fill copies what fits the slot; the rest of the datagram is gone.
func (s *socket) fill(slot []byte, d datagram) sys.Message {
	m := sys.Message{Buf: slot[:copy(slot, d.buf)], Addr: s.show(d.from)}
	if len(d.buf) > len(slot) {
		m.Flags = sys.Truncated
	}
	return m
}

func (k kernel) Send(fd int, b *sys.SendBatch, from, to int) (int, error) {
	k.n.mu.Lock()
	defer k.n.mu.Unlock()
	k.n.calls.Send++
	s, err := k.n.socket(fd)
	if err != nil {
		return 0, err
	}
	for i := from; i < to; i++ {
		if err := s.send(&b.Msgs[i]); err != nil {
			if i > from { // sendmmsg(2) forgets the error; the next call meets it again, or not
				err = nil
			}
			return i - from, err
		}
	}
	return to - from, nil
}

// send sends one datagram. A pending error comes after all that is wrong with the datagram itself, as
// Linux looks for it only when it takes memory for the datagram.
func (s *socket) send(m *sys.Message) error {
	if err := s.autobind(); err != nil {
		return err
	}
	if s.family == sys.IPv4 && len(m.Buf) > 65535 {
		return syscall.EMSGSIZE
	}
	addr := m.Addr
	switch {
	case !addr.IsValid() && !s.connected():
		return syscall.EDESTADDRREQ
	case !addr.IsValid():
		addr = s.peer
	case addr.Port() == 0 && (s.family == sys.IPv6 || addr.Addr().Is4()):
		return syscall.EINVAL
	}
	from, to, err := s.route(addr)
	if err != nil {
		return err
	}
	if len(m.Buf) > maxPayload6 || len(m.Buf) > maxPayload4 && to.Addr().Is4() {
		return syscall.EMSGSIZE
	}
	if err := s.takePending(); err != nil {
		return err
	}
	if s.blocked {
		return syscall.EAGAIN
	}
	s.net.deliver(from, to, m.Buf)
	return nil
}
