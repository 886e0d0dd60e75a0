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
	if kind != sys.UDP {
		return -1, syscall.EPROTONOSUPPORT
	}
	if f != sys.IPv4 && f != sys.IPv6 {
		return -1, syscall.EAFNOSUPPORT
	}
	return k.n.open(f), nil
}

func (k kernel) Bind(fd int, addr netip.AddrPort) error {
	k.n.mu.Lock()
	defer k.n.mu.Unlock()
	k.n.calls.Bind++
	s, err := k.n.socket(fd)
	if err != nil {
		return err
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
	if !addr.IsValid() {
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
	if s.peer.Port() == 0 { // Linux tells a peer by its port: one at port 0 is none to getpeername(2)
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
	if s.refs == 0 {
		s.end()
	}
	return nil
}

// end is what comes with the last descriptor's close. Until then a closed one stays in its pollers.
func (s *socket) end() {
	for _, r := range slices.Clone(s.regs) {
		r.end()
	}
	s.leaveAll()
	s.release()
	s.queue.clear(&s.net.buffers)
	s.reports.clear()
}
