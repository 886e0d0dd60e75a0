package memsys_test

import (
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
)

func (h *host) socket(f sys.Family, k sys.Kind) int {
	h.Helper()
	fd, err := h.k.Socket(f, k)
	h.must(err)
	return fd
}

func (h *host) tcp() int { return h.socket(sys.IPv4, sys.TCP) }

func (h *host) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

func (h *host) want(err, want error) {
	h.Helper()
	if err != want {
		h.Fatalf("error is %v, want %v", err, want)
	}
}

// listens makes a TCP listener, and tells where.
func (h *host) listens(backlog int, options ...sys.Option) (int, netip.AddrPort) {
	h.Helper()
	fd := h.tcp()
	for _, o := range options {
		h.must(h.k.SetOption(fd, o, 1))
	}
	h.must(h.k.Bind(fd, netip.MustParseAddrPort("127.0.0.1:0")))
	h.must(h.k.Listen(fd, backlog))
	addr, err := h.k.LocalAddr(fd)
	h.must(err)
	return fd, addr
}

// dials makes a client whose Connect is in progress or over.
func (h *host) dials(to netip.AddrPort) int {
	h.Helper()
	fd := h.tcp()
	h.want(h.k.Connect(fd, to), syscall.EINPROGRESS)
	return fd
}

func (h *host) accepts(fd int) int {
	h.Helper()
	conn, _, err := h.k.Accept(fd)
	h.must(err)
	return conn
}

// pair makes a TCP connection.
func (h *host) pair() (client, server int) {
	h.Helper()
	l, addr := h.listens(1)
	client = h.dials(addr)
	server = h.accepts(l)
	h.must(h.k.Close(l))
	return client, server
}

func (h *host) writes(fd int, text string) {
	h.Helper()
	n, err := h.write(fd, text)
	if n != len(text) || err != nil {
		h.Fatalf("Write of %d bytes answers %d, %v", len(text), n, err)
	}
}

func (h *host) write(fd int, text string) (int, error) {
	v := sys.NewVector(1)
	v.Bufs = append(v.Bufs, []byte(text))
	return h.k.Write(fd, v, false)
}

// fill writes until there is no room, and tells how much that was.
func (h *host) fill(fd int) (total int) {
	h.Helper()
	for {
		n, err := h.write(fd, strings.Repeat("x", 10_000))
		if err != nil {
			h.want(err, syscall.EAGAIN)
			return total
		}
		total += n
	}
}

func (h *host) read(fd, most int) (string, error) {
	b := make([]byte, most)
	n, err := h.k.Read(fd, b)
	return string(b[:n]), err
}

// reads expects what one Read answers, and how.
func (h *host) reads(fd int, want string, wantErr error) {
	h.Helper()
	got, err := h.read(fd, 100)
	if got != want || err != wantErr {
		h.Fatalf("Read answers %q, %v; want %q, %v", got, err, want, wantErr)
	}
}

// refuses expects that a Write fails so.
func (h *host) refuses(fd int, want error) {
	h.Helper()
	_, err := h.write(fd, "x")
	h.want(err, want)
}

// ready is what a poller says of a descriptor whose events all are wanted.
func (h *host) ready(fd int) string {
	h.Helper()
	p := h.poller()
	defer p.Close()
	h.must(p.Add(fd, poll.Read|poll.Write, 1))
	events := make([]poll.Event, 1)
	n, err := p.Wait(events, 0)
	h.must(err)
	var text strings.Builder
	for i, letter := range "RWFH" {
		if n > 0 && events[0].Ready&(1<<i) != 0 {
			text.WriteRune(letter)
		}
	}
	return text.String()
}

func (h *host) isReady(fd int, want string) {
	h.Helper()
	if got := h.ready(fd); got != want {
		h.Fatalf("ready for %q, want %q", got, want)
	}
}

func (h *host) socketError(fd int, want syscall.Errno) {
	h.Helper()
	got, err := h.k.GetOption(fd, sys.SocketError)
	h.must(err)
	if syscall.Errno(got) != want {
		h.Fatalf("SocketError is %v, want %v", syscall.Errno(got), want)
	}
}

