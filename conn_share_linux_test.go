//go:build linux

package weir

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestAdoptConn takes over connections of package net and of socketpair(2), and gives them back.
func TestAdoptConn(t *testing.T) {
	for _, row := range []struct {
		name string
		make func(t *testing.T) (mine *os.File, other net.Conn)
	}{
		{"net", tcpFiles},
		{"socketpair", pairFiles},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newLoop(t, Config{})
			file, other := row.make(t)
			defer other.Close()
			got := ""
			opened := false
			c, err := l.AdoptConnFile(file, ConnConfig{}, ConnHandler{
				OnOpen: func(*Conn) { opened = true },
				OnData: func(c *Conn, b []byte) {
					got += string(b)
					c.Pause()
					_, _ = c.Write([]byte("answer "))
					fd, err := c.Export()
					if err != nil {
						t.Error(err)
					}
					if err := c.Close(); err != nil {
						t.Error(err)
					}
					f := os.NewFile(uintptr(fd), "exported")
					back, err := net.FileConn(f)
					if err != nil {
						t.Error(err)
					}
					_ = f.Close()
					if _, err := back.Write([]byte("of the next")); err != nil {
						t.Error(err)
					}
					_ = back.Close()
				},
				OnClose: func(_ *Conn, err error) {
					if err != nil {
						t.Error(err)
					}
					_ = l.Close()
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			_ = file.Close() // it was borrowed
			if tcp := row.name == "net"; c.RemoteAddr().IsValid() != tcp || tcp && c.RemoteAddr().String() != other.LocalAddr().String() {
				t.Errorf("the peer is %v", c.RemoteAddr())
			}
			_, _ = other.Write([]byte("hello"))
			run(t, l)
			if b, err := io.ReadAll(other); string(b) != "answer of the next" || err != nil {
				t.Errorf("%q, %v", b, err)
			}
			if s := l.Stats().Streams; !opened || got != "hello" || s.Open != 0 || s.Dialled != 0 || s.Closed != 1 {
				t.Errorf("opened %v, %q, %+v", opened, got, s)
			}
		})
	}
}

// TestAdoptConnFull: one that has no room, and nothing to read, opens, too, and so does one whose peer is gone.
func TestAdoptConnFull(t *testing.T) {
	for _, gone := range []bool{false, true} {
		l := newLoop(t, Config{})
		file, other := pairFiles(t)
		defer other.Close()
		fill := make([]byte, 64<<10)
		for {
			if _, err := syscall.SendmsgN(int(file.Fd()), fill, nil, nil, syscall.MSG_DONTWAIT); err != nil {
				break
			}
		}
		if gone {
			_ = other.Close()
		}
		_, err := l.AdoptConnFile(file, ConnConfig{}, ConnHandler{
			OnOpen:  func(c *Conn) { l.AfterFunc(5*time.Millisecond, func() { _ = c.Reset() }) },
			OnClose: func(*Conn, error) { _ = l.Close() },
		})
		if err != nil {
			t.Fatal(err)
		}
		_ = file.Close()
		run(t, l)
	}
}

// TestAdoptConnErrors: what is no connection is not taken, and nothing is left.
func TestAdoptConnErrors(t *testing.T) {
	socket := func(kind int) *os.File {
		fd, err := syscall.Socket(syscall.AF_INET, kind|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		return os.NewFile(uintptr(fd), "socket")
	}
	udp, tcp := socket(syscall.SOCK_DGRAM), socket(syscall.SOCK_STREAM)
	listener := socket(syscall.SOCK_STREAM)
	if err := syscall.Listen(int(listener.Fd()), 1); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	pair, other := pairFiles(t)
	defer other.Close()
	l := newLoop(t, Config{})
	for _, row := range []struct {
		name string
		fd   int
		cfg  ConnConfig
		want error
	}{
		{"UDP", int(udp.Fd()), ConnConfig{}, syscall.EPROTOTYPE},
		{"not connected", int(tcp.Fd()), ConnConfig{}, syscall.ENOTCONN},
		{"listener", int(listener.Fd()), ConnConfig{}, syscall.EINVAL},
		{"pipe", int(r.Fd()), ConnConfig{}, syscall.ENOTSOCK},
		{"none", -1, ConnConfig{}, syscall.EBADF},
		{"config", int(pair.Fd()), ConnConfig{TTL: 999}, nil},
	} {
		c, err := l.AdoptConn(row.fd, row.cfg, ConnHandler{OnClose: func(*Conn, error) { t.Error("OnClose") }})
		if e, ok := errors.AsType[*OpError](err); c != nil || !ok || e.Op != "adopt" || row.want != nil && !errors.Is(err, row.want) {
			t.Errorf("%s: %v, want %v", row.name, err, row.want)
		}
	}
	if s := l.Stats().Streams; s.Open != 0 || l.table.len() != 0 {
		t.Errorf("%d connections are left", s.Open)
	}
	for _, f := range []*os.File{udp, tcp, listener, r, w} {
		_ = f.Close()
	}
	_ = l.Close()
	if _, err := l.AdoptConn(int(pair.Fd()), ConnConfig{}, ConnHandler{}); !errors.Is(err, ErrClosed) {
		t.Errorf("of a closed loop: %v", err)
	}
	_ = pair.Close()
	if _, err := newLoop(t, Config{}).AdoptConnFile(pair, ConnConfig{}, ConnHandler{}); err == nil {
		t.Error("a closed file is taken")
	}
}

// TestExportConnQueued: "ErrWouldBlock while something is queued to be written: OnDrain follows", and then it works.
func TestExportConnQueued(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		var p *peer
		drains := 0
		export := func(c *Conn) {
			fd, err := c.Export()
			if err == ErrWouldBlock {
				return
			}
			if err != nil {
				t.Error(err)
			}
			_ = l.kernel.Close(fd)
			_ = c.Reset() // which leaves the socket to others, of whom there are none
		}
		ln := serve(t, l, ListenerConfig{}, ConnHandler{
			OnOpen: func(c *Conn) {
				_ = c.Enqueue(make([]byte, 20<<20))
				if _, err := c.Export(); err != ErrWouldBlock {
					t.Errorf("Export: %v", err)
				}
				p.readUntilOver(l, func() { _ = l.Close() })
			},
			OnDrain: func(c *Conn) { drains++; export(c) },
			OnClose: func(c *Conn, err error) {
				if _, e := c.Export(); err != nil || e != ErrClosed {
					t.Errorf("%v; Export: %v", err, e)
				}
			},
		})
		p = newPeer(t, l, ln, 0)
		run(t, l)
		if drains == 0 || len(p.got) != 20<<20 || p.err != nil {
			t.Errorf("%d drains, %d bytes, %v", drains, len(p.got), p.err)
		}
	})
}

