//go:build linux

package weir

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// closeFD closes a descriptor when the test is over.
func closeFD(t *testing.T, fds ...int) {
	t.Cleanup(func() {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
	})
}

func openPipe(t *testing.T) (r, w int) {
	t.Helper()
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	closeFD(t, fds[:]...)
	return fds[0], fds[1]
}

// openings make descriptors of the kinds that a Watch is for, and something to read.
func openings(t *testing.T) map[string]func() (fd int, poke func() error) {
	dir := t.TempDir()
	one := binary.NativeEndian.AppendUint64(nil, 1)
	return map[string]func() (int, func() error){
		"pipe": func() (int, func() error) {
			r, w := openPipe(t)
			return r, func() error { _, err := unix.Write(w, one); return err }
		},
		"eventfd": func() (int, func() error) {
			fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
			if err != nil {
				t.Skip(err)
			}
			return fd, func() error { _, err := unix.Write(fd, one); return err }
		},
		"inotify": func() (int, func() error) {
			fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
			if err == nil {
				_, err = unix.InotifyAddWatch(fd, dir, unix.IN_CREATE)
			}
			if err != nil {
				t.Skip(err)
			}
			return fd, func() error { return os.WriteFile(filepath.Join(dir, "new"), nil, 0o600) }
		},
		"netlink": func() (int, func() error) {
			fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
			if err != nil {
				t.Skip(err)
			}
			if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
				closeFD(t, fd)
				t.Skip(err)
			}
			return fd, func() error { return unix.Sendto(fd, linksAsked(), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}) }
		},
	}
}

// linksAsked is RTM_GETLINK for all interfaces (rtnetlink(7)).
func linksAsked() []byte {
	b := binary.NativeEndian.AppendUint32(nil, unix.NLMSG_HDRLEN+unix.SizeofRtGenmsg)
	b = binary.NativeEndian.AppendUint16(b, unix.RTM_GETLINK)
	b = binary.NativeEndian.AppendUint16(b, unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	b = binary.NativeEndian.AppendUint32(b, 1)
	b = binary.NativeEndian.AppendUint32(b, 0)
	return append(b, unix.AF_UNSPEC)
}

func TestWatchKinds(t *testing.T) {
	for name, open := range openings(t) {
		t.Run(name, func(t *testing.T) {
			l := newLoop(t, Config{})
			fd, poke := open()
			closeFD(t, fd)
			got := 0
			watchFD(t, l, fd, WatchHandler{
				OnReadable: func(w *Watch) {
					n, err := unix.Read(w.FD(), make([]byte, 1<<16))
					if err != nil {
						t.Error(err)
					}
					got += n
					_ = w.Close()
				},
				OnClose: func(*Watch, error) { _ = l.Close() },
			})
			l.AfterFunc(time.Millisecond, func() {
				if got != 0 {
					t.Error("it was readable before")
				}
				if err := poke(); err != nil {
					t.Error(err)
				}
			})
			run(t, l)
			if got == 0 {
				t.Error("nothing was read")
			}
		})
	}
}

// "EPERM for what is always ready (a regular file, a directory)".
func TestWatchFiles(t *testing.T) {
	l := newLoop(t, Config{})
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{name, dir} {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		closeFD(t, fd)
		if w, err := l.Watch(fd, WatchHandler{OnReadable: func(*Watch) {}}); w != nil || !errors.Is(err, syscall.EPERM) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// The end of a pipe costs a watch that is paused, or wants nothing to begin with, no turn. Resumed, it hears of it.
func TestWatchHangsUp(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(r, w int) (watched, closed int)
	}{
		{"the writer", func(r, w int) (int, int) { return r, w }},
		{"the reader", func(r, w int) (int, int) { return w, r }},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLoop(t, Config{})
			var fds [2]int
			if err := unix.Pipe2(fds[:], unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
				t.Fatal(err)
			}
			fd, other := c.end(fds[0], fds[1])
			closeFD(t, fd)
			calls := 0
			h := WatchHandler{OnClose: func(*Watch, error) { _ = l.Close() }}
			resume := (*Watch).Resume
			onReady := func(w *Watch) {
				calls++
				_ = w.Close()
			}
			if fd == fds[0] {
				h.OnReadable = onReady
			} else {
				h.OnWritable = onReady
				resume = func(w *Watch) { w.WantWritable(true) }
			}
			w := watchFD(t, l, fd, h)
			w.Pause()
			_ = unix.Close(other)
			began := uint64(0)
			l.AfterFunc(10*time.Millisecond, func() { began = l.Turn() })
			l.AfterFunc(40*time.Millisecond, func() {
				if d := l.Turn() - began; d > 3 || calls > 0 {
					t.Errorf("%d turns and %d calls while nothing was wanted", d, calls)
				}
				resume(w)
			})
			run(t, l)
			if calls != 1 {
				t.Errorf("%d calls", calls)
			}
		})
	}
}

// A pipe that is written without an end leaves a timer and a socket their visits.
func TestWatchFlood(t *testing.T) {
	l := newLoop(t, Config{})
	r, w := openPipe(t)
	page := make([]byte, 4096)
	reads, ticks, echoes := 0, 0, 0
	watchFD(t, l, r, WatchHandler{OnReadable: func(*Watch) {
		reads++
		_, _ = unix.Write(w, page)
		_, _ = unix.Read(r, page)
		_, _ = unix.Write(w, page) // so that it is readable again
	}})
	_, _ = unix.Write(w, page)
	u := listen(t, l, Share(), func(u *UDP, d *Datagram) {
		echoes++
		_ = u.Send(d.Payload, u.LocalAddr())
	})
	sendNow(t, u, u.LocalAddr(), 4)
	l.Every(time.Millisecond, func() {
		if ticks++; ticks == 20 {
			_ = l.Close()
		}
	})
	run(t, l)
	if reads == 0 || echoes == 0 {
		t.Errorf("%d reads and %d echoes in %d ticks", reads, echoes, ticks)
	}
}

// A writer that finds no room waits for it, and goes on when the pipe is read.
func TestWatchWrites(t *testing.T) {
	const total = 1 << 20
	l := newLoop(t, Config{})
	r, w := openPipe(t)
	page := make([]byte, 4096)
	written, read, blocked := 0, 0, 0
	writer := watchFD(t, l, w, WatchHandler{OnWritable: func(w *Watch) {
		for written < total {
			n, err := unix.Write(w.FD(), page)
			if err == unix.EAGAIN {
				blocked++
				return
			}
			if err != nil {
				t.Error(err)
			}
			written += n
		}
		w.WantWritable(false)
	}})
	writer.WantWritable(true)
	watchFD(t, l, r, WatchHandler{OnReadable: func(w *Watch) {
		n, err := unix.Read(w.FD(), make([]byte, 32<<10))
		if err != nil {
			t.Error(err)
		}
		if read += n; read == total {
			_ = l.Close()
		}
	}})
	run(t, l)
	if written != total || blocked == 0 {
		t.Errorf("%d bytes written, %d times without room", written, blocked)
	}
}