// TestStreamStates has the states of TCP sockets and how Linux 6.18 answers in each.
func TestStreamStates(t *testing.T) {
	for name, run := range map[string]func(h *host){
		"new": func(h *host) {
			fd := h.tcp()
			h.isReady(fd, "WH")
			h.reads(fd, "", syscall.ENOTCONN)
			h.refuses(fd, syscall.EPIPE)
			h.want(h.k.CloseWrite(fd), syscall.ENOTCONN)
		},
		"listening": func(h *host) {
			fd, addr := h.listens(1)
			h.isReady(fd, "")
			h.reads(fd, "", syscall.ENOTCONN)
			h.refuses(fd, syscall.EPIPE)
			h.must(h.k.CloseWrite(fd))
			h.want(h.k.Connect(fd, addr), syscall.EISCONN)
			c := h.dials(addr)
			h.isReady(fd, "R")
			h.isReady(c, "W")
		},
		"refused": func(h *host) {
			l, addr := h.listens(1)
			h.must(h.k.Close(l))
			c := h.dials(addr)
			h.isReady(c, "RWFH")
			h.socketError(c, syscall.ECONNREFUSED)
			h.isReady(c, "RWH")
			h.reads(c, "", nil)
			h.refuses(c, syscall.EPIPE)
			h.want(h.k.Connect(c, addr), syscall.ECONNABORTED)
			h.isReady(c, "WH")
			h.want(h.k.Connect(c, addr), syscall.EINPROGRESS)
			h.want(h.k.Connect(c, addr), syscall.ECONNREFUSED)
		},
		"asked again": func(h *host) {
			_, addr := h.listens(1)
			c := h.dials(addr)
			h.must(h.k.Connect(c, addr))
			h.want(h.k.Connect(c, addr), syscall.EISCONN)
			h.want(h.k.Listen(c, 1), syscall.EINVAL)
		},
		"closed by the peer": func(h *host) {
			c, s := h.pair()
			h.writes(c, "hi")
			h.must(h.k.Close(c))
			h.isReady(s, "RW")
			h.reads(s, "hi", nil)
			h.reads(s, "", nil)
			h.writes(s, "x")
			h.isReady(s, "RWFH")
			h.reads(s, "", nil)
			h.refuses(s, syscall.EPIPE)
			h.isReady(s, "RWH")
			h.refuses(s, syscall.EPIPE)
			_, err := h.k.RemoteAddr(s)
			h.want(err, syscall.ENOTCONN)
		},
		"closed with unread bytes": func(h *host) {
			c, s := h.pair()
			h.writes(s, "unread")
			h.writes(c, "yy")
			h.must(h.k.Close(c))
			h.isReady(s, "RWFH")
			h.reads(s, "yy", nil)
			h.reads(s, "", syscall.ECONNRESET)
			h.reads(s, "", nil)
			h.refuses(s, syscall.EPIPE)
		},
		"reset seen by a write": func(h *host) {
			c, s := h.pair()
			h.must(h.k.SetOption(c, sys.Linger, 0))
			h.must(h.k.Close(c))
			h.refuses(s, syscall.ECONNRESET)
			h.refuses(s, syscall.EPIPE)
			h.reads(s, "", nil)
		},
		"ended, then reset": func(h *host) {
			c, s := h.pair()
			h.writes(s, "unread")
			h.must(h.k.CloseWrite(c))
			h.must(h.k.Close(c))
			h.isReady(s, "RWFH")
			h.socketError(s, syscall.EPIPE)
			h.reads(s, "", nil)
		},
		"ended on both sides": func(h *host) {
			c, s := h.pair()
			h.must(h.k.CloseWrite(c))
			h.isReady(c, "W")
			h.isReady(s, "RW")
			h.refuses(c, syscall.EPIPE)
			h.writes(s, "z")
			h.reads(c, "z", nil)
			h.must(h.k.CloseWrite(c))
			h.must(h.k.CloseWrite(s))
			h.isReady(c, "RWH")
			h.isReady(s, "RWH")
			h.want(h.k.CloseWrite(c), syscall.ENOTCONN)
			h.reads(c, "", nil)
			_, err := h.k.RemoteAddr(s)
			h.want(err, syscall.ENOTCONN)
		},
		"in the queue of a closed listener": func(h *host) {
			l, addr := h.listens(1)
			c := h.dials(addr)
			h.must(h.k.Close(l))
			h.isReady(c, "RWFH")
			h.reads(c, "", syscall.ECONNRESET)
		},
		"closed before it was accepted": func(h *host) {
			l, addr := h.listens(1)
			c := h.dials(addr)
			h.writes(c, "hey")
			h.must(h.k.Close(c))
			s := h.accepts(l)
			h.reads(s, "hey", nil)
			h.reads(s, "", nil)
		},
		"reset before it was accepted": func(h *host) {
			l, addr := h.listens(1)
			c := h.dials(addr)
			h.writes(c, "hey")
			h.must(h.k.SetOption(c, sys.Linger, 0))
			h.must(h.k.Close(c))
			s := h.accepts(l)
			h.isReady(s, "RWFH")
			h.reads(s, "hey", nil)
			h.reads(s, "", syscall.ECONNRESET)
		},
		"with itself": func(h *host) {
			c := h.tcp()
			h.must(h.k.Bind(c, netip.MustParseAddrPort("127.0.0.1:0")))
			addr, err := h.k.LocalAddr(c)
			h.must(err)
			h.want(h.k.Connect(c, addr), syscall.EINPROGRESS)
			h.writes(c, "abc")
			h.reads(c, "abc", nil)
			h.must(h.k.Close(c))
		},
		"dissolved": func(h *host) {
			c, s := h.pair()
			h.must(h.k.Connect(c, netip.AddrPort{}))
			h.isReady(c, "WFH")
			h.isReady(s, "RWFH")
			h.socketError(s, syscall.ECONNRESET)
		},
	} {
		t.Run(name, func(t *testing.T) { run(newHost(t)) })
	}
}
