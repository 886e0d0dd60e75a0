//go:build linux

package sys

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// pair is two connected unix streams, as the kernel's own make them.
func pair(t *testing.T) (a, b int) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = unix.Close(fds[0]), unix.Close(fds[1]) })
	return fds[0], fds[1]
}

func vectorOf(bufs ...string) *Vector {
	v := NewVector(len(bufs))
	for _, b := range bufs {
		v.Bufs = append(v.Bufs, []byte(b))
	}
	return v
}

// tracer is a descriptor whose copies tell when the last one is gone: they are the writing end of a pipe.
type tracer struct {
	fd   int
	read *os.File
}

func newTracer(t *testing.T) *tracer {
	t.Helper()
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	read := os.NewFile(uintptr(pipe[0]), "tracer")
	t.Cleanup(func() { _ = read.Close() })
	return &tracer{pipe[1], read}
}

func (tr *tracer) times(n int) (fds []int) {
	for range n {
		fds = append(fds, tr.fd)
	}
	return fds
}

// closed closes the tracer, and wants no copy to be left.
func (tr *tracer) closed(t *testing.T) {
	t.Helper()
	if err := unix.Close(tr.fd); err != nil {
		t.Error(err)
	}
	conn, err := tr.read.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = conn.Control(func(fd uintptr) {
		if n, err := unix.Read(int(fd), make([]byte, 1)); n != 0 || err != nil {
			t.Errorf("a descriptor is left: %v", err)
		}
	})
	if err != nil {
		t.Error(err)
	}
}

func closeAll(t *testing.T, fds []int) {
	t.Helper()
	for _, fd := range fds {
		if err := unix.Close(fd); err != nil {
			t.Errorf("close %d: %v", fd, err)
		}
	}
}

// TestFilesRoom: "at most f's room are taken; the kernel closes what is more, and f.Truncated says so", for odd
// rooms too, whose control message has room for one more behind it.
func TestFilesRoom(t *testing.T) {
	t.Parallel()
	for room := range 6 {
		for sent := range 8 {
			t.Run(fmt.Sprintf("%d of %d", room, sent), func(t *testing.T) {
				t.Parallel()
				k := New()
				a, b := pair(t)
				tr := newTracer(t)
				defer tr.closed(t)
				if n, err := k.WriteFiles(a, vectorOf("he", "llo"), tr.times(sent)); n != 5 || err != nil {
					t.Fatalf("writes %d, %v", n, err)
				}
				f, buf := NewFiles(room), make([]byte, 9)
				n, err := k.ReadFiles(b, buf, f)
				if string(buf[:n]) != "hello" || err != nil || len(f.FDs) != min(room, sent) || f.Truncated != (sent > room) {
					t.Errorf("reads %q, %v with %v, truncated %v", buf[:n], err, f.FDs, f.Truncated)
				}
				for _, fd := range f.FDs {
					if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); flags != unix.FD_CLOEXEC || err != nil {
						t.Errorf("%d has the flags %d, %v", fd, flags, err)
					}
				}
				closeAll(t, f.FDs)
			})
		}
	}
}

