package sock

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/weirnet/weir/internal/sys"
)

// TestReplace has all that can be at a path where somebody wants to listen.
func TestReplace(t *testing.T) {
	onKernels(t, func(t *testing.T, k counted) {
		for _, row := range []struct {
			name    string
			there   func(t *testing.T, path string)
			replace bool
			want    error
			says    string
		}{
			{"nothing", func(*testing.T, string) {}, true, nil, ""},
			{"one that is dead", func(t *testing.T, p string) { leaveDead(t, k, p) }, true, nil, ""},
			{"one that is dead, left alone", func(t *testing.T, p string) { leaveDead(t, k, p) }, false, syscall.EADDRINUSE, "bind: "},
			{"one that lives", func(t *testing.T, p string) { listenAt(t, k, p, 5) }, true, syscall.EADDRINUSE, "somebody listens there"},
			{"one that is busy", func(t *testing.T, p string) {
				listenAt(t, k, p, 0)
				for err := error(nil); !errors.Is(err, syscall.EAGAIN); {
					if _, err = ConnectUnix(k, p, StreamSettings{}); err != nil && !errors.Is(err, syscall.EAGAIN) {
						t.Fatal(err)
					}
				}
			}, true, syscall.EADDRINUSE, "somebody listens there"},
			{"datagrams", func(t *testing.T, p string) {
				if _, err := OpenUnixgram(k, p, "", StreamSettings{}); err != nil {
					t.Fatal(err)
				}
			}, true, syscall.EADDRINUSE, "another kind"},
		} {
			t.Run(row.name, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "socket")
				row.there(t, path)
				before := len(k.open)
				fd, err := ListenUnix(k, path, StreamSettings{}, 5, row.replace)
				if row.want == nil {
					if err != nil {
						t.Fatal(err)
					}
					if _, err := ConnectUnix(k, path, StreamSettings{}); err != nil {
						t.Errorf("nobody listens: %v", err)
					}
					accepted(t, k, fd)
					return
				}
				var e *Error
				if fd != -1 || !errors.As(err, &e) || e.Step != "bind" || !errors.Is(err, row.want) || !strings.Contains(err.Error(), row.says) {
					t.Errorf("fd %d, %v", fd, err)
				}
				if len(k.open) != before {
					t.Errorf("%d descriptors are left", len(k.open)-before)
				}
				if err := k.UnlinkUnix(path); err != nil {
					t.Errorf("what was there is gone: %v", err)
				}
			})
		}
	})
}

// TestReplaceFile holds that what is no socket stays.
func TestReplaceFile(t *testing.T) {
	t.Parallel()
	k := realKernel()
	if k == nil {
		t.Skip("no kernel of its own here")
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := ListenUnix(k, path, StreamSettings{}, 5, true)
	if !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "not a socket") {
		t.Error(err)
	}
	if b, err := os.ReadFile(path); string(b) != "precious" {
		t.Errorf("the file is %q, %v", b, err)
	}
}

// TestAbstractInUse: an abstract name is gone with its socket, so that there is nothing to try.
func TestAbstractInUse(t *testing.T) {
	onKernels(t, func(t *testing.T, k counted) {
		name := "@" + filepath.Join(t.TempDir(), "name")
		l := listenAt(t, k, name, 5)
		if _, err := ListenUnix(k, name, StreamSettings{}, 5, true); !errors.Is(err, syscall.EADDRINUSE) {
			t.Error(err)
		}
		if _, _, err := k.Accept(l); err != syscall.EAGAIN {
			t.Errorf("somebody connected: %v", err)
		}
	})
}

// TestUnixErrors: "nothing is left then, neither descriptor nor path".
func TestUnixErrors(t *testing.T) {
	onKernels(t, func(t *testing.T, k counted) {
		dir := t.TempDir()
		none, local := filepath.Join(dir, "none"), filepath.Join(dir, "local")
		for _, row := range []struct {
			name string
			open func() (int, error)
			step string
			want error
		}{
			{"connect", func() (int, error) { return ConnectUnix(k, none, StreamSettings{}) }, "connect", syscall.ENOENT},
			{"datagrams", func() (int, error) { return OpenUnixgram(k, local, none, StreamSettings{}) }, "connect", syscall.ENOENT},
			{"no name", func() (int, error) { return ListenUnix(k, "", StreamSettings{}, 5, true) }, "bind", syscall.EINVAL},
		} {
			var e *Error
			if fd, err := row.open(); fd != -1 || !errors.As(err, &e) || e.Step != row.step || !errors.Is(err, row.want) {
				t.Errorf("%s: fd %d, %v; want %s: %v", row.name, fd, err, row.step, row.want)
			}
			if len(k.open) != 0 {
				t.Errorf("%s: %d descriptors are left", row.name, len(k.open))
			}
			if err := k.UnlinkUnix(local); err != syscall.ENOENT {
				t.Errorf("%s: the path is left: %v", row.name, err)
			}
		}
	})
}

// TestUnixgrams has datagrams go from one name to the other.
func TestUnixgrams(t *testing.T) {
	onKernels(t, func(t *testing.T, k counted) {
		dir := t.TempDir()
		a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
		to, err := OpenUnixgram(k, a, "", StreamSettings{RecvBufferBytes: 9000})
		if err != nil {
			t.Fatal(err)
		}
		optionsOf(t, k, to, map[sys.Option]int{sys.RecvBuffer: 18000})
		from, err := OpenUnixgram(k, b, a, StreamSettings{})
		if err != nil {
			t.Fatal(err)
		}
		if err := k.SendUnix(from, []byte("hello"), ""); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 10)
		if n, name, _, err := k.RecvUnix(to, buf); string(buf[:n]) != "hello" || name != b || err != nil {
			t.Errorf("%q from %q, %v", buf[:n], name, err)
		}
	})
}

func listenAt(t *testing.T, k sys.Kernel, path string, backlog int) int {
	t.Helper()
	fd, err := ListenUnix(k, path, StreamSettings{}, backlog, false)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}
