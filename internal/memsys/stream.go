package memsys

import (
	"syscall"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
)

// stream is what a TCP or UnixStream socket is besides its names. Errors that wait are socket.pending.
type stream struct {
	state    state
	step     step // TCP only
	listener listener

	in    pipe
	other *socket // at the other end. TCP: nil once that is closed. UnixStream: it may be closed

	// The reader has the end of the stream, and what is written answers EPIPE. TCP sets the former only where
	// both directions are over at once; else the end is in the pipe.
	readOver, writeOver bool

	ended     bool // UnixStream: the last descriptor is closed
	written   int  // bytes in all
	mostBytes int  // LimitWrites
}

// state is Linux's sk_state, as far as it matters.
type state uint8

const (
	idle      state = iota // TCP_CLOSE: new, or after a Connect that dissolved
	waiting                // TCP_SYN_SENT
	listening              // TCP_LISTEN
	connected              // TCP_ESTABLISHED and all that begins to end
	over                   // TCP_CLOSE: refused or reset
)

// step is what the last Connect has told, Linux's socket->state.
type step uint8

const (
	unasked step = iota // SS_UNCONNECTED
	asked               // SS_CONNECTING: the next Connect tells how it went
	told                // SS_CONNECTED
	leaving             // SS_DISCONNECTING
)

// streamAt finds a socket of the kinds that have streams.
func (n *Net) streamAt(fd int) (*socket, error) { return n.socketOf(fd, sys.TCP, sys.UnixStream) }

func (s *socket) listening() bool { return s.stream != nil && s.stream.state == listening }

// readEnded tells whether all is received, the end included.
func (s *socket) readEnded() bool { return s.stream.readOver || s.stream.in.over() }

// established tells of a TCP socket whether there is a connection: until both ends have the other's FIN.
func (s *socket) established() bool {
	st := s.stream
	if st.state != connected {
		return false
	}
	delivered := st.writeOver && (st.other == nil || st.other.stream.in.over())
	return !delivered || !st.in.over()
}

func (s *socket) streamReadiness() (r poll.Ready) {
	st := s.stream
	if st.state == listening {
		if len(st.listener.queue) > 0 {
			r |= poll.Readable
		}
		return r
	}
	if s.pending != 0 {
		r |= poll.Failed
	}
	if st.state == waiting {
		return r
	}
	ended := s.readEnded()
	if ended && st.writeOver || st.state != connected {
		r |= poll.HungUp
	}
	if ended || st.in.received > 0 {
		r |= poll.Readable
	}
	if s.writable() {
		r |= poll.Writable
	}
	return r
}

func (k kernel) Read(fd int, b []byte) (int, error) {
	k.n.mu.Lock()
	defer k.n.mu.Unlock()
	k.n.calls.Read++
	s, err := k.n.streamAt(fd)
	if err != nil {
		return 0, err
	}
	return s.read(b, nil)
}

// read takes bytes, and descriptors into files; where that is nil, they are closed.
func (s *socket) read(b []byte, files *sys.Files) (int, error) {
	st := s.stream
	if s.kind == sys.UnixStream && st.state != connected {
		return 0, syscall.EINVAL
	}
	if st.in.received == 0 {
		return 0, s.readNothing()
	}
	n := st.in.read(b[:s.beforeBarrier(len(b))])
	s.takeFiles(files)
	if s.kind == sys.TCP {
		st.in.advance(s.window())
	}
	if other := st.other; other != nil {
		other.notify()
	}
	s.notify() // the end may have come behind the bytes
	return n, nil
}

// readNothing is why there is nothing to read: nil at the end of the stream. Linux looks for an error before it
// looks for the end, but not where the end came as a FIN.
func (s *socket) readNothing() error {
	st := s.stream
	switch {
	case st.state == listening:
		return syscall.ENOTCONN
	case st.in.over():
		return nil
	case s.pending != 0:
		return s.takePending()
	case st.readOver:
		return nil
	case st.state == idle, st.state == over:
		return syscall.ENOTCONN
	}
	return syscall.EAGAIN
}

// window is how much a TCP socket receives before it is read: half of its buffer, as Linux keeps the other half
// for what it charges besides.
func (s *socket) window() int { return s.recvLimit / 2 }
