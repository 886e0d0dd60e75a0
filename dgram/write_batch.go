package dgram

import (
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/net/ipv4"

	"github.com/weirnet/weir/internal/sys"
)

// WriteBatch sends messages, 64 a system call.
//
//   - Owner: ms and what it holds are the caller's again when WriteBatch returns.
//   - Shape: of each, Buffers are the payload, OOB is as WriteMsgUDP's, Addr a *net.UDPAddr or nil for the peer; N is set.
//     n < len(ms) without an error says that ms[n] is to be tried again, to learn why it failed. flags must be 0.
//   - Errors: as WriteMsgUDP's, only with n == 0, and about ms[0].
//   - Source: sendmmsg(2); WriteBatch of golang.org/x/net/ipv4, and ipv6, which has the same type.
func (c *Conn) WriteBatch(ms []ipv4.Message, flags int) (n int, err error) {
	if err := noFlags(flags); err != nil {
		return 0, c.opError("write", nil, err)
	}
	s := c.send.batches.Get().(*sender)
	defer c.send.batches.Put(s)
	for n < len(ms) {
		done, err := s.writeSome(ms[n:min(len(ms), n+batchMessages)])
		n += done
		if err == nil {
			continue
		}
		if n > 0 {
			return n, nil
		}
		return 0, c.opError("write", ms[0].Addr, err)
	}
	return n, nil
}

// writeSome sends messages as long as nothing is wrong with them. All of done are done with.
func (s *sender) writeSome(ms []ipv4.Message) (done int, err error) {
	defer s.release(len(ms))
	from := 0 // messages from here on are in the batch
	for i := range ms {
		m := &s.batch.Msgs[i-from]
		separate, wrong := s.compose(m, &ms[i])
		if wrong == nil && !separate {
			continue
		}
		// What is in the batch goes first.
		if sent, err := s.flush(i - from); err != nil {
			return from + sent, err
		}
		if separate {
			wrong = s.conn.send.separate(m)
		}
		if wrong != nil {
			return i, wrong
		}
		from = i + 1
	}
	sent, err := s.flush(len(ms) - from)
	return from + sent, err
}

func (s *sender) compose(to *sys.Message, m *ipv4.Message) (separate bool, err error) {
	addr, err := messageAddr(m.Addr)
	if err != nil {
		return false, err
	}
	payload := s.payload(m.Buffers)
	m.N = len(payload)
	return s.conn.compose(to, payload, m.OOB, addr)
}

// payload is the buffers as one.
func (s *sender) payload(buffers [][]byte) []byte {
	if len(buffers) == 1 {
		return buffers[0]
	}
	from := len(s.gathered)
	for _, b := range buffers {
		s.gathered = append(s.gathered, b...)
	}
	return s.gathered[from:len(s.gathered):len(s.gathered)]
}

func messageAddr(a net.Addr) (netip.AddrPort, error) {
	switch a := a.(type) {
	case nil:
		return netip.AddrPort{}, nil
	case *net.UDPAddr:
		return addrPort(a)
	}
	return netip.AddrPort{}, syscall.EINVAL
}
