package systest

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
)

// RunPaths asserts what paths of unix sockets have to do with the file system. It is apart from the suite, as a
// kernel in memory has none.
func RunPaths(t *testing.T, b poll.Backend) {
	r := newRig(t, b)
	name := r.path()
	dir := filepath.Dir(name)
	l := r.unixListener(name, 8)
	info, err := os.Lstat(name)
	r.must(err)
	r.equal(info.Mode().Type(), os.ModeSocket)
	r.must(r.Kernel.Close(l))
	_, err = os.Lstat(name)
	r.must(err)

	file := filepath.Join(dir, "file")
	r.must(os.WriteFile(file, []byte("kept"), 0o600))
	const noDir, long = syscall.ENOTDIR, syscall.ENAMETOOLONG
	for path, want := range map[string][4]error{ // of Bind, Connect, Send and Unlink
		file:                       {syscall.EADDRINUSE, syscall.ECONNREFUSED, syscall.ECONNREFUSED, syscall.ENOTSOCK},
		dir:                        {syscall.EADDRINUSE, syscall.ECONNREFUSED, syscall.ECONNREFUSED, syscall.ENOTSOCK},
		filepath.Join(dir, "no/s"): {syscall.ENOENT, syscall.ENOENT, syscall.ENOENT, syscall.ENOENT},
		filepath.Join(file, "s"):   {noDir, noDir, noDir, noDir},
		filepath.Join(dir, strings.Repeat("n", 256)): {long, long, long, long},
	} {
		gram := r.unixSocket(sys.Unixgram)
		for i, err := range []error{
			r.Kernel.BindUnix(r.unixSocket(sys.UnixStream), path),
			r.Kernel.ConnectUnix(r.unixSocket(sys.UnixStream), path),
			r.Kernel.SendUnix(gram, []byte("x"), path),
			r.Kernel.UnlinkUnix(path),
		} {
			if err != want[i] {
				t.Errorf("%s: error is %v, want %v", path, err, want[i])
			}
		}
	}
	text, err := os.ReadFile(file)
	r.must(err)
	r.equal(string(text), "kept")
	r.longPaths(dir)
}

// longPaths asserts that a path may be longer than a socket's address, or just as long.
func (r *rig) longPaths(dir string) {
	r.Helper()
	deep := filepath.Join(dir, strings.Repeat("d", 100), strings.Repeat("e", 100))
	r.must(os.MkdirAll(deep, 0o700))
	for _, long := range []string{filepath.Join(deep, "s"), filepath.Join(dir, strings.Repeat("n", 106-len(dir)))} {
		l := r.unixListener(long, 4)
		r.want(r.Kernel.BindUnix(r.unixSocket(sys.UnixStream), long), syscall.EADDRINUSE)
		a := r.unixDial(long)
		r.write(a, "x")
		r.equal(r.read(r.accept(l), 1), "x")
		r.must(r.Kernel.UnlinkUnix(long))
		_, err := os.Lstat(long)
		r.want(err, os.ErrNotExist)

		gram := r.boundUnix(sys.Unixgram, long)
		r.sendUnix(r.unixSocket(sys.Unixgram), "1", long)
		r.sendUnix(r.connectedUnix(sys.Unixgram, long), "2", "")
		r.recvUnix(gram, "1", "")
		r.recvUnix(gram, "2", "")
		r.must(r.Kernel.UnlinkUnix(long))
	}
}
