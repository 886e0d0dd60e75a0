// Package memsys is a kernel and its pollers in memory.
//
// A [Net] is a small network on one machine: every descriptor made on it sees the same addresses and
// ports, so that several loops can talk. It answers as Linux does, errno for errno (the suite in
// internal/sys/systest runs on both), and it is exact: a datagram is with its receiver when Send
// returns, and bytes are when Write does; a connection is in its listener's queue when Connect returns; ports are
// given out in order, and nothing depends on speed.
//
// The network's addresses are 127.0.0.0/8, ::1, and those that AddAddr named; whatever else is sent to
// is unreachable. The broadcast addresses are 255.255.255.255 and 127.255.255.255.
//
// Wait blocks on a channel and a timer only, and nothing here has a goroutine of its own, so a loop
// over it can run in a testing/synctest bubble. Pollers belong to the bubble that made them.
//
// There is one interface, number 1, "lo"; AddInterface and the zones that AddAddr names add others. Unicast
// arrives by lo, but for link-local addresses, which are on their zone's interface; multicast arrives by the
// interface that it is sent on, which is lo where nobody names one. What leaves by an interface on which its
// destination is not, is gone.
//
// Limits: every interface carries multicast, no datagram is really fragmented, and a receive buffer is given
// back at once where Linux may keep a part for a while. Buffers of streams hold bytes, not what Linux charges
// for them. TCP has neither TIME_WAIT nor timeouts: DeferAccept waits for ever. A unix socket's path is a name in
// the network alone, and every directory exists.
package memsys

import (
	"net/netip"
	"slices"
	"sync"
	"syscall"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
)

// Net is a network in memory. All of its methods may be called from any goroutine.
type Net struct {
	mu       sync.Mutex // guards all that hangs off a Net; held while a batch is copied, never for a wait
	table    []*socket  // by descriptor less firstFD; nil where free, and the same twice for a duplicate
	lowest   int        // no entry of table before this is free
	cookies  uint64     // the last one given to a socket
	udp, tcp *ports
	unix     map[string]*socket // unix sockets by name; nil where the socket of a path is closed
	inFlight int                // descriptors in messages
	opened   int                // descriptors
	maxOpen  int                // SetMaxDescriptors; 0: none
	addrs    map[netip.Addr]bool
	ifaces   map[int]string // names by number
	mtu      int
	groups   map[groupOn][]*membership
	buffers  buffers
	calls    Calls
}

// firstFD leaves out what is standard input, output and error elsewhere.
const firstFD = 3

// New makes a network without sockets.
func New() *Net {
	return &Net{
		udp:    newPorts(),
		tcp:    newPorts(),
		unix:   make(map[string]*socket),
		addrs:  make(map[netip.Addr]bool),
		ifaces: map[int]string{loopback: "lo"},
		mtu:    loopbackMTU,
		groups: make(map[groupOn][]*membership),
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
	addr = wireAddr(addr)
	n.addrs[addr] = true
	if i := ifaceOf(addr); n.ifaces[i] == "" {
		n.ifaces[i] = "if" + addr.Zone()
	}
}

// BlockSends makes what sends or writes on fd answer EAGAIN, and fd not Writable, until it is called with
// false: a full send buffer, which datagrams in memory never meet.
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

// socketOf is socket for calls of some kinds only.
func (n *Net) socketOf(fd int, kinds ...sys.Kind) (*socket, error) {
	s, err := n.socket(fd)
	if err == nil && !slices.Contains(kinds, s.kind) {
		return nil, syscall.EOPNOTSUPP
	}
	return s, err
}

// enter gives a socket the lowest free descriptor, as systems do: a caller that uses a number after its
// close meets a stranger's socket here too.
//
//   - Errors: EMFILE.
func (n *Net) enter(s *socket) (int, error) {
	if n.full() {
		return -1, syscall.EMFILE
	}
	i := n.lowest
	for i < len(n.table) && n.table[i] != nil {
		i++
	}
	if i == len(n.table) {
		n.table = append(n.table, nil)
	}
	s.refs++
	n.opened++
	n.table[i] = s
	n.lowest = i + 1
	return firstFD + i, nil
}

func (n *Net) free(fd int) {
	i := fd - firstFD
	n.table[i].refs--
	n.opened--
	n.table[i] = nil
	n.lowest = min(n.lowest, i)
}
