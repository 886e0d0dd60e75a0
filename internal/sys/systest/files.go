package systest

import (
	"slices"
	"strings"
	"syscall"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
)

var filesCases = []assertion{
	{"files: sockets pass through, and work after the sender closed its own", func(r *rig) {
		a, b := r.unixPair()
		udp, from := r.bound("127.0.0.1:0"), r.bound("127.0.0.1:0")
		near, far := r.tcpPair()
		was := []sys.Description{r.describe(udp), r.describe(far)}
		port := r.local(udp)
		r.send(from, "queued", port)
		r.writeFiles(a, "take", udp, far)
		r.must(r.Kernel.Close(udp))
		r.must(r.Kernel.Close(far))
		got := r.readFiles(b, 8, "take", 2)
		for i, fd := range got {
			r.equal(r.describe(fd), was[i])
		}
		r.equal(r.local(got[0]), port)
		r.equal(r.recvText(got[0]), "queued")
		r.send(from, "later", port)
		r.equal(r.recvText(got[0]), "later")
		r.write(near, "to")
		r.write(got[1], "fro")
		r.equal(r.read(got[1], 2), "to")
		r.equal(r.read(near, 3), "fro")
		r.must(r.Kernel.Close(got[1]))
		r.readEnd(near)
	}},
	{"files: the sender keeps its own, and each copy is another descriptor of the same", func(r *rig) {
		a, b := r.unixPair()
		udp := r.bound("127.0.0.1:0")
		r.writeFiles(a, "x", udp, udp)
		got := r.readFiles(b, 8, "x", 2)
		all := []int{udp, got[0], got[1]}
		slices.Sort(all)
		r.equal(len(slices.Compact(all)), 3)
		for _, fd := range all {
			r.equal(r.describe(fd), r.describe(udp))
		}
		r.must(r.Kernel.Close(got[0]))
		r.deliver(r.bound("127.0.0.1:0"), udp, "x")
		r.equal(r.recvText(got[1]), "x")
	}},
	{"files: come in their order", func(r *rig) {
		a, b := r.unixPair()
		var files []int
		var want []sys.Description
		for range 7 {
			fd := r.bound("127.0.0.1:0")
			files, want = append(files, fd), append(want, r.describe(fd))
		}
		r.writeFiles(a, "x", files...)
		for i, fd := range r.readFiles(b, 8, "x", len(files)) {
			r.equal(r.describe(fd), want[i])
		}
	}},
	{"files: come with the first byte", func(r *rig) {
		a, b := r.unixPair()
		watch, passed := r.unixPair()
		r.writeFiles(a, "12345", passed)
		r.readFiles(b, 1, "1", 1)
		r.readFiles(b, 2, "23", 0)
		r.write(a, "6")
		r.readFiles(b, 8, "456", 0)
		r.becomes(watch, poll.Writable)
	}},
	{"files: what is behind those of a message with descriptors is left for the next call", func(r *rig) {
		a, b := r.unixPair()
		fd := r.bound("127.0.0.1:0")
		r.write(a, "11")
		r.writeFiles(a, "22", fd)
		r.write(a, "33")
		r.writeFiles(a, "44", fd, fd)
		r.writeFiles(a, "55", fd, fd, fd)
		r.write(a, "66")
		r.readFiles(b, 64, "1122", 1)
		r.readFiles(b, 64, "3344", 2)
		r.becomes(b, poll.Readable|poll.Writable)
		r.readFiles(b, 64, "55", 3)
		r.readFiles(b, 64, "66", 0)
		r.readFilesErr(b, syscall.EAGAIN)
	}},
	{"files: a vector takes them with all of its buffers", func(r *rig) {
		a, b := r.unixPair()
		n, err := r.Kernel.WriteFiles(a, vector("one", "two", "three"), []int{a})
		r.must(err)
		r.equal(n, 11)
		r.readFiles(b, 64, "onetwothree", 1)
	}},
	{"files: without descriptors it is a Write, and a Read", func(r *rig) {
		a, b := r.unixPair()
		r.readFilesErr(b, syscall.EAGAIN)
		r.writeFiles(a, "by WriteFiles")
		r.equal(r.read(b, 13), "by WriteFiles")
		r.write(a, "by Write")
		r.readFiles(b, 64, "by Write", 0)
		r.must(r.Kernel.CloseWrite(a))
		r.readFiles(b, 64, "", 0)
	}},
	{"files: what there is no room for is closed, and told", func(r *rig) {
		a, b := r.unixPair()
		for _, room := range []int{1, 2, 3} {
			var watch, passed [3]int
			for i := range passed {
				watch[i], passed[i] = r.unixPair()
			}
			r.writeFiles(a, "x", passed[:]...)
			for _, fd := range passed {
				r.must(r.Kernel.Close(fd))
			}
			f := sys.NewFiles(room)
			r.await(b, poll.Readable)
			n, err := r.Kernel.ReadFiles(b, make([]byte, 8), f)
			r.must(err)
			r.equal(n, 1)
			r.equal(len(f.FDs), room)
			r.equal(f.Truncated, room < 3)
			for i := range watch {
				if i >= room {
					r.readEnd(watch[i])
					continue
				}
				r.becomes(watch[i], poll.Writable)
				r.must(r.Kernel.Close(f.FDs[i]))
				r.readEnd(watch[i])
			}
		}
	}},
	{"files: the room says nothing of what was in it before", func(r *rig) {
		a, b := r.unixPair()
		f := sys.NewFiles(1)
		r.equal(f.Room(), 1)
		buf := make([]byte, 8)
		for _, c := range []struct {
			files     []int
			truncated bool
		}{{[]int{a, a}, true}, {nil, false}, {[]int{a}, false}, {[]int{a, a, a}, true}} {
			r.writeFiles(a, "x", c.files...)
			_, err := r.Kernel.ReadFiles(b, buf, f)
			r.must(err)
			r.equal(len(f.FDs), min(len(c.files), 1))
			r.equal(f.Truncated, c.truncated)
		}
		_, err := r.Kernel.ReadFiles(b, buf, f)
		r.want(err, syscall.EAGAIN)
		r.equal(len(f.FDs), 0)
		r.equal(f.Truncated, false)
	}},
	{"files: a plain Read closes them", func(r *rig) {
		a, b := r.unixPair()
		watch, passed := r.unixPair()
		r.writeFiles(a, "123", passed)
		r.must(r.Kernel.Close(passed))
		r.becomes(watch, poll.Writable)
		r.equal(r.read(b, 1), "1")
		r.readEnd(watch)
		r.readFiles(b, 8, "23", 0)
	}},
	{"files: those on their way keep what they are open", func(r *rig) {
		a, b := r.unixPair()
		watch, passed := r.unixPair()
		r.writeFiles(a, "x", passed)
		r.must(r.Kernel.Close(passed))
		r.must(r.Kernel.Close(a))
		r.write(watch, "meanwhile")
		got := r.readFiles(b, 8, "x", 1)[0]
		r.equal(r.read(got, 9), "meanwhile")
		r.becomes(watch, poll.Writable)
		r.must(r.Kernel.Close(got))
		r.readEnd(watch)
		r.readEnd(b)
	}},
	{"files: those on their way are closed when the receiver is", func(r *rig) {
		a, b := r.unixPair()
		watch, passed := r.unixPair()
		near, far := r.tcpPair()
		r.writeFiles(a, "x", passed, far)
		r.must(r.Kernel.Close(passed))
		r.must(r.Kernel.Close(far))
		r.becomes(watch, poll.Writable)
		r.becomes(near, poll.Writable)
		r.must(r.Kernel.Close(b))
		r.readEnd(watch)
		r.readEnd(near)
	}},
	{"files: those on their way are closed with the listener that did not accept", func(r *rig) {
		name := r.path()
		l := r.unixListener(name, 1)
		a := r.unixDial(name)
		watch, passed := r.unixPair()
		r.writeFiles(a, "x", passed)
		r.must(r.Kernel.Close(passed))
		r.becomes(watch, poll.Writable)
		r.must(r.Kernel.Close(l))
		r.readEnd(watch)
	}},
	{"files: an end of the connection itself passes through it", func(r *rig) {
		a, b := r.unixPair()
		r.writeFiles(a, "x", a)
		r.must(r.Kernel.Close(a))
		r.becomes(b, poll.Readable|poll.Writable)
		again := r.readFiles(b, 8, "x", 1)[0]
		r.readErr(b, syscall.EAGAIN)
		r.write(again, "y")
		r.equal(r.read(b, 1), "y")
		r.must(r.Kernel.Close(again))
		r.readEnd(b)
	}},
	{"files: a listener passes through, with what waits at it", func(r *rig) {
		a, b := r.unixPair()
		l := r.listener("127.0.0.1:0", 4)
		first := r.dial(r.local(l))
		r.writeFiles(a, "x", l)
		r.must(r.Kernel.Close(l))
		got := r.readFiles(b, 8, "x", 1)[0]
		r.equal(r.describe(got).Listening, true)
		_, peer := r.acceptFrom(got)
		r.equal(peer, r.local(first))
		second := r.dial(r.local(got))
		_, peer = r.acceptFrom(got)
		r.equal(peer, r.local(second))
	}},
	{"files: 253 go at once, and more are EINVAL, of which nothing goes", func(r *rig) {
		a, b := r.unixPair()
		watch, passed := r.unixPair()
		files := slices.Repeat([]int{passed}, sys.MaxFiles+1)
		r.writeFilesErr(a, syscall.EINVAL, files...)
		r.readFilesErr(b, syscall.EAGAIN)
		r.writeFiles(a, "x", files[:sys.MaxFiles]...)
		r.must(r.Kernel.Close(passed))
		got := r.readFiles(b, 8, "x", sys.MaxFiles)
		for _, fd := range got {
			r.becomes(watch, poll.Writable)
			r.must(r.Kernel.Close(fd))
		}
		r.readEnd(watch)
	}},
	{"files: a descriptor that there is not is EBADF, and nothing goes", func(r *rig) {
		a, b := r.unixPair()
		watch, passed := r.unixPair()
		r.writeFilesErr(a, syscall.EBADF, passed, 1<<20)
		r.readFilesErr(b, syscall.EAGAIN)
		r.must(r.Kernel.Close(passed))
		r.readEnd(watch)
	}},
	{"files: errors are those of Write, and nothing goes", func(r *rig) {
		a, b := r.unixPair()
		watch, passed := r.unixPair()
		sent := r.fill(a)
		r.writeFilesErr(a, syscall.EAGAIN, passed)
		r.equal(r.drain(b), sent)
		r.readFilesErr(b, syscall.EAGAIN)
		r.must(r.Kernel.CloseWrite(a))
		r.writeFilesErr(a, syscall.EPIPE, passed)
		r.must(r.Kernel.Close(a))
		r.writeFilesErr(b, syscall.EPIPE, passed)
		r.writeFilesErr(r.unixSocket(sys.UnixStream), syscall.ENOTCONN, passed)
		r.must(r.Kernel.Close(passed))
		r.readEnd(watch)
	}},
	{"files: all have gone with a short write", func(r *rig) {
		a, b := r.unixPair()
		watch, passed := r.unixPair()
		text := strings.Repeat("x", 8<<20)
		n, err := r.Kernel.WriteFiles(a, vector(text), []int{passed, passed})
		r.must(err)
		if n <= 0 || n >= len(text) {
			r.Fatalf("%d of %d bytes went", n, len(text))
		}
		r.must(r.Kernel.Close(passed))
		for _, fd := range r.readFiles(b, 1, "x", 2) {
			r.becomes(watch, poll.Writable)
			r.must(r.Kernel.Close(fd))
		}
		r.readEnd(watch)
		r.equal(r.drain(b), n-1)
		r.becomes(a, poll.Writable)
	}},
	{"files: a reset is told by ReadFiles", func(r *rig) {
		a, b := r.unixPair()
		r.write(b, "unread")
		r.must(r.Kernel.Close(a))
		r.readFilesErr(b, syscall.ECONNRESET)
		r.readFiles(b, 8, "", 0)
	}},
}

