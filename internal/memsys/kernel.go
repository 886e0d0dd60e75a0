package memsys

import (
	"net/netip"
	"slices"
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

// kernel is a Net as its callers see it: it locks, counts, and finds the socket.
type kernel struct{ n *Net }

var _ sys.Kernel = kernel{}

func (k kernel) Socket(f sys.Family, kind sys.Kind) (int, error) {
	k.n.mu.Lock()
	defer k.n.mu.Unlock()
	k.n.calls.Socket++
	switch f {
	case sys.IPv4, sys.IPv6:
		if kind != sys.UDP && kind != sys.TCP {
			return -1, syscall.EPROTONOSUPPORT
		}
	case sys.UnixFamily:
		if kind != sys.UnixStream && kind != sys.Unixgram {
			return -1, syscall.EPROTONOSUPPORT
		}
	default:
		return -1, syscall.EAFNOSUPPORT
	}
	return k.n.enter(newSocket(k.n, f, kind))
}

func (k kernel) Bind(fd int, addr netip.AddrPort) error {
	k.n.mu.Lock()
	defer k.n.mu.Unlock()
	k.n.calls.Bind++
	s, err := k.n.socket(fd)
	if err != nil {
		return err
	}
	if s.family == sys.UnixFamily {
		return syscall.EINVAL
	}
	return s.bind(addr)
}

func (k kernel) Connect(fd int, addr netip.AddrPort) error {
	k.n.mu.Lock()
	defer k.n.mu.Unlock()
	k.n.calls.Connect++
	s, err := k.n.socket(fd)
	if err != nil {
		return err
	}
	switch {
	case s.family == sys.UnixFamily:
		return syscall.EINVAL
	case s.kind == sys.TCP:
		return s.dial(addr)
	case !addr.IsValid():
		s.dissolve()
		return nil
	}
	return s.connect(addr)
}

func (k kernel) LocalAddr(fd int) (netip.AddrPort, error) {
	k.n.mu.Lock()
	defer k.n.mu.Unlock()
	k.n.calls.LocalAddr++
	s, err := k.n.socket(fd)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return s.show(s.local), nil
}

func (k kernel) RemoteAddr(fd int) (netip.AddrPort, error) {
	k.n.mu.Lock()
	defer k.n.mu.Unlock()
	k.n.calls.RemoteAddr++
	s, err := k.n.socket(fd)
	if err != nil {
		return netip.AddrPort{}, err
	}
	if s.family == sys.UnixFamily && s.unixPeer() != nil {
		return netip.AddrPort{}, nil
	}
	if s.peer.Port() == 0 || s.kind == sys.TCP && !s.established() { // Linux tells a peer by its port: one at port 0 is none to getpeername(2)
		return netip.AddrPort{}, syscall.ENOTCONN
	}
	return s.show(s.peer), nil
}

func (k kernel) Close(fd int) error {
	k.n.mu.Lock()
	defer k.n.mu.Unlock()
	k.n.calls.Close++
	s, err := k.n.socket(fd)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(s.regs, func(r *registration) bool { return r.fd == fd }) {
		k.n.calls.CloseAdded++
	}
	k.n.free(fd)
	s.unref()
	return nil
}

// unref ends a socket that has neither a descriptor nor is one on its way.
func (s *socket) unref() {
	if s.refs == 0 {
		s.end()
	}
}

// end is what comes with the last descriptor's close. Until then a closed one stays in its pollers.
func (s *socket) end() {
	for _, r := range slices.Clone(s.regs) {
		r.end()
	}
	switch {
	case s.kind == sys.TCP:
		s.endTCP()
	case s.stream != nil:
		s.endUnix()
	case s.gram != nil:
		s.endGram()
	}
	s.leaveAll()
	s.release()
	s.queue.clear(&s.net.buffers)
	s.reports.clear()
}
