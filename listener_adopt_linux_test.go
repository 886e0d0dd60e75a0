//go:build linux

package weir

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestAdoptListener takes over listeners of package net, which may close theirs; the path of a unix socket stays.
func TestAdoptListener(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			address := "127.0.0.1:0"
			if network == "unix" {
				address = filepath.Join(t.TempDir(), "socket")
			}
			theirs, err := net.Listen(network, address)
			if err != nil {
				t.Fatal(err)
			}
			if u, ok := theirs.(*net.UnixListener); ok {
				u.SetUnlinkOnClose(false)
			}
			address = theirs.Addr().String()
			f, err := theirs.(interface{ File() (*os.File, error) }).File()
			if err != nil {
				t.Fatal(err)
			}
			l := newLoop(t, Config{})
			ln, err := l.AdoptListenerFile(f, ListenerConfig{}, ListenerHandler{Conn: ConnHandler{
				OnData: func(c *Conn, b []byte) { _, _ = c.Write(b) },
			}})
			_, _ = f.Close(), theirs.Close()
			if err != nil {
				t.Fatal(err)
			}
			if network == "tcp" && ln.Addr().String() != address || network == "unix" && ln.Name() != address {
				t.Errorf("it is at %v, %q; want %s", ln.Addr(), ln.Name(), address)
			}
			go func() {
				defer l.Stop(-1)
				echoOnce(t, network, address)
			}()
			run(t, l)
			if _, err := os.Stat(address); network == "unix" && err != nil {
				t.Error(err)
			}
		})
	}
}

// echoOnce is a client of package net.
func echoOnce(t *testing.T, network, address string) {
	c, err := net.Dial(network, address)
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	_, _ = c.Write([]byte("hello"))
	_ = c.(interface{ CloseWrite() error }).CloseWrite()
	if b, err := io.ReadAll(c); string(b) != "hello" || err != nil {
		t.Errorf("it answers %q, %v", b, err)
	}
}

// TestExportListener gives one to package net: "both ends accept, who wants the other to be the only one closes this
// one", and the path stays for it.
func TestExportListener(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			l := newLoop(t, Config{})
			accepted := 0
			h := ListenerHandler{Conn: ConnHandler{
				OnOpen: func(*Conn) { accepted++ },
				OnData: func(c *Conn, b []byte) { _, _ = c.Write(b) },
			}}
			ln, err := l.ListenTCP(loopback4, ListenerConfig{}, h)
			if network == "unix" {
				_ = ln.Close()
				ln, err = l.ListenUnix(filepath.Join(t.TempDir(), "socket"), ListenerConfig{}, h)
			}
			if err != nil {
				t.Fatal(err)
			}
			address := ln.Name()
			if network == "tcp" {
				address = ln.Addr().String()
			}
			fd, err := ln.Export()
			if err != nil {
				t.Fatal(err)
			}
			f := os.NewFile(uintptr(fd), "listener")
			theirs, err := net.FileListener(f)
			_ = f.Close()
			if err != nil {
				t.Fatal(err)
			}
			defer theirs.Close()
			go func() {
				defer l.Close()
				echoOnce(t, network, address) // nobody accepts there yet
				closed := make(chan error)
				_ = l.Post(func() { closed <- ln.Close() })
				if err := <-closed; err != nil {
					t.Error(err)
				}
				go func() {
					c, err := theirs.Accept()
					if err != nil {
						t.Error(err)
						return
					}
					defer c.Close()
					_, _ = io.Copy(c, c)
				}()
				echoOnce(t, network, address)
			}()
			run(t, l)
			if accepted != 1 {
				t.Errorf("%d were accepted here", accepted)
			}
		})
	}
}

// TestAdoptListenerErrors: each leaves the descriptor as it was.
func TestAdoptListenerErrors(t *testing.T) {
	l := newLoop(t, Config{})
	file := func(fd int, err error) int {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Close(fd) })
		return fd
	}
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	file(pair[1], err)
	kind := syscall.SOCK_STREAM | syscall.SOCK_CLOEXEC
	for _, row := range []struct {
		name string
		fd   int
		want error
	}{
		{"no descriptor", -1, syscall.EBADF},
		{"a file", file(syscall.Open(os.DevNull, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)), syscall.ENOTSOCK},
		{"UDP", file(syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)), syscall.EPROTOTYPE},
		{"TCP that does not listen", file(syscall.Socket(syscall.AF_INET, kind, 0)), syscall.EINVAL},
		{"a connection", file(pair[0], err), syscall.EINVAL},
	} {
		_, err := l.AdoptListener(row.fd, ListenerConfig{}, ListenerHandler{})
		var op *OpError
		if !errors.As(err, &op) || op.Op != "adopt" || !errors.Is(err, row.want) {
			t.Errorf("%s: %v, want %v", row.name, err, row.want)
		}
	}
	if _, err := l.AdoptListener(pair[0], ListenerConfig{MaxConns: -1}, ListenerHandler{}); err == nil {
		t.Error("a configuration that makes no sense is taken")
	}
	_ = l.Close()
	if _, err := l.AdoptListener(pair[0], ListenerConfig{}, ListenerHandler{}); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if n := l.table.len(); n != 0 {
		t.Errorf("%d sources are left", n)
	}
}