// tcpFiles are the ends of a TCP connection of package net.
func tcpFiles(t *testing.T) (*os.File, net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	other, err := net.Dial("tcp4", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	mine, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Close()
	f, err := mine.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	return f, other
}

func pairFiles(t *testing.T) (*os.File, net.Conn) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fds[1]), "pair")
	defer f.Close()
	other, err := net.FileConn(f)
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fds[0]), "pair"), other
}

// TestConnErrorQueue: a socket whose opener has asked for time stamps gets one for each write, which the poller tells of
// as an error until it is taken.
func TestConnErrorQueue(t *testing.T) {
	for _, paused := range []bool{false, true} {
		l := newLoop(t, Config{})
		ln := serve(t, l, ListenerConfig{}, ConnHandler{})
		dialled, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer dialled.Close()
		f, err := dialled.(*net.TCPConn).File()
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		const ask = unix.SOF_TIMESTAMPING_TX_SOFTWARE | unix.SOF_TIMESTAMPING_SOFTWARE
		if err := unix.SetsockoptInt(int(f.Fd()), unix.SOL_SOCKET, unix.SO_TIMESTAMPING_NEW, ask); err != nil {
			t.Skipf("the kernel has no time stamps: %v", err)
		}
		var before uint64
		_, err = l.AdoptConnFile(f, ConnConfig{}, ConnHandler{
			OnOpen: func(c *Conn) {
				if paused {
					c.Pause()
				}
				for range 10 {
					_, _ = c.Write([]byte("x"))
					c.flush()
				}
				l.AfterFunc(50*time.Millisecond, func() { before = l.Turn() })
				l.AfterFunc(250*time.Millisecond, func() {
					if n := l.Turn() - before; n > 5 {
						t.Errorf("%d turns at rest, paused %v", n, paused)
					}
					_ = l.Close()
				})
			},
			OnClose: func(_ *Conn, err error) {
				if err != ErrClosed {
					t.Errorf("OnClose has %v", err)
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		run(t, l)
	}
}
