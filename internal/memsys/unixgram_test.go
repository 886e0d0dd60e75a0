package memsys_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/weirnet/weir/internal/sys"
)

// post sends one datagram and expects the answer.
func (h *host) post(fd int, text, to string, want error) {
	h.Helper()
	h.want(h.k.SendUnix(fd, []byte(text), to), want)
}

// gets expects one datagram.
func (h *host) gets(fd int, want, wantFrom string) {
	h.Helper()
	b := make([]byte, 100)
	n, from, flags, err := h.k.RecvUnix(fd, b)
	if string(b[:n]) != want || from != wantFrom || flags != 0 || err != nil {
		h.Fatalf("RecvUnix answers %q from %q, %v, %v; want %q from %q", b[:n], from, flags, err, want, wantFrom)
	}
}

func (h *host) getsNone(fd int, want error) {
	h.Helper()
	_, _, _, err := h.k.RecvUnix(fd, make([]byte, 100))
	h.want(err, want)
}

// TestUnixgrams has how Linux 6.18 answers.
func TestUnixgrams(t *testing.T) {
	for name, run := range map[string]func(h *host){
		"new": func(h *host) {
			fd := h.socket(sys.UnixFamily, sys.Unixgram)
			h.isReady(fd, "W")
			h.post(fd, "x", "", syscall.ENOTCONN)
			h.getsNone(fd, syscall.EAGAIN)
			h.post(fd, "x", "none", syscall.ENOENT)
			h.want(h.k.ConnectUnix(fd, "none"), syscall.ENOENT)
			h.want(h.k.Listen(fd, 1), syscall.EOPNOTSUPP)
			h.must(h.k.ConnectUnix(fd, ""))
		},
		"names": func(h *host) {
			a, b := h.named(sys.Unixgram, "a"), h.socket(sys.UnixFamily, sys.Unixgram)
			h.post(b, "", "a", nil)
			h.isReady(a, "RW")
			h.gets(a, "", "")
			h.must(h.k.BindUnix(b, "@b"))
			h.must(h.k.ConnectUnix(b, "a"))
			h.names(b, "@b", "a")
			h.post(b, "hello", "", nil)
			h.gets(a, "hello", "@b")
			h.post(b, "hello", "", nil)
			n, _, flags, err := h.k.RecvUnix(a, make([]byte, 2))
			if n != 2 || flags != sys.Truncated || err != nil {
				h.Errorf("RecvUnix answers %d, %v, %v", n, flags, err)
			}
		},
		"full queue": func(h *host) {
			r := h.named(sys.Unixgram, "r")
			c, other := h.socket(sys.UnixFamily, sys.Unixgram), h.socket(sys.UnixFamily, sys.Unixgram)
			h.must(h.k.ConnectUnix(c, "r"))
			for range 11 {
				h.post(other, "x", "r", nil)
			}
			h.post(other, "x", "r", syscall.EAGAIN)
			h.isReady(other, "W")
			h.isReady(c, "")
			h.post(c, "x", "", syscall.EAGAIN)
			h.gets(r, "x", "")
			h.isReady(c, "W")
			h.post(c, "y", "", nil)
			h.isReady(c, "")
			h.must(h.k.Close(r))
			h.isReady(c, "W")
			h.post(c, "z", "", syscall.ECONNREFUSED)
			h.post(c, "z", "", syscall.ENOTCONN)
			h.post(other, "x", "r", syscall.ECONNREFUSED)
		},
		"own buffer": func(h *host) {
			r, c := h.named(sys.Unixgram, "r"), h.socket(sys.UnixFamily, sys.Unixgram)
			h.post(c, strings.Repeat("x", 212_961), "r", syscall.EMSGSIZE)
			h.post(c, strings.Repeat("x", 212_960), "r", nil)
			h.isReady(c, "")
			h.post(c, "x", "r", syscall.EAGAIN)
			h.getsNone(r, nil)
			h.isReady(c, "W")
			h.set(c, sys.SendBuffer, 1)
			for _, want := range []error{nil, nil, syscall.EAGAIN} {
				h.post(c, strings.Repeat("x", 1000), "r", want)
			}
		},
		"of each other": func(h *host) {
			a, b := h.named(sys.Unixgram, "a"), h.named(sys.Unixgram, "b")
			h.must(h.k.ConnectUnix(a, "b"))
			h.must(h.k.ConnectUnix(b, "a"))
			for range 278 {
				h.post(a, "x", "", nil)
			}
			h.post(a, "x", "", syscall.EAGAIN)
			for range 208 {
				h.gets(b, "x", "a")
			}
			h.isReady(a, "")
			h.gets(b, "x", "a")
			h.isReady(a, "W")
			third := h.named(sys.Unixgram, "c")
			h.post(third, "x", "a", syscall.EPERM)
			h.want(h.k.ConnectUnix(third, "a"), syscall.EPERM)
		},
		"left by the peer": func(h *host) {
			a, b := h.named(sys.Unixgram, "a"), h.named(sys.Unixgram, "b")
			h.named(sys.Unixgram, "c")
			h.must(h.k.ConnectUnix(a, "b"))
			h.must(h.k.ConnectUnix(b, "a"))
			h.post(a, "1", "", nil)
			h.post(b, "2", "", nil)
			h.must(h.k.ConnectUnix(a, "c"))
			h.isReady(b, "RWF")
			h.getsNone(b, syscall.ECONNRESET)
			h.gets(b, "1", "a")
			h.getsNone(a, syscall.EAGAIN)
			h.post(b, "x", "", syscall.EPERM)
		},
		"closed by the peer": func(h *host) {
			a, b := h.named(sys.Unixgram, "a"), h.named(sys.Unixgram, "b")
			h.must(h.k.ConnectUnix(a, "b"))
			h.must(h.k.ConnectUnix(b, "a"))
			h.post(b, "last", "", nil)
			h.must(h.k.Close(b))
			h.isReady(a, "RW")
			h.gets(a, "last", "b")
			h.getsNone(a, syscall.EAGAIN)
			h.post(a, "x", "", syscall.ECONNREFUSED)
			_, err := h.k.RemoteUnix(a)
			h.want(err, syscall.ENOTCONN)
		},
		"ended": func(h *host) {
			a, b := h.named(sys.Unixgram, "a"), h.named(sys.Unixgram, "b")
			h.must(h.k.CloseWrite(a))
			h.post(a, "x", "b", syscall.EPIPE)
			h.isReady(a, "W")
			h.must(h.BlockSends(b, true))
			h.post(b, "x", "a", syscall.EAGAIN)
		},
	} {
		t.Run(name, func(t *testing.T) { run(newHost(t)) })
	}
}

func TestUnixgramsDoNotAllocate(t *testing.T) {
	h := newHost(t)
	a, b := h.named(sys.Unixgram, "a"), h.named(sys.Unixgram, "b")
	h.must(h.k.ConnectUnix(a, "b"))
	payload, room := make([]byte, 1000), make([]byte, 1000)
	once := func() {
		if err := h.k.SendUnix(a, payload, ""); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := h.k.RecvUnix(b, room); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(100, once); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
