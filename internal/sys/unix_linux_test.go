//go:build linux

package sys

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func socketOf(t *testing.T, k Kernel, f Family, kind Kind) int {
	t.Helper()
	fd, err := k.Socket(f, kind)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close(fd) })
	return fd
}

// TestLongPaths: "Linux takes paths of any length", also to connect and to send to. It runs alone, as the directory
// that a relative path starts at is the process's.
func TestLongPaths(t *testing.T) {
	t.Chdir(t.TempDir())
	before := len(openFiles(t))
	deep := "./" + strings.Repeat(strings.Repeat("d", 200)+"/", 3)
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	abs, err := filepath.Abs(deep)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path string
		want       error
	}{
		{"the longest of sun_path", strings.Repeat("a", 107), nil},
		{"relative", deep + "s", nil},
		{"absolute", abs + "/t", nil},
		{"a directory that is not there", deep + "no/s", unix.ENOENT},
		{"a file for a directory", deep + "file/s", unix.ENOTDIR},
		{"a long last part", strings.Repeat("a", 108), unix.ENAMETOOLONG},
		{"a zero in it", "a\x00b", unix.EINVAL},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.WriteFile(filepath.Join(deep, "file"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			k := New()
			fd, from := socketOf(t, k, UnixFamily, Unixgram), socketOf(t, k, UnixFamily, Unixgram)
			for call, err := range map[string]error{
				"bind": k.BindUnix(fd, c.path), "send": k.SendUnix(from, []byte("1"), c.path), "connect": k.ConnectUnix(from, c.path),
			} {
				if err != c.want {
					t.Errorf("%s: %v, want %v", call, err, c.want)
				}
			}
			if c.want != nil {
				return
			}
			if st, err := os.Lstat(c.path); err != nil || st.Mode().Type() != os.ModeSocket {
				t.Errorf("there is %v, %v", st, err)
			}
			if n, _, _, err := k.RecvUnix(fd, make([]byte, 2)); n != 1 || err != nil {
				t.Errorf("receives %d, %v", n, err)
			}
			for _, want := range []error{nil, unix.ENOENT} {
				if err := k.UnlinkUnix(c.path); err != want {
					t.Errorf("unlinks: %v, want %v", err, want)
				}
			}
		})
	}
	if after := len(openFiles(t)); after != before {
		t.Errorf("%d descriptors are left", after-before)
	}
}

