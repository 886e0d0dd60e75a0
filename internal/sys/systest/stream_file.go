package systest

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

var sendFileCases = []assertion{
	{"sendfile: sends from an offset on, and leaves the file's own", func(r *rig) {
		r.eachStream(func(a, b int) {
			f := r.file("0123456789")
			_, err := f.Seek(7, io.SeekStart)
			r.must(err)
			for _, c := range []struct {
				offset int64
				n      int
				want   string
			}{
				{0, 10, "0123456789"}, {0, 1, "0"}, {4, 3, "456"}, {9, 1, "9"},
				{8, 100, "89"}, {0, 1 << 20, "0123456789"}, // no more than there is
			} {
				sent, err := r.Kernel.SendFile(a, f, c.offset, c.n, false)
				r.must(err)
				r.equal(sent, len(c.want))
				r.equal(r.read(b, sent), c.want)
			}
			r.readErr(b, syscall.EAGAIN)
			rest, err := io.ReadAll(f)
			r.must(err)
			r.equal(string(rest), "789")
		})
	}},
	{"sendfile: nothing is sent from where the file ends", func(r *rig) {
		r.eachStream(func(a, b int) {
			for text, offsets := range map[string][]int64{"0123456789": {10, 11, 1 << 40}, "": {0, 1}} {
				f := r.file(text)
				for _, offset := range offsets {
					sent, err := r.Kernel.SendFile(a, f, offset, 5, false)
					r.must(err)
					r.equal(sent, 0)
				}
			}
			r.readErr(b, syscall.EAGAIN)
		})
	}},
	{"sendfile: sends what has been added to the file", func(r *rig) {
		a, b := r.tcpPair()
		f := r.file("old")
		r.sendFile(a, f, 0, 3)
		_, err := f.WriteAt([]byte("new"), 3)
		r.must(err)
		r.sendFile(a, f, 3, 3)
		r.equal(r.read(b, 6), "oldnew")
	}},
	{"sendfile: keeps its place among writes", func(r *rig) {
		r.eachStream(func(a, b int) {
			f := r.file("file")
			_, err := r.Kernel.Write(a, vector("head "), true)
			r.must(err)
			sent, err := r.Kernel.SendFile(a, f, 0, 4, true)
			r.must(err)
			r.equal(sent, 4)
			r.write(a, " tail")
			r.equal(r.read(b, 14), "head file tail")
		})
	}},
	{"sendfile: sends as much as there is room for, then EAGAIN, and goes on", func(r *rig) {
		r.eachStream(func(a, b int) {
			const size = 6 << 20
			data := pattern(size)
			f := r.file(string(data))
			sent, got := 0, make([]byte, 0, size)
			refused := false
			r.eventually("all comes", func() bool {
				for sent < size {
					n, err := r.Kernel.SendFile(a, f, int64(sent), size-sent, false)
					if err == syscall.EAGAIN {
						r.equal(n, 0)
						refused = true
						break
					}
					r.must(err)
					sent += n
				}
				s, err := r.tryRead(b, size)
				for ; err == nil; s, err = r.tryRead(b, size) {
					got = append(got, s...)
				}
				r.want(err, syscall.EAGAIN)
				return len(got) == size
			})
			if string(got) != string(data) {
				r.Error("the bytes are not those of the file")
			}
			if !refused {
				r.Error("there was room for all")
			}
		})
	}},
	{"sendfile: errors are those of Write", func(r *rig) {
		f := r.file("0123456789")
		a, b := r.tcpPair()
		c, d := r.unixPair()
		fresh := r.tcp(addr("127.0.0.1:0"))
		r.must(r.Kernel.CloseWrite(a))
		r.must(r.Kernel.Close(d))
		for _, fd := range []int{a, c, fresh} {
			r.sendFileErr(fd, f, syscall.EPIPE)
		}
		r.sendFile(b, f, 0, 3)
		r.equal(r.read(a, 3), "012")

		a, b = r.tcpPair()
		r.reset(a)
		r.becomes(b, everything)
		r.sendFileErr(b, f, syscall.ECONNRESET)
		r.sendFileErr(b, f, syscall.EPIPE)
	}},
	{"sendfile: what is no file that can be mapped is refused, and nothing is sent", func(r *rig) {
		a, b := r.tcpPair()
		in, out, err := os.Pipe()
		r.must(err)
		defer in.Close()
		defer out.Close()
		dir, err := os.Open(filepath.Dir(r.file("x").Name()))
		r.must(err)
		defer dir.Close()
		for _, f := range []*os.File{in, dir} {
			sent, err := r.Kernel.SendFile(a, f, 0, 5, false)
			r.equal(sent, 0)
			if !cannotSend(err) {
				r.Errorf("%s: error is %v", f.Name(), err)
			}
		}
		r.readErr(b, syscall.EAGAIN)
		r.write(a, "x")
		r.equal(r.read(b, 1), "x")
	}},
}

// cannotSend tells whether it is an error that says: not with this file.
func cannotSend(err error) bool {
	for _, e := range []error{syscall.EINVAL, syscall.ENOSYS, syscall.EOPNOTSUPP, syscall.ESPIPE, sys.ErrUnsupported} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// file makes a file with that text.
func (r *rig) file(text string) *os.File {
	r.Helper()
	f, err := os.Create(r.path())
	r.must(err)
	r.Cleanup(func() { _ = f.Close() })
	_, err = f.WriteAt([]byte(text), 0)
	r.must(err)
	return f
}

func (r *rig) sendFile(fd int, f *os.File, offset int64, n int) {
	r.Helper()
	sent, err := r.Kernel.SendFile(fd, f, offset, n, false)
	r.must(err)
	r.equal(sent, n)
}

func (r *rig) sendFileErr(fd int, f *os.File, want error) {
	r.Helper()
	sent, err := r.Kernel.SendFile(fd, f, 0, 5, false)
	r.equal(sent, 0)
	r.want(err, want)
}
