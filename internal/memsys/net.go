// Package memsys is a kernel and its pollers in memory.
//
// A [Net] is a small network on one machine: every descriptor made on it sees the same addresses and
// ports, so that several loops can talk. It answers as Linux does, errno for errno (the suite in
// internal/sys/systest runs on both), and it is exact: a datagram is with its receiver when Send
// returns, ports are given out in order, and nothing depends on speed.
//
// The network's addresses are 127.0.0.0/8, ::1, and those that AddAddr named; whatever else is sent to
// is unreachable. The broadcast addresses are 255.255.255.255 and 127.255.255.255.
//
// Wait blocks on a channel and a timer only, and nothing here has a goroutine of its own, so a loop
// over it can run in a testing/synctest bubble. Pollers belong to the bubble that made them.
//
// Limits: no multicast, no interfaces (a zone is part of a link-local address and no more), no
// fragmentation, and a receive buffer is given back at once where Linux may keep a part for a while.
package memsys

import (
	"net/netip"
	"sync"
	"syscall"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
)

// Net is a network in memory. All of its methods may be called from any goroutine.
type Net struct {
	mu       sync.Mutex // guards all that hangs off a Net; held while a batch is copied, never for a wait
	table    []*socket  // by descriptor less firstFD; nil where free
	lowest   int        // no entry of table before this is free
	ports    map[uint16][]*socket
	nextPort uint16
	addrs    map[netip.Addr]bool
	buffers  buffers
	calls    Calls
}

// firstFD leaves out what is standard input, output and error elsewhere.
const firstFD = 3

// New makes a network without sockets.
func New() *Net {
	return &Net{
		ports:    make(map[uint16][]*socket),
		nextPort: firstEphemeral,
		addrs:    make(map[netip.Addr]bool),
	}
}

// Backend gives a loop the network's kernel and pollers. Its descriptors are good on this Net only.
func (n *Net) Backend() poll.Backend {
	return poll.Backend{Kernel: kernel{n}, NewPoller: n.newPoller}
}

// AddAddr makes addr one of the network's own. A link-local address carries its zone as a number.
func (n *Net) AddAddr(addr netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addrs[wireAddr(addr)] = true
}

// BlockSends makes Send on fd answer EAGAIN, and fd not Writable, until it is called with false: the
// full send buffer that a network in memory never has.
func (n *Net) BlockSends(fd int, on bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	s, err := n.socket(fd)
	if err != nil {
		return err
	}
	s.blocked = on
	s.notify()
	return nil
}

func (n *Net) socket(fd int) (*socket, error) {
	i := fd - firstFD
	if i < 0 || i >= len(n.table) || n.table[i] == nil {
		return nil, syscall.EBADF
	}
	return n.table[i], nil
}

// open gives a socket the lowest free descriptor, as systems do: a caller that uses a number after its
// close meets a stranger's socket here too.
func (n *Net) open(family sys.Family) *socket {
	i := n.lowest
	for i < len(n.table) && n.table[i] != nil {
		i++
	}
	if i == len(n.table) {
		n.table = append(n.table, nil)
	}
	s := newSocket(n, family)
	s.fd = firstFD + i
	n.table[i] = s
	n.lowest = i + 1
	return s
}

func (n *Net) free(fd int) {
	i := fd - firstFD
	n.table[i] = nil
	n.lowest = min(n.lowest, i)
}
