//go:build linux

package poll

import (
	"encoding/binary"
	"errors"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weirnet/weir/internal/cycles"
	"github.com/weirnet/weir/internal/sys"
)

// Native is this machine's backend: its kernel, with epoll.
func Native() Backend { return Backend{Kernel: sys.New(), NewPoller: newEpoll, RealTime: cycles.Known} }

// NativeSingle is Native without batched calls.
func NativeSingle() Backend {
	return Backend{Kernel: sys.NewSingle(), NewPoller: newEpoll, RealTime: cycles.Known}
}

// epoll is level-triggered for everything but its own wake-up descriptor, which is edge-triggered and
// never read: each write is an edge, and a read per wake is saved.
type epoll struct {
	fd        int
	wake      int
	noPwait2  bool // loop only; epoll_pwait2 is missing or refused (Linux before 5.11, old seccomp profiles)
	rawEvents []unix.EpollEvent
}

// wakeToken marks the wake-up descriptor; callers' tokens carry a slot number, which never gets there.
const wakeToken = ^uint64(0)

func newEpoll() (Poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	p := &epoll{fd: fd, wake: wake}
	if err := p.control(unix.EPOLL_CTL_ADD, wake, unix.EPOLLIN|unix.EPOLLET, wakeToken); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *epoll) Add(fd int, want Interest, token uint64) error {
	return p.control(unix.EPOLL_CTL_ADD, fd, eventBits(want), token)
}

func (p *epoll) Modify(fd int, want Interest, token uint64) error {
	return p.control(unix.EPOLL_CTL_MOD, fd, eventBits(want), token)
}

func (p *epoll) Remove(fd int) error {
	return p.control(unix.EPOLL_CTL_DEL, fd, 0, 0)
}

func (p *epoll) control(op, fd int, bits uint32, token uint64) error {
	ev := unix.EpollEvent{Events: bits}
	putToken(&ev, token)
	return unix.EpollCtl(p.fd, op, fd, &ev)
}

func (p *epoll) Wait(events []Event, timeout time.Duration) (int, error) {
	if len(p.rawEvents) < len(events) {
		p.rawEvents = make([]unix.EpollEvent, len(events))
	}
	n, err := p.wait(p.rawEvents[:len(events)], timeout)
	if err != nil {
		return 0, err
	}
	kept := 0
	for i := range n {
		raw := &p.rawEvents[i]
		if token := getToken(raw); token != wakeToken {
			events[kept] = Event{Token: token, Ready: readiness(raw.Events)}
			kept++
		}
	}
	return kept, nil
}

// wait goes on after a signal with what is left of the timeout: the runtime sends signals to pre-empt
// goroutines, so they are nothing special.
func (p *epoll) wait(raw []unix.EpollEvent, timeout time.Duration) (int, error) {
	var deadline time.Time
	if timeout > 0 {
		deadline = time.Now().Add(timeout)
	}
	for {
		n, err := p.waitOnce(raw, timeout)
		if err != unix.EINTR {
			return n, err
		}
		if timeout > 0 {
			timeout = max(time.Until(deadline), 0)
		}
	}
}

func (p *epoll) waitOnce(raw []unix.EpollEvent, timeout time.Duration) (int, error) {
	switch {
	case timeout == 0:
		return epollNow(p.fd, raw)
	case timeout < 0:
		return unix.EpollWait(p.fd, raw, -1)
	case p.noPwait2:
		return unix.EpollWait(p.fd, raw, wholeMillis(timeout))
	}
	n, err := epollPwait2(p.fd, raw, timeout)
	switch err {
	case unix.ENOSYS, unix.EPERM, unix.EOPNOTSUPP, unix.EACCES:
		p.noPwait2 = true
		return unix.EpollWait(p.fd, raw, wholeMillis(timeout))
	}
	return n, err
}

// epollNow does not wait, so the scheduler need not hear of it.
func epollNow(fd int, raw []unix.EpollEvent) (int, error) {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(raw))), uintptr(len(raw)), 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

func epollPwait2(fd int, raw []unix.EpollEvent, timeout time.Duration) (int, error) {
	ts := kernelTimespec{sec: int64(timeout / time.Second), nsec: int64(timeout % time.Second)}
	n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(raw))), uintptr(len(raw)), uintptr(unsafe.Pointer(&ts)), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// kernelTimespec is struct __kernel_timespec: 64 bits on every architecture, unlike timespec.
type kernelTimespec struct{ sec, nsec int64 }

// wholeMillis rounds up, so that a timer is never early, and keeps to what epoll_wait can take.
func wholeMillis(d time.Duration) int {
	ms := d / time.Millisecond
	if d%time.Millisecond != 0 {
		ms++
	}
	return int(min(ms, 1<<31-1))
}

// Wake adds one to the wake-up descriptor. At its largest value a write would block: the count is
// taken out, and the write made again.
func (p *epoll) Wake() error {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	for {
		_, err := unix.Write(p.wake, one[:])
		switch err {
		case syscall.EINTR:
		case syscall.EAGAIN:
			_, _ = unix.Read(p.wake, one[:])
			binary.NativeEndian.PutUint64(one[:], 1)
		default:
			return err
		}
	}
}

func (p *epoll) Close() error {
	return errors.Join(unix.Close(p.wake), unix.Close(p.fd))
}

// eventBits never asks for EPOLLRDHUP: it cannot be masked once a peer has half-closed, and spins.
func eventBits(want Interest) (bits uint32) {
	if want&Read != 0 {
		bits |= unix.EPOLLIN
	}
	if want&Write != 0 {
		bits |= unix.EPOLLOUT
	}
	return bits
}

func readiness(bits uint32) (r Ready) {
	if bits&unix.EPOLLIN != 0 {
		r |= Readable
	}
	if bits&unix.EPOLLOUT != 0 {
		r |= Writable
	}
	if bits&unix.EPOLLERR != 0 {
		r |= Failed
	}
	if bits&unix.EPOLLHUP != 0 {
		r |= HungUp
	}
	return r
}

// The token takes epoll_data's 64 bits, which x/sys names Fd and Pad.
func putToken(ev *unix.EpollEvent, token uint64) {
	ev.Fd, ev.Pad = int32(token), int32(token>>32)
}

func getToken(ev *unix.EpollEvent) uint64 {
	return uint64(uint32(ev.Fd)) | uint64(uint32(ev.Pad))<<32
}