// writeFiles is a WriteFiles that there must be room for.
func (r *rig) writeFiles(fd int, text string, files ...int) {
	r.Helper()
	n, err := r.Kernel.WriteFiles(fd, vector(text), files)
	r.must(err)
	r.equal(n, len(text))
}

// writeFilesErr is a WriteFiles that must fail.
func (r *rig) writeFilesErr(fd int, want error, files ...int) {
	r.Helper()
	n, err := r.Kernel.WriteFiles(fd, vector("refused"), files)
	r.equal(n, 0)
	r.want(err, want)
}

// readFiles is one ReadFiles of at most that many bytes, with room for all descriptors that there can be.
func (r *rig) readFiles(fd, most int, want string, count int) []int {
	r.Helper()
	r.await(fd, poll.Readable)
	f, b := sys.NewFiles(sys.MaxFiles), make([]byte, most)
	n, err := r.Kernel.ReadFiles(fd, b, f)
	r.must(err)
	r.equal(string(b[:n]), want)
	r.equal(len(f.FDs), count)
	r.equal(f.Truncated, false)
	return f.FDs
}

// readFilesErr is a ReadFiles that must fail.
func (r *rig) readFilesErr(fd int, want error) {
	r.Helper()
	f := sys.NewFiles(2)
	n, err := r.Kernel.ReadFiles(fd, make([]byte, 8), f)
	r.want(err, want)
	r.equal(n, 0)
	r.equal(len(f.FDs), 0)
	r.equal(f.Truncated, false)
}
