package weir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirnet/weir/internal/memsys"
	"github.com/weirnet/weir/internal/sys"
)

// onEachUnix runs a test in memory and on the real kernel, with a path that is free; there tells whether a path is.
func onEachUnix(t *testing.T, test func(t *testing.T, k *Kernel, path string, there func(path string) bool)) {
	t.Run("memory", func(t *testing.T) {
		k := NewKernel(memsys.New().Backend())
		test(t, k, "/run/socket", func(path string) bool {
			fd, err := k.backend.Kernel.Socket(sys.UnixFamily, sys.UnixStream)
			if err != nil {
				t.Fatal(err)
			}
			defer k.backend.Kernel.Close(fd)
			err = k.backend.Kernel.ConnectUnix(fd, path)
			return err != syscall.ENOENT && !(err == syscall.ECONNREFUSED && path[0] == '@')
		})
	})
	t.Run("kernel", func(t *testing.T) {
		test(t, realKernel(t), filepath.Join(t.TempDir(), "socket"), func(path string) bool {
			_, err := os.Lstat(path)
			return err == nil
		})
	})
}

// TestListenUnixPath: "a path, which is made, and removed when the listener is closed", unless it is to be kept.
func TestListenUnixPath(t *testing.T) {
	onEachUnix(t, func(t *testing.T, k *Kernel, path string, there func(string) bool) {
		l := newLoop(t, Config{Kernel: k})
		open := func(cfg ListenerConfig) *Listener {
			t.Helper()
			ln, err := l.ListenUnix(path, cfg, ListenerHandler{})
			if err != nil {
				t.Fatal(err)
			}
			if !there(path) || ln.Name() != path || ln.Addr().IsValid() {
				t.Errorf("it is at %q, %v", ln.Name(), ln.Addr())
			}
			return ln
		}
		for range 2 {
			if _ = open(ListenerConfig{}).Close(); there(path) {
				t.Error("the path is there after Close")
			}
		}
		_ = open(ListenerConfig{KeepPath: true}).Close()
		if !there(path) {
			t.Fatal("the path was to be kept")
		}
		_, err := l.ListenUnix(path, ListenerConfig{}, ListenerHandler{})
		var op *OpError
		if !errors.As(err, &op) || !errors.Is(err, syscall.EADDRINUSE) || op.SourceName != path || op.Net != "unix" ||
			!strings.Contains(err.Error(), path) {
			t.Errorf("of a path that is there: %v", err)
		}
		ln := open(ListenerConfig{Replace: true})
		if _, err := l.ListenUnix(path, ListenerConfig{Replace: true}, ListenerHandler{}); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("of a path at which somebody listens: %v", err)
		}
		if !there(path) {
			t.Error("the path of who listens is gone")
		}
		fd, err := ln.Export()
		if err != nil {
			t.Fatal(err)
		}
		if _ = ln.Close(); !there(path) {
			t.Error("the path is gone, and the exported one listens there")
		}
		_ = k.backend.Kernel.Close(fd)
		open(ListenerConfig{Replace: true})
		if _ = l.Close(); there(path) {
			t.Error("the path is there after the loop")
		}
		if _, err := l.ListenUnix(path, ListenerConfig{}, ListenerHandler{}); !errors.Is(err, ErrClosed) || there(path) {
			t.Errorf("after Close: %v", err)
		}
	})
}

// TestListenUnixErrors: none leaves a path or a source.
func TestListenUnixErrors(t *testing.T) {
	onEachUnix(t, func(t *testing.T, k *Kernel, path string, there func(string) bool) {
		for _, row := range []struct {
			name, faults string
			want         error
		}{
			{"", "", syscall.EINVAL},
			{path, "socket=EMFILE", syscall.EMFILE},
			{path, "listen=ENOBUFS", syscall.ENOBUFS},
			{path, "add=ENOSPC", syscall.ENOSPC},
			{"@" + strings.Repeat("n", 108), "", syscall.EINVAL},
		} {
			l := newLoop(t, Config{Kernel: k, Faults: plan(t, row.faults)})
			_, err := l.ListenUnix(row.name, ListenerConfig{}, ListenerHandler{})
			var op *OpError
			if !errors.As(err, &op) || op.SourceName != row.name || row.want != nil && !errors.Is(err, row.want) {
				t.Errorf("%q with %q: %v, want %v", row.name, row.faults, err, row.want)
			}
			if there(path) || l.table.len() != 0 {
				t.Errorf("%q with %q: something is left", row.name, row.faults)
			}
			_ = l.Close()
		}
	})
}

