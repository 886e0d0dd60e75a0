package memsys

import (
	"math/bits"
	"slices"
	"syscall"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
)

// maxGrams is how many datagrams wait for a socket: net.unix.max_dgram_qlen, and one more.
const maxGrams = 10 + 1

// gram is what a Unixgram socket is besides its name.
type gram struct {
	peer      *socket
	watchers  []*socket // those whose peer this socket is
	queue     []letter
	charged   int // what it sent and others have not read
	writeOver bool
	ended     bool // the last descriptor is closed
}

// letter is a unix datagram.
type letter struct {
	from   *socket
	buf    []byte
	charge int
}

// hears tells whether from may send to the socket: anybody, or the peer alone.
func (s *socket) hears(from *socket) bool { return s.gram.peer == nil || s.gram.peer == from }

// crowded tells whether the socket takes nothing more of from. A peer is bounded by its own buffer alone.
func (s *socket) crowded(from *socket) bool {
	return s != from && s.gram.peer != from && len(s.gram.queue) >= maxGrams
}

func (s *socket) gramReadiness() (r poll.Ready) {
	g := s.gram
	if s.pending != 0 {
		r |= poll.Failed
	}
	if len(g.queue) > 0 {
		r |= poll.Readable
	}
	if !s.blocked && 4*g.charged <= s.sendLimit && (g.peer == nil || !g.peer.crowded(s)) {
		r |= poll.Writable
	}
	return r
}

// associate changes the peer. What is in the queue is lost where there was another, and that hears of it.
func (s *socket) associate(to *socket) {
	old := s.gram.peer
	if old == to {
		return
	}
	s.setPeer(to)
	if old != nil {
		s.disconnected(old)
	}
	s.notify()
}

func (s *socket) setPeer(to *socket) {
	if old := s.gram.peer; old != nil {
		old.gram.watchers = slices.DeleteFunc(old.gram.watchers, func(x *socket) bool { return x == s })
	}
	s.gram.peer = to
	if to != nil {
		to.gram.watchers = append(to.gram.watchers, s)
	}
}

// disconnected drops what waits in the queue; an old peer whose peer this still is, is told.
func (s *socket) disconnected(old *socket) {
	if len(s.gram.queue) == 0 {
		return
	}
	s.dropLetters()
	if !old.gram.ended && old.gram.peer == s {
		old.pending = syscall.ECONNRESET
		old.notify()
	}
}

func (s *socket) dropLetters() {
	for len(s.gram.queue) > 0 {
		s.net.buffers.put(s.takeLetter().buf)
	}
}

// takeLetter takes the first one, and gives its sender its room back.
func (s *socket) takeLetter() letter {
	g := s.gram
	first := g.queue[0]
	crowded := len(g.queue) >= maxGrams
	g.queue = slices.Delete(g.queue, 0, 1)
	first.from.gram.charged -= first.charge
	first.from.notify()
	if crowded {
		for _, w := range g.watchers {
			w.notify()
		}
	}
	return first
}

func (k kernel) SendUnix(fd int, b []byte, to string) error {
	k.n.mu.Lock()
	defer k.n.mu.Unlock()
	k.n.calls.SendUnix++
	s, err := k.n.socketOf(fd, sys.Unixgram)
	if err != nil {
		return err
	}
	return s.sendUnix(b, to)
}

func (s *socket) sendUnix(b []byte, name string) error {
	g := s.gram
	to := g.peer
	switch {
	case name == "" && to == nil:
		return syscall.ENOTCONN
	case len(b) > s.sendLimit-32:
		return syscall.EMSGSIZE
	case s.pending != 0:
		return s.takePending()
	case g.writeOver:
		return syscall.EPIPE
	case s.blocked, g.charged >= s.sendLimit:
		return syscall.EAGAIN
	}
	if name != "" {
		var err error
		if to, err = s.net.unixNamed(name, sys.Unixgram); err != nil {
			return err
		}
	}
	switch {
	case to.gram.ended:
		s.setPeer(nil)
		s.disconnected(to)
		s.notify()
		return syscall.ECONNREFUSED
	case !to.hears(s):
		return syscall.EPERM
	case to.crowded(s):
		return syscall.EAGAIN
	}
	charge := letterCharge(len(b))
	g.charged += charge
	l := letter{from: s, buf: s.net.buffers.get(len(b)), charge: charge}
	copy(l.buf, b)
	to.gram.queue = append(to.gram.queue, l)
	to.notify()
	return nil
}

// What Linux charges a send buffer for a unix datagram, read on 6.18 (amd64): the sk_buff, a head of at least 512
// bytes and a power of two that holds the shared info besides the payload, and pages for what no head takes.
const (
	letterOverhead = 320
	leastHead      = 512
	mostHead       = 16384
	pageBytes      = 4096
)

func letterCharge(size int) int {
	head := size + letterOverhead
	if head <= mostHead {
		return skbBytes + max(leastHead, 1<<bits.Len(uint(head-1)))
	}
	pages := (head - mostHead + pageBytes - 1) / pageBytes
	return skbBytes + mostHead + pages*pageBytes
}

func (k kernel) RecvUnix(fd int, b []byte) (int, string, sys.Flags, error) {
	k.n.mu.Lock()
	defer k.n.mu.Unlock()
	k.n.calls.RecvUnix++
	s, err := k.n.socketOf(fd, sys.Unixgram)
	if err != nil {
		return 0, "", 0, err
	}
	if err := s.takePending(); err != nil {
		return 0, "", 0, err
	}
	if len(s.gram.queue) == 0 {
		return 0, "", 0, syscall.EAGAIN
	}
	l := s.takeLetter()
	n := copy(b, l.buf)
	k.n.buffers.put(l.buf)
	var flags sys.Flags
	if n < len(l.buf) {
		flags = sys.Truncated
	}
	return n, l.from.name, flags, nil
}

// endGram is the last close. Those whose peer it was learn of it when they send.
func (s *socket) endGram() {
	s.endName()
	s.gram.ended = true
	s.dropLetters()
	s.setPeer(nil)
	for _, w := range s.gram.watchers {
		w.notify()
	}
}
