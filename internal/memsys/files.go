package memsys

import (
	"slices"
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

// passed is descriptors on their way, with the bytes of a stream that they were written with.
type passed struct {
	from, to int // positions in the stream
	files    []*socket
}

// taken is the position of the next byte to read.
func (p *pipe) taken() int { return p.total - p.count }

func (k kernel) WriteFiles(fd int, v *sys.Vector, files []int) (int, error) {
	k.n.mu.Lock()
	defer k.n.mu.Unlock()
	k.n.calls.WriteFiles++
	s, err := k.n.streamAt(fd)
	if err != nil {
		return 0, err
	}
	if s.kind != sys.UnixStream || len(files) == 0 { // TCP passes over them
		return s.write(v)
	}
	sockets, err := k.n.copies(files)
	if err != nil {
		return 0, err
	}
	var from int
	if p := s.pipeOut(); p != nil {
		from = p.total
	}
	n, err := s.write(v)
	if err != nil {
		return 0, err
	}
	for _, f := range sockets {
		f.refs++
	}
	k.n.inFlight += len(sockets)
	p := s.pipeOut()
	p.files = append(p.files, passed{from, from + n, sockets})
	return n, nil
}

// copies finds what descriptors stand for.
func (n *Net) copies(files []int) ([]*socket, error) {
	if len(files) > sys.MaxFiles {
		return nil, syscall.EINVAL
	}
	sockets := make([]*socket, len(files))
	for i, fd := range files {
		s, err := n.socket(fd)
		if err != nil {
			return nil, err
		}
		sockets[i] = s
	}
	if n.maxOpen > 0 && n.inFlight > n.maxOpen {
		return nil, syscall.ETOOMANYREFS
	}
	return sockets, nil
}

func (k kernel) ReadFiles(fd int, b []byte, files *sys.Files) (int, error) {
	k.n.mu.Lock()
	defer k.n.mu.Unlock()
	k.n.calls.ReadFiles++
	files.FDs, files.Truncated = files.FDs[:0], false
	s, err := k.n.streamAt(fd)
	if err != nil {
		return 0, err
	}
	return s.read(b, files)
}

// beforeBarrier is how many of n bytes a read may take: none behind those that came with descriptors.
func (s *socket) beforeBarrier(n int) int {
	p := &s.stream.in
	if len(p.files) == 0 {
		return n
	}
	return min(n, p.files[0].to-p.taken())
}

// takeFiles hands out the descriptors of a message that was begun, and closes those for which there is no room.
func (s *socket) takeFiles(files *sys.Files) {
	p := &s.stream.in
	if len(p.files) == 0 || p.files[0].from >= p.taken() {
		return
	}
	first := p.files[0]
	p.files = slices.Delete(p.files, 0, 1)
	for _, f := range first.files {
		if files != nil && len(files.FDs) < files.Room() {
			if fd, err := s.net.enter(f); err == nil {
				files.FDs = append(files.FDs, fd)
				continue
			}
		}
		if files != nil {
			files.Truncated = true
		}
	}
	s.net.landed(first.files)
}

// landed ends the references of a message.
func (n *Net) landed(files []*socket) {
	n.inFlight -= len(files)
	for _, f := range files {
		f.refs--
		f.unref()
	}
}

// dropFiles closes the descriptors that nobody will read.
func (s *socket) dropFiles() {
	p := &s.stream.in
	files := p.files
	p.files = nil
	for _, m := range files {
		s.net.landed(m.files)
	}
}