// TestFilesBeyondRoom has a control message with more descriptors than there is room for, as a kernel that fills
// the padding would write it, and one that is none of theirs in front.
func TestFilesBeyondRoom(t *testing.T) {
	t.Parallel()
	tr := newTracer(t)
	defer tr.closed(t)
	control := make([]byte, 0, 128)
	control, _ = appendCmsg(control, unix.SOL_SOCKET, unix.SCM_CREDENTIALS, unix.SizeofUcred)
	control, data := appendCmsg(control, unix.SOL_SOCKET, unix.SCM_RIGHTS, 3*fdBytes)
	for i := range 3 {
		dup, err := unix.FcntlInt(uintptr(tr.fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		binary.NativeEndian.PutUint32(data[i*fdBytes:], uint32(dup))
	}
	f := NewFiles(1)
	f.take(control)
	if len(f.FDs) != 1 || !f.Truncated {
		t.Errorf("takes %v, truncated %v", f.FDs, f.Truncated)
	}
	closeAll(t, f.FDs)
}

// TestFilesMax: "EINVAL for more than 253 (SCM_MAX_FD)", EBADF for one that is none, and nothing has gone then.
func TestFilesMax(t *testing.T) {
	t.Parallel()
	k := New()
	a, b := pair(t)
	tr := newTracer(t)
	defer tr.closed(t)
	for _, c := range []struct {
		name  string
		files []int
		want  error
	}{
		{"too many", tr.times(MaxFiles + 1), unix.EINVAL},
		{"no descriptor", []int{tr.fd, -1}, unix.EBADF},
	} {
		if n, err := k.WriteFiles(a, vectorOf("x"), c.files); n != 0 || err != c.want {
			t.Errorf("%s: %d, %v; want %v", c.name, n, err, c.want)
		}
	}
	f, buf := NewFiles(MaxFiles), make([]byte, 9)
	if n, err := k.ReadFiles(b, buf, f); n != 0 || err != unix.EAGAIN {
		t.Errorf("reads %d, %v", n, err)
	}
	if n, err := k.WriteFiles(a, vectorOf("x"), tr.times(MaxFiles)); n != 1 || err != nil {
		t.Errorf("writes %d, %v", n, err)
	}
	if n, err := k.ReadFiles(b, buf, f); n != 1 || err != nil || len(f.FDs) != MaxFiles || f.Truncated {
		t.Errorf("reads %d, %v with %d, truncated %v", n, err, len(f.FDs), f.Truncated)
	}
	closeAll(t, f.FDs)
}

// TestFilesApart: "Bytes behind those of a message with descriptors are left for the next call". A Read loses
// descriptors, and leaves none open.
func TestFilesApart(t *testing.T) {
	t.Parallel()
	k := New()
	a, b := pair(t)
	tr := newTracer(t)
	defer tr.closed(t)
	write := func(text string, files int) {
		t.Helper()
		if n, err := k.WriteFiles(a, vectorOf(text), tr.times(files)); n != len(text) || err != nil {
			t.Fatalf("writes %d, %v", n, err)
		}
	}
	write("two", 2)
	write("none", 0)
	write("one", 1)
	write("lost", 3)
	f, buf := NewFiles(4), make([]byte, 64)
	files := 0
	for _, want := range []string{"two", "noneone"} {
		n, err := k.ReadFiles(b, buf, f)
		if string(buf[:n]) != want || err != nil {
			t.Errorf("reads %q, %v; want %q", buf[:n], err, want)
		}
		files += len(f.FDs)
		closeAll(t, f.FDs)
	}
	if files != 3 {
		t.Errorf("%d descriptors, want 3", files)
	}
	if n, err := k.Read(b, buf); n != 4 || err != nil {
		t.Errorf("reads %d, %v", n, err)
	}
	if n, err := k.ReadFiles(b, buf, f); n != 0 || err != unix.EAGAIN || len(f.FDs) != 0 {
		t.Errorf("reads %d, %v with %v", n, err, f.FDs)
	}
}

// TestFilesInParts: "go with the first byte", whatever the reader has room for.
func TestFilesInParts(t *testing.T) {
	t.Parallel()
	k := New()
	a, b := pair(t)
	tr := newTracer(t)
	defer tr.closed(t)
	if _, err := k.WriteFiles(a, vectorOf("xy"), tr.times(1)); err != nil {
		t.Fatal(err)
	}
	f := NewFiles(4)
	for _, want := range []int{1, 0} {
		if n, err := k.ReadFiles(b, make([]byte, 1), f); n != 1 || err != nil || len(f.FDs) != want {
			t.Errorf("reads %d, %v with %v, want %d", n, err, f.FDs, want)
		}
		closeAll(t, f.FDs)
	}
}

// TestFilesLimit has a process that may open two more descriptors, and then none: "there were more than … the
// process may have open: they are closed". It runs alone, as the limit is the process's.
func TestFilesLimit(t *testing.T) {
	k := New()
	a, b := pair(t)
	tr := newTracer(t)
	defer tr.closed(t)
	for range 2 {
		if _, err := k.WriteFiles(a, vectorOf("x"), tr.times(4)); err != nil {
			t.Fatal(err)
		}
	}
	limitFiles(t, highestFile(t)+8)
	filler := fillFiles(t)
	closeAll(t, filler[:2])
	f, buf := NewFiles(8), make([]byte, 8)
	var taken []int
	for _, want := range []int{2, 0} {
		n, err := k.ReadFiles(b, buf, f)
		if n != 1 || err != nil || len(f.FDs) != want || !f.Truncated {
			t.Errorf("reads %d, %v with %v, truncated %v; want %d", n, err, f.FDs, f.Truncated, want)
		}
		taken = append(taken, f.FDs...)
	}
	closeAll(t, append(taken, filler[2:]...))
}

func limitFiles(t *testing.T, n int) {
	t.Helper()
	var was unix.Rlimit
	if err := unix.Prlimit(0, unix.RLIMIT_NOFILE, nil, &was); err != nil {
		t.Fatal(err)
	}
	if err := unix.Prlimit(0, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(n), Max: was.Max}, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Prlimit(0, unix.RLIMIT_NOFILE, &was, nil); err != nil {
			t.Error(err)
		}
	})
}

// fillFiles opens as many descriptors as the process may.
func fillFiles(t *testing.T) (fds []int) {
	t.Helper()
	for {
		fd, err := unix.Open("/dev/null", unix.O_CLOEXEC, 0)
		if err == unix.EMFILE {
			return fds
		}
		if err != nil {
			t.Fatal(err)
		}
		fds = append(fds, fd)
	}
}

func highestFile(t *testing.T) (highest int) {
	t.Helper()
	for _, fd := range openFiles(t) {
		highest = max(highest, fd)
	}
	return highest
}

func openFiles(t *testing.T) (fds []int) {
	t.Helper()
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil && err != io.EOF {
		t.Fatal(err)
	}
	for _, name := range names {
		if fd, err := strconv.Atoi(name); err == nil && fd != int(dir.Fd()) {
			fds = append(fds, fd)
		}
	}
	return fds
}
