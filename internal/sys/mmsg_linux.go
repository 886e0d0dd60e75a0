//go:build linux

package sys

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// latch remembers that the system refuses a batched call: a seccomp filter may answer ENOSYS or EPERM to
// recvmmsg or sendmmsg and let recvmsg and sendmsg pass. But netfilter answers EPERM to a datagram that it
// drops, so that errno alone says nothing. A call for no descriptor tells: a filter answers it before the kernel
// finds out, which says EBADF.
type latch struct {
	off     atomic.Bool
	probed  atomic.Bool
	why     atomic.Uint32 // the errno of the batched call, once off
	refused atomic.Int64  // batched calls that were answered so
}

func (s *real) recv(fd int, hdrs []mmsghdr) (int, error) {
	if s.recvmmsg.off.Load() {
		if err := s.behind.take(fd); err != nil {
			return 0, err
		}
	}
	n, behind, err := s.recvmmsg.call(unix.SYS_RECVMMSG, unix.SYS_RECVMSG, fd, hdrs, unix.MSG_DONTWAIT)
	if behind != 0 && behind != unix.EAGAIN {
		s.behind.put(fd, behind)
	}
	return n, err
}

func (s *real) send(fd int, hdrs []mmsghdr) (int, error) {
	n, _, err := s.sendmmsg.call(unix.SYS_SENDMMSG, unix.SYS_SENDMSG, fd, hdrs, unix.MSG_DONTWAIT)
	return n, err
}

// call makes one batched call, or single ones where the batched one is refused, with the same contract.
// behind is the error that single calls met after the first message: sendmmsg forgets that, and recvmmsg
// leaves it with the socket.
func (l *latch) call(batched, single uintptr, fd int, hdrs []mmsghdr, flags int) (n int, behind unix.Errno, err error) {
	if l.off.Load() {
		return oneByOne(single, fd, hdrs, flags)
	}
	if !l.probed.Swap(true) && l.probe(batched) {
		return oneByOne(single, fd, hdrs, flags)
	}
	n, errno := rawCall(batched, fd, unsafe.Pointer(unsafe.SliceData(hdrs)), uintptr(len(hdrs)), uintptr(flags))
	if errno != unix.ENOSYS && errno != unix.EPERM {
		return n, 0, errOrNil(errno)
	}
	n, behind, err = oneByOne(single, fd, hdrs, flags)
	if err != errno {
		l.probe(batched) // the filter may be younger than the first probe
	}
	return n, behind, err
}

// probe tries the batched call on no descriptor, and turns it off if it is refused.
func (l *latch) probe(batched uintptr) (refused bool) {
	_, errno := rawCall(batched, -1, nil, 0, 0)
	if errno != unix.ENOSYS && errno != unix.EPERM {
		return false
	}
	l.refused.Add(1)
	l.turnOff(errno)
	return true
}

func (l *latch) turnOff(why unix.Errno) {
	l.why.Store(uint32(why))
	l.off.Store(true)
}

// reason is nil while batched calls are made.
func (l *latch) reason() error {
	if l.off.Load() {
		return unix.Errno(l.why.Load())
	}
	return nil
}

func (s *real) Unbatched() (recv, send error) { return s.recvmmsg.reason(), s.sendmmsg.reason() }

// oneByOne goes through the headers until one fails.
func oneByOne(trap uintptr, fd int, hdrs []mmsghdr, flags int) (n int, behind unix.Errno, err error) {
	for i := range hdrs {
		size, errno := rawCall(trap, fd, unsafe.Pointer(&hdrs[i].hdr), uintptr(flags), 0)
		switch {
		case errno != 0 && i == 0:
			return 0, 0, errno
		case errno != 0:
			return i, errno, nil
		}
		hdrs[i].len = uint32(size)
	}
	return len(hdrs), 0, nil
}

// rawCall is a RawSyscall: the call does not block (MSG_DONTWAIT, as who shares the socket may have made it
// blocking for all), and telling the scheduler costs more than the
// short wait that a stop of the world may have for it (docs/adr/0005).
func rawCall(trap uintptr, fd int, hdr unsafe.Pointer, third, fourth uintptr) (int, unix.Errno) {
	for {
		r, _, errno := unix.RawSyscall6(trap, uintptr(fd), uintptr(hdr), third, fourth, 0, 0)
		switch errno {
		case 0:
			return int(r), 0
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}

func errOrNil(errno unix.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}

// errorsBehind are those that a receive by single calls met after its first datagram, by descriptor: the next
// receive answers them.
type errorsBehind struct {
	mu     sync.Mutex
	errnos map[int]unix.Errno
}

func (e *errorsBehind) put(fd int, errno unix.Errno) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.errnos == nil {
		e.errnos = make(map[int]unix.Errno)
	}
	e.errnos[fd] = errno
}

func (e *errorsBehind) take(fd int) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	errno := e.errnos[fd]
	delete(e.errnos, fd)
	return errOrNil(errno)
}
