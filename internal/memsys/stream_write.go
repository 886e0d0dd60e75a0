package memsys

import (
	"errors"
	"io"
	"os"
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

func (k kernel) Write(fd int, v *sys.Vector, _ bool) (int, error) {
	k.n.mu.Lock()
	defer k.n.mu.Unlock()
	k.n.calls.Write++
	s, err := k.n.streamAt(fd)
	if err != nil {
		return 0, err
	}
	return s.write(v)
}

func (s *socket) write(v *sys.Vector) (n int, err error) {
	room, err := s.mayWrite()
	if err != nil {
		return 0, err
	}
	to := s.pipeOut()
	for _, b := range v.Bufs {
		b = b[:min(len(b), room-n)]
		if to != nil {
			to.write(b)
		}
		n += len(b)
	}
	if n > 0 {
		s.wrote(n)
	}
	return n, nil
}

// mayWrite tells how many bytes there is room for, at least one, or why none may be written.
func (s *socket) mayWrite() (room int, err error) {
	st := s.stream
	switch {
	case s.kind == sys.UnixStream && st.state != connected:
		return 0, syscall.ENOTCONN
	case s.kind == sys.UnixStream && st.writeOver:
		return 0, syscall.EPIPE
	case s.pending != 0:
		return 0, s.takePending()
	case st.state == waiting:
		return 0, syscall.EAGAIN
	case st.state != connected, st.writeOver:
		return 0, syscall.EPIPE
	case s.blocked:
		return 0, syscall.EAGAIN
	}
	if room = s.room(); room <= 0 {
		return 0, syscall.EAGAIN
	}
	if st.mostBytes > 0 {
		room = min(room, st.mostBytes)
	}
	return room, nil
}

// pipeOut is where written bytes go, nil where nobody is there any more.
func (s *socket) pipeOut() *pipe {
	if s.stream.other == nil {
		return nil
	}
	return &s.stream.other.stream.in
}

// room is how many bytes both buffers take: of TCP the receiver's and the sender's, of a unix socket the
// sender's alone.
func (s *socket) room() int {
	p := s.pipeOut()
	switch {
	case p == nil:
		return s.sendLimit
	case s.kind == sys.UnixStream:
		return s.sendLimit - p.count
	}
	unsent := p.count - p.received
	most := s.sendLimit
	if low := s.options[sys.NotSentLowAt]; low > 0 {
		most = min(most, low)
	}
	if unsent >= most {
		return 0
	}
	return most - unsent + max(s.stream.other.window()-p.received, 0)
}

// writable is what EPOLLOUT follows: not any room, so that a writer is not woken for each few bytes. TCP wants a third
// of the buffer free, and less than half of NotSentLowAt unsent; a unix socket three quarters.
func (s *socket) writable() bool {
	st, p := s.stream, s.pipeOut()
	switch {
	case s.kind == sys.TCP && (st.writeOver || st.state != connected):
		return true
	case s.blocked:
		return false
	case p == nil:
		return true
	case s.kind == sys.UnixStream:
		return 4*p.count <= s.sendLimit
	}
	unsent := p.count - p.received
	low := s.options[sys.NotSentLowAt]
	return 3*unsent <= 2*s.sendLimit && (low <= 0 || 2*unsent < low)
}

// wrote has the receiver know of n bytes. A TCP peer that is closed answers with a reset, which is here before
// the call that wrote returns.
func (s *socket) wrote(n int) {
	st := s.stream
	st.written += n
	switch {
	case st.other == nil:
		s.reset(s.resetError())
		return
	case s.kind == sys.TCP:
		st.other.stream.in.advance(st.other.window())
		st.other.arrive()
	default:
		p := &st.other.stream.in
		p.received = p.count
	}
	st.other.notify()
}

// SendFile reads at most once for each part of the ring, straight into it.
func (k kernel) SendFile(fd int, f *os.File, offset int64, n int, _ bool) (int, error) {
	k.n.mu.Lock()
	defer k.n.mu.Unlock()
	k.n.calls.SendFile++
	s, err := k.n.streamAt(fd)
	if err != nil {
		return 0, err
	}
	if offset < 0 {
		return 0, syscall.EINVAL
	}
	pending := s.pending
	room, err := s.mayWrite()
	if err != nil { // sendfile(2) reads first: at the end of the file it does not see the socket
		var probe [1]byte
		if _, end := f.ReadAt(probe[:], offset); end == io.EOF {
			s.pending = pending
			return 0, nil
		}
		return 0, err
	}
	return s.sendFile(f, offset, min(n, room))
}

func (s *socket) sendFile(f *os.File, offset int64, n int) (sent int, err error) {
	to := s.pipeOut()
	if to == nil {
		to = &pipe{}
	}
	for sent < n && err == nil {
		var got int
		got, err = f.ReadAt(to.free(n-sent), offset+int64(sent))
		to.put(got)
		sent += got
	}
	if sent > 0 {
		s.wrote(sent)
		return sent, nil
	}
	return 0, fileError(err)
}

// fileError is an error of the os package as sendfile(2) tells it.
func fileError(err error) error {
	var errno syscall.Errno
	switch {
	case err == nil, err == io.EOF:
		return nil
	case errors.Is(err, os.ErrClosed):
		return syscall.EBADF
	case errors.As(err, &errno) && errno != syscall.ESPIPE && errno != syscall.EISDIR:
		return errno
	}
	return syscall.EINVAL // no file that has pages
}

func (k kernel) CloseWrite(fd int) error {
	k.n.mu.Lock()
	defer k.n.mu.Unlock()
	k.n.calls.CloseWrite++
	s, err := k.n.socket(fd)
	switch {
	case err != nil:
		return err
	case s.gram != nil:
		s.gram.writeOver = true
		s.notify()
		return nil
	case s.stream == nil:
		if !s.connected() {
			return syscall.ENOTCONN
		}
		return nil
	case s.kind == sys.UnixStream:
		s.closeWriteUnix()
		return nil
	}
	return s.closeWriteTCP()
}

func (s *socket) closeWriteTCP() error {
	st := s.stream
	if st.step == asked {
		st.step = told
		if st.state != connected {
			st.step = leaving
		}
	}
	switch {
	case st.state == listening:
		return nil
	case st.state == waiting:
		s.disconnect()
		st.step = unasked
		return nil
	case !s.established():
		return syscall.ENOTCONN
	case st.writeOver:
		return nil
	}
	st.writeOver = true
	if other := st.other; other != nil {
		other.stream.in.ended = true
		other.arrive()
		other.notify()
	}
	s.notify()
	return nil
}

func (s *socket) closeWriteUnix() {
	st := s.stream
	if st.state == listening {
		return
	}
	st.writeOver = true
	if st.state == connected {
		st.other.stream.readOver = true
		st.other.notify()
	}
	s.notify()
}