// TestListenUnixNames has clients at paths, short and long, and at abstract names, and asks both sides for them.
func TestListenUnixNames(t *testing.T) {
	onEachUnix(t, func(t *testing.T, k *Kernel, path string, there func(string) bool) {
		long := filepath.Join(filepath.Dir(path), strings.Repeat("d", 120), "socket")
		if filepath.Dir(path) != "/run" {
			if err := os.Mkdir(filepath.Dir(long), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{path, long, "@" + path[max(len(path)-100, 0):]} {
			l := newLoop(t, Config{Kernel: k})
			before := openFiles()
			ln, err := l.ListenUnix(name, ListenerConfig{}, ListenerHandler{Conn: ConnHandler{
				OnOpen: func(c *Conn) {
					if len(name) < 100 && c.LocalName() != name || c.RemoteName() != "" || c.RemoteAddr().IsValid() {
						t.Errorf("%q: the server is %q, its peer %q", name, c.LocalName(), c.RemoteName())
					}
				},
				OnData: func(c *Conn, b []byte) { _, _ = c.Write(b) },
			}})
			if err != nil {
				t.Fatal(err)
			}
			c := dialTo(t, l, ln, ConnConfig{}, ConnHandler{
				OnOpen: func(c *Conn) {
					if len(name) < 100 && c.RemoteName() != name || c.LocalName() != "" || c.LocalAddr().IsValid() {
						t.Errorf("%q: the client is %q, its peer %q", name, c.LocalName(), c.RemoteName())
					}
				},
				OnData: func(c *Conn, b []byte) { _ = c.Close() },
				OnClose: func(c *Conn, err error) {
					if err != nil || c.LocalName() != "" || c.RemoteName() != "" {
						t.Errorf("%v, %q, %q", err, c.LocalName(), c.RemoteName())
					}
					_ = l.Close()
				},
			})
			_, _ = c.Write([]byte("hello"))
			run(t, l)
			if there(name) {
				t.Errorf("%q is left", name)
			}
			if after := openFiles(); after > before {
				t.Errorf("%q: %d sockets are open, %d before", name, after, before)
			}
			if n := timesOpen(filepath.Dir(long)); n > 0 {
				t.Errorf("%q: its directory is open %d times", name, n)
			}
		}
	})
}

// timesOpen is how often a file is open, or 0 where that is not told.
func timesOpen(file string) (n int) {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && target == file {
			n++
		}
	}
	return n
}

// TestDialUnixErrors names who was asked for.
func TestDialUnixErrors(t *testing.T) {
	onEachUnix(t, func(t *testing.T, k *Kernel, path string, there func(string) bool) {
		l := newLoop(t, Config{Kernel: k})
		_, err := l.DialUnix(path, ConnConfig{}, ConnHandler{})
		var op *OpError
		if !errors.As(err, &op) || op.Name != path || op.Net != "unix" || !errors.Is(err, syscall.ENOENT) {
			t.Errorf("%v", err)
		}
		if n := l.table.len(); n != 0 {
			t.Errorf("%d sources are left", n)
		}
	})
}

// TestDialUnixBacklog: a dial waits for room in the backlog, and is over when there was none in time.
func TestDialUnixBacklog(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		ln, err := l.ListenUnix("/run/socket", ListenerConfig{Backlog: 1}, ListenerHandler{})
		if err != nil {
			t.Fatal(err)
		}
		ln.Pause()
		opened := 0
		var failed []error
		for i := range 4 {
			cfg := ConnConfig{}
			if i == 3 {
				cfg.DialTimeout = time.Second
			}
			dialTo(t, l, ln, cfg, ConnHandler{
				OnOpen:  func(*Conn) { opened++ },
				OnClose: func(_ *Conn, err error) { failed = append(failed, err) },
			})
		}
		l.AfterFunc(2*time.Second, func() {
			if opened != 2 || len(failed) != 1 || !errors.Is(failed[0], ErrTimeout) {
				t.Errorf("%d are open, failed %v", opened, failed)
			}
			ln.Resume()
		})
		l.AfterFunc(3*time.Second, func() {
			if opened != 3 {
				t.Errorf("%d are open", opened)
			}
			failed = nil
			_ = l.Close()
		})
		run(t, l)
	})
}
