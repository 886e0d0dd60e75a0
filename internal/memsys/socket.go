package memsys

import (
	"net/netip"
	"syscall"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
)

// socket is a socket of any kind; most of it is UDP's. Its addresses are in wire form: an IPv4 peer of an IPv6 socket is IPv4 here.
type socket struct {
	net    *Net
	family sys.Family
	kind   sys.Kind
	cookie uint64
	refs   int // descriptors

	local    netip.AddrPort // port 0 while unbound
	peer     netip.AddrPort // zero while not connected
	keepAddr bool           // Bind named the address: dissolve keeps it
	keepPort bool           // Bind named the port: dissolve keeps it

	reuseAddr, reusePort, broadcast, v6only bool
	options                                 [optionCount]int // those that optionRules names, and a few more
	device                                  int              // BindToDevice: the interface, or 0
	memberships                             []*membership

	queue     queue
	reports   reports
	recvLimit int
	sendLimit int
	drops     uint32
	pending   syscall.Errno // what the next call that looks for it answers and clears (sk_err)
	blocked   bool          // BlockSends

	stream *stream // of the kinds TCP and UnixStream
	gram   *gram   // of Unixgram
	name   string  // of the family UnixFamily: BindUnix

	accepted, strict bool // at a port of Net.tcp.accepted, and counted as strict there

	regs []*registration
}

func newSocket(n *Net, family sys.Family, kind sys.Kind) *socket {
	n.cookies++
	s := &socket{
		net: n, family: family, kind: kind, cookie: n.cookies,
		recvLimit: defaultBuffer, sendLimit: defaultBuffer, options: initialOptions(),
	}
	switch {
	case kind == sys.Unixgram:
		s.gram = &gram{}
	case kind != sys.UDP:
		s.stream = &stream{}
	}
	if family != sys.UnixFamily {
		s.local = netip.AddrPortFrom(s.wildcard(), 0)
	}
	return s
}

func (s *socket) wildcard() netip.Addr {
	if s.family == sys.IPv6 {
		return netip.IPv6Unspecified()
	}
	return netip.IPv4Unspecified()
}

func (s *socket) connected() bool { return s.peer.IsValid() }

// show is a wire address as the socket's owner sees it: an IPv6 socket knows IPv4 as mapped only.
func (s *socket) show(a netip.AddrPort) netip.AddrPort {
	if s.family == sys.IPv6 && a.Addr().Is4() {
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr().As16()), a.Port())
	}
	return a
}

// takePending answers the error of an earlier datagram, once.
func (s *socket) takePending() error {
	if s.pending == 0 {
		return nil
	}
	err := s.pending
	s.pending = 0
	return err
}

func (s *socket) readiness() (r poll.Ready) {
	switch {
	case s.stream != nil:
		return s.streamReadiness()
	case s.gram != nil:
		return s.gramReadiness()
	}
	if s.queue.len() > 0 {
		r |= poll.Readable
	}
	if !s.blocked {
		r |= poll.Writable
	}
	if s.pending != 0 || s.reports.len() > 0 {
		r |= poll.Failed
	}
	return r
}

// notify tells the pollers that the socket may have become ready. What is no longer ready they find
// out themselves.
func (s *socket) notify() {
	for _, r := range s.regs {
		r.update()
	}
}
