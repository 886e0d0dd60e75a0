package memsys

import (
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

// Buffer sizes as Linux has them by default, in bytes as it charges them (twice what SetOption is told).
const (
	defaultBuffer = 212992  // net.core.rmem_default, wmem_default
	maxBuffer     = 4194304 // net.core.rmem_max, wmem_max of this network; before doubling
	maxForced     = 1<<30 - 1
	minRecvBuffer = 2304 // SOCK_MIN_RCVBUF
	minSendBuffer = 4608 // SOCK_MIN_SNDBUF
)

func (k kernel) SetOption(fd int, o sys.Option, value int) error {
	k.n.mu.Lock()
	defer k.n.mu.Unlock()
	k.n.calls.SetOption++
	s, err := k.n.socket(fd)
	if err != nil {
		return err
	}
	if err := s.mayOption(o, true); err != nil {
		return err
	}
	switch o {
	case sys.ReuseAddr:
		s.reuseAddr = value != 0
	case sys.ReusePort:
		s.reusePort = value != 0
	case sys.Broadcast:
		s.broadcast = value != 0
	case sys.RecvBuffer:
		s.recvLimit = bufferFor(value, maxBuffer, minRecvBuffer)
	case sys.SendBuffer:
		s.sendLimit = bufferFor(value, maxBuffer, minSendBuffer)
		s.notify()
	case sys.RecvBufferForce:
		s.recvLimit = bufferFor(max(value, 0), maxForced, minRecvBuffer)
	case sys.SendBufferForce:
		s.sendLimit = bufferFor(max(value, 0), maxForced, minSendBuffer)
		s.notify()
	case sys.IPv6Only:
		return s.setIPv6Only(value != 0)
	case sys.TOS:
		s.options[o] = s.ownClass(value & 0xff)
	case sys.DeferAccept, sys.MaxSegment:
		return s.setTCP(o, value)
	case sys.MulticastInterface, sys.MulticastInterface6:
		return s.setMulticastInterface(o, value)
	default:
		if err := s.setByRule(o, value); err != nil {
			return err
		}
		if o == sys.TrafficClass {
			s.options[o] = s.ownClass(s.options[o])
		}
		if value == 0 && (o == sys.Reports || o == sys.Reports6) {
			s.reports.clear()
		}
	}
	return nil
}

// bufferFor compares unsigned, as the kernel does: a negative size is a very large one.
func bufferFor(value int, most uint32, least int) int {
	return max(2*int(min(uint32(value), most)), least)
}

func (s *socket) setIPv6Only(on bool) error {
	switch {
	case s.family != sys.IPv6:
		return syscall.ENOPROTOOPT
	case s.local.Port() != 0:
		return syscall.EINVAL
	}
	s.v6only = on
	return nil
}

func (k kernel) GetOption(fd int, o sys.Option) (int, error) {
	k.n.mu.Lock()
	defer k.n.mu.Unlock()
	k.n.calls.GetOption++
	s, err := k.n.socket(fd)
	if err != nil {
		return 0, err
	}
	if err := s.mayOption(o, false); err != nil {
		return 0, err
	}
	switch o {
	case sys.ReuseAddr:
		return flag(s.reuseAddr), nil
	case sys.ReusePort:
		return flag(s.reusePort), nil
	case sys.Broadcast:
		return flag(s.broadcast), nil
	case sys.RecvBuffer:
		return s.recvLimit, nil
	case sys.SendBuffer:
		return s.sendLimit, nil
	case sys.IPv6Only:
		if s.family != sys.IPv6 {
			return 0, syscall.EOPNOTSUPP // not the errno of setting it, but what Linux answers
		}
		return flag(s.v6only), nil
	case sys.SocketError:
		pending := s.pending
		s.pending = 0
		return int(pending), nil
	case sys.TOS, sys.DeferAccept:
		return s.options[o], nil
	case sys.MaxSegment:
		return s.maxSegment(), nil
	case sys.MulticastInterface:
		return 0, nil // of the real one an address
	case sys.MulticastInterface6:
		if s.family != sys.IPv6 {
			return 0, syscall.EOPNOTSUPP
		}
		return s.options[o], nil
	case sys.PathMTU, sys.PathMTU6:
		return s.pathMTU(o)
	default:
		return s.getByRule(o)
	}
}

func flag(on bool) int {
	if on {
		return 1
	}
	return 0
}

func (k kernel) MemInfo(fd int) (sys.MemInfo, error) {
	k.n.mu.Lock()
	defer k.n.mu.Unlock()
	k.n.calls.MemInfo++
	s, err := k.n.socket(fd)
	if err != nil {
		return sys.MemInfo{}, err
	}
	return sys.MemInfo{
		RecvQueued: s.charged(),
		RecvLimit:  s.recvLimit,
		SendLimit:  s.sendLimit,
		Drops:      s.drops,
	}, nil
}