// TestUnlinkUnix: "ENOENT where there is none, ENOTSOCK where it is something else".
func TestUnlinkUnix(t *testing.T) {
	t.Parallel()
	k, dir := New(), t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := k.BindUnix(socketOf(t, k, UnixFamily, UnixStream), path("socket")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path("file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("socket", path("link")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path string
		want error
	}{
		{path("file"), unix.ENOTSOCK},
		{path("link"), unix.ENOTSOCK}, // what it leads to is another's to remove
		{dir, unix.ENOTSOCK},
		{path("none"), unix.ENOENT},
		{"@weir", unix.ENOENT},
		{"", unix.ENOENT},
		{path("socket"), nil},
	} {
		if err := k.UnlinkUnix(c.path); err != c.want {
			t.Errorf("%q: %v, want %v", c.path, err, c.want)
		}
	}
	for _, name := range []string{"file", "link"} {
		if _, err := os.Lstat(path(name)); err != nil {
			t.Error(err)
		}
	}
}

// TestAbstractNames: "EINVAL for … an abstract name of more than 107 bytes".
func TestAbstractNames(t *testing.T) {
	t.Parallel()
	unique := "@weir/" + t.TempDir() + "/"
	full := unique + strings.Repeat("x", 1+maxUnixNameBytes-len(unique))
	for _, c := range []struct {
		name, is string
		want     error
	}{
		{"short", unique, nil},
		{"with zeroes", unique + "\x00\x00", nil},
		{"the longest", full, nil},
		{"one more", full + "x", unix.EINVAL},
		{"no name", "", unix.EINVAL},
	} {
		k := New()
		fd, from := socketOf(t, k, UnixFamily, Unixgram), socketOf(t, k, UnixFamily, Unixgram)
		if err := k.BindUnix(fd, c.is); err != c.want {
			t.Errorf("%s: binds with %v, want %v", c.name, err, c.want)
		}
		if c.want != nil {
			continue
		}
		if got, err := k.LocalUnix(fd); got != c.is || err != nil {
			t.Errorf("%s: has the name %q, %v", c.name, got, err)
		}
		if err := k.ConnectUnix(from, c.is); err != nil {
			t.Errorf("%s: connects with %v", c.name, err)
		}
		if got, err := k.RemoteUnix(from); got != c.is || err != nil {
			t.Errorf("%s: the peer has the name %q, %v", c.name, got, err)
		}
		if err := k.SendUnix(fd, nil, c.is); err != nil {
			t.Errorf("%s: sends with %v", c.name, err)
		}
		if n, got, flags, err := k.RecvUnix(fd, nil); n != 0 || got != c.is || flags != 0 || err != nil {
			t.Errorf("%s: receives %d of %q, %v, %v", c.name, n, got, flags, err)
		}
		if _, err := os.Lstat(c.is); err == nil {
			t.Errorf("%s: is a file", c.name)
		}
	}
}

// TestGetUnixName has names as other programs bind them.
func TestGetUnixName(t *testing.T) {
	t.Parallel()
	full := strings.Repeat("p", int(unixPathBytes))
	for _, c := range []struct {
		name, path string
		size       int // of path
		want       string
	}{
		{"none", "", 0, ""},
		{"a path", "/a\x00", 3, "/a"},
		{"a path told without its zero", "/a", 2, "/a"},
		{"108 bytes, told with the zero behind them", full, len(full) + 1, full},
		{"a path that looks abstract", "@a\x00", 3, "./@a"},
		{"abstract", "\x00a\x00", 3, "@a\x00"},
		{"abstract, with nothing behind", "\x00", 1, "@"},
	} {
		raw := unix.RawSockaddrUnix{Family: unix.AF_UNIX}
		copy(pathBytes(&raw), c.path)
		if got := getUnixName(&raw, uint32(unixFamilyBytes)+uint32(c.size)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	other := unix.RawSockaddrUnix{Family: unix.AF_INET}
	copy(pathBytes(&other), "abc")
	if got := getUnixName(&other, nameBytes4); got != "" {
		t.Errorf("an address of IPv4 is %q", got)
	}
}

// TestRecvUnixCut: a datagram that is larger than the buffer is cut, and says so.
func TestRecvUnixCut(t *testing.T) {
	t.Parallel()
	k := New()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0) // blocking
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(t, fds[:])
	for _, c := range []struct {
		sent, room, n int
		flags         Flags
	}{{3, 4, 3, 0}, {3, 3, 3, 0}, {3, 2, 2, Truncated}, {1, 0, 0, Truncated}, {0, 2, 0, 0}} {
		if err := k.SendUnix(fds[0], make([]byte, c.sent), ""); err != nil {
			t.Fatal(err)
		}
		n, from, flags, err := k.RecvUnix(fds[1], make([]byte, c.room))
		if n != c.n || from != "" || flags != c.flags || err != nil {
			t.Errorf("%+v: %d of %q, %v, %v", c, n, from, flags, err)
		}
	}
	if _, _, _, err := k.RecvUnix(fds[1], make([]byte, 1)); err != unix.EAGAIN {
		t.Errorf("an empty queue of a blocking socket: %v", err)
	}
}

// TestDissolveUnix: "The empty name dissolves the association of a Unixgram socket."
func TestDissolveUnix(t *testing.T) {
	t.Parallel()
	k := New()
	name := "@weir/" + t.TempDir()
	fd, from := socketOf(t, k, UnixFamily, Unixgram), socketOf(t, k, UnixFamily, Unixgram)
	if err := k.BindUnix(fd, name); err != nil {
		t.Fatal(err)
	}
	if err := k.ConnectUnix(from, name); err != nil {
		t.Fatal(err)
	}
	if err := k.ConnectUnix(from, ""); err != nil {
		t.Error(err)
	}
	if _, err := k.RemoteUnix(from); err != unix.ENOTCONN {
		t.Errorf("the peer is told with %v", err)
	}
	if err := k.SendUnix(from, nil, ""); err != unix.ENOTCONN {
		t.Errorf("sends with %v", err)
	}
}
