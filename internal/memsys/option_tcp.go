package memsys

import (
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

// mayOption tells whether the socket's kind has the option. The errno differs by family and direction, as on Linux.
func (s *socket) mayOption(o sys.Option, set bool) error {
	udp, tcp := ofUDP(o), ofTCP(o)
	switch {
	case s.family == sys.UnixFamily:
		if !ofAny(o) || set && o == sys.ReusePort {
			return syscall.EOPNOTSUPP
		}
	case udp && s.kind == sys.TCP, tcp && s.kind == sys.UDP:
		if !set && s.family == sys.IPv4 {
			return syscall.EOPNOTSUPP
		}
		return syscall.ENOPROTOOPT
	case set && s.kind == sys.TCP:
		switch o {
		case sys.MulticastTTL, sys.MulticastInterface:
			return syscall.EINVAL
		case sys.MulticastHopLimit, sys.MulticastInterface6:
			return syscall.ENOPROTOOPT
		}
	}
	return nil
}

// ofAny tells of an option of the level SOL_SOCKET.
func ofAny(o sys.Option) bool {
	switch o {
	case sys.ReuseAddr, sys.ReusePort, sys.Broadcast, sys.RecvBuffer, sys.SendBuffer, sys.SocketError,
		sys.RecvBufferForce, sys.SendBufferForce, sys.RecvTime, sys.KeepAlive, sys.Linger:
		return true
	}
	return false
}

func ofUDP(o sys.Option) bool { return o == sys.RecvJoined || o == sys.SegmentSize }

func ofTCP(o sys.Option) bool { return o >= sys.NoDelay && o < optionCount && !ofAny(o) }

// ownClass is a traffic class as a socket may set it: the lowest two bits are TCP's own.
func (s *socket) ownClass(class int) int {
	if s.kind == sys.TCP {
		return class &^ 3
	}
	return class
}

// minMSS and maxMSS are what TCP_MAXSEG takes besides 0, and initialMSS what it tells before there is a connection.
const (
	minMSS     = 88
	maxMSS     = 32767
	initialMSS = 536
)

func (s *socket) setTCP(o sys.Option, value int) error {
	if o == sys.DeferAccept {
		s.options[o] = deferFor(value)
		return nil
	}
	if value != 0 && (value < minMSS || value > maxMSS) {
		return syscall.EINVAL
	}
	s.options[o] = value
	return nil
}

// deferFor is a time as Linux keeps it: as that of so many SYN-ACKs, which come after 1, 2, 4 seconds and so on, but
// no longer than 120 apart, and at most 255 of them.
func deferFor(seconds int) (time int) {
	step := 1
	for range 255 {
		if time >= seconds {
			break
		}
		time += step
		step = min(2*step, 120)
	}
	return time
}

func (s *socket) maxSegment() int {
	switch own := s.options[sys.MaxSegment]; {
	case s.stream.state == connected:
		return s.segmentBytes()
	case own != 0:
		return own
	}
	return initialMSS
}
