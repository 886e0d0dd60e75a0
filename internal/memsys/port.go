package memsys

import "github.com/weirnet/weir/internal/sys"

// The ephemeral ports of Linux (ip_local_port_range). Here they are given out in order, so that a test
// sees the same ports in each run.
const (
	firstEphemeral = 32768
	lastEphemeral  = 60999
)

// ports is who has which port of a protocol.
type ports struct {
	used     map[uint16][]*socket  // those that were bound, by themselves or by Connect
	accepted map[uint16]acceptedAt // connections at a listener's port: too many for a list to be looked through
	next     uint16
}

// acceptedAt counts connections, and those of listeners without ReuseAddr.
type acceptedAt struct{ all, strict int }

func newPorts() *ports {
	return &ports{
		used: make(map[uint16][]*socket), accepted: make(map[uint16]acceptedAt), next: firstEphemeral,
	}
}

// ports are those of the socket's protocol.
func (s *socket) ports() *ports {
	if s.kind == sys.TCP {
		return s.net.tcp
	}
	return s.net.udp
}

// ephemeral finds a port that no socket has.
func (p *ports) ephemeral() (uint16, bool) {
	for range lastEphemeral - firstEphemeral + 1 {
		port := p.next
		p.next++
		if p.next > lastEphemeral {
			p.next = firstEphemeral
		}
		if len(p.used[port]) == 0 && p.accepted[port].all == 0 {
			return port, true
		}
	}
	return 0, false
}

// join counts a connection that was accepted, leave one that ends.
func (p *ports) join(s *socket) {
	s.accepted, s.strict = true, !s.reuseAddr
	there := p.accepted[s.local.Port()]
	there.all++
	there.strict += flag(s.strict)
	p.accepted[s.local.Port()] = there
}

func (p *ports) leave(s *socket) {
	there := p.accepted[s.local.Port()]
	there.all--
	there.strict -= flag(s.strict)
	if there.all == 0 {
		delete(p.accepted, s.local.Port())
	} else {
		p.accepted[s.local.Port()] = there
	}
	s.accepted = false
}
