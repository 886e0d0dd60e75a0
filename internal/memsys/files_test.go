package memsys_test

import (
	"syscall"
	"testing"

	"github.com/weirnet/weir/internal/sys"
)

func (h *host) passes(fd int, text string, files ...int) {
	h.Helper()
	v := sys.NewVector(1)
	v.Bufs = append(v.Bufs, []byte(text))
	if n, err := h.k.WriteFiles(fd, v, files); n != len(text) || err != nil {
		h.Fatalf("WriteFiles answers %d, %v", n, err)
	}
}

// takes expects what one ReadFiles answers, and returns the descriptors.
func (h *host) takes(fd, most, room int, want string, files int, truncated bool) []int {
	h.Helper()
	b, f := make([]byte, most), sys.NewFiles(room)
	n, err := h.k.ReadFiles(fd, b, f)
	if string(b[:n]) != want || len(f.FDs) != files || f.Truncated != truncated || err != nil {
		h.Fatalf("ReadFiles answers %q, %v, %v, %v; want %q and %d", b[:n], f.FDs, f.Truncated, err, want, files)
	}
	return f.FDs
}

// cookie tells which socket it is.
func (h *host) cookie(fd int) uint64 {
	h.Helper()
	d, err := h.k.Describe(fd)
	h.must(err)
	return d.Cookie
}

// TestFiles has what Linux 6.18 does with descriptors and the bytes around them.
func TestFiles(t *testing.T) {
	for name, run := range map[string]func(h *host){
		"barrier": func(h *host) {
			c, s := h.unixPair()
			u, v := h.tcp(), h.tcp()
			h.writes(c, "ab")
			h.passes(c, "cd", u, v)
			h.writes(c, "ef")
			got := h.takes(s, 10, 4, "abcd", 2, false)
			if h.cookie(got[0]) != h.cookie(u) || h.cookie(got[1]) != h.cookie(v) || got[0] == u {
				h.Errorf("got %v of %d and %d", got, u, v)
			}
			h.takes(s, 10, 4, "ef", 0, false)
		},
		"with the first byte": func(h *host) {
			c, s := h.unixPair()
			h.passes(c, "cdef", c, s)
			h.passes(c, "gh", c)
			h.takes(s, 2, 4, "cd", 2, false)
			h.takes(s, 2, 4, "ef", 0, false)
			h.takes(s, 10, 4, "gh", 1, false)
		},
		"no room": func(h *host) {
			c, s := h.unixPair()
			h.passes(c, "cd", c, c, c)
			h.takes(s, 10, 1, "cd", 1, true)
		},
		"plain read": func(h *host) {
			c, s := h.unixPair()
			h.writes(c, "ab")
			h.passes(c, "cd", c)
			h.writes(c, "ef")
			h.reads(s, "abcd", nil)
			h.takes(s, 10, 1, "ef", 0, false)
		},
		"too many open": func(h *host) {
			c, s := h.unixPair()
			h.passes(c, "x", c, c)
			h.SetMaxDescriptors(3)
			h.takes(s, 10, 4, "x", 1, true)
		},
		"refused": func(h *host) {
			c, s := h.unixPair()
			v := sys.NewVector(1)
			v.Bufs = append(v.Bufs, []byte("x"))
			write := func(files []int, want error) {
				h.Helper()
				_, err := h.k.WriteFiles(c, v, files)
				h.want(err, want)
			}
			write(make([]int, 254), syscall.EINVAL)
			write([]int{999}, syscall.EBADF)
			h.SetMaxDescriptors(2)
			write([]int{c, c, c}, nil)
			write([]int{c}, syscall.ETOOMANYREFS)
			h.must(h.k.Close(s))
			write([]int{c}, syscall.EPIPE)
			write([]int{999}, syscall.EBADF)
		},
	} {
		t.Run(name, func(t *testing.T) { run(newHost(t)) })
	}
}

// TestFilesInFlight: a descriptor on its way keeps its socket, and one that nobody takes ends it.
func TestFilesInFlight(t *testing.T) {
	h := newHost(t)
	c, s := h.unixPair()
	near, far := h.pair()
	h.passes(c, "x", near)
	h.must(h.k.Close(near))
	h.isReady(far, "W")
	got := h.takes(s, 1, 1, "x", 1, false)
	h.writes(far, "still here")
	h.reads(got[0], "still here", nil)

	h.passes(c, "x", got[0])
	h.must(h.k.Close(got[0]))
	h.must(h.k.Close(s))
	h.isReady(far, "RW")
	h.reads(far, "", nil)
}
