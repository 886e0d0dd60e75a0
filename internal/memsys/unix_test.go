package memsys_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/weirnet/weir/internal/sys"
)

func (h *host) unix() int { return h.socket(sys.UnixFamily, sys.UnixStream) }

// named makes a socket with a name.
func (h *host) named(k sys.Kind, name string) int {
	h.Helper()
	fd := h.socket(sys.UnixFamily, k)
	h.must(h.k.BindUnix(fd, name))
	return fd
}

// unixPair makes a connection by way of a listener at an abstract name.
func (h *host) unixPair() (client, server int) {
	h.Helper()
	l := h.named(sys.UnixStream, "@pair")
	h.must(h.k.Listen(l, 1))
	client = h.unix()
	h.must(h.k.ConnectUnix(client, "@pair"))
	server = h.accepts(l)
	h.must(h.k.Close(l))
	return client, server
}

func (h *host) names(fd int, local, remote string) {
	h.Helper()
	if got, err := h.k.LocalUnix(fd); got != local || err != nil {
		h.Fatalf("LocalUnix is %q, %v; want %q", got, err, local)
	}
	if got, err := h.k.RemoteUnix(fd); got != remote || err != nil {
		h.Fatalf("RemoteUnix is %q, %v; want %q", got, err, remote)
	}
}

// TestUnixStates has the states of UnixStream sockets and how Linux 6.18 answers in each.
func TestUnixStates(t *testing.T) {
	for name, run := range map[string]func(h *host){
		"new": func(h *host) {
			fd := h.unix()
			h.isReady(fd, "WH")
			h.reads(fd, "", syscall.EINVAL)
			h.refuses(fd, syscall.ENOTCONN)
			h.want(h.k.Listen(fd, 1), syscall.EINVAL)
			_, err := h.k.RemoteUnix(fd)
			h.want(err, syscall.ENOTCONN)
			h.must(h.k.CloseWrite(fd))
			h.refuses(fd, syscall.ENOTCONN)
		},
		"connected": func(h *host) {
			l := h.named(sys.UnixStream, "p1")
			h.must(h.k.Listen(l, 1))
			h.isReady(l, "")
			c := h.unix()
			h.must(h.k.ConnectUnix(c, "p1"))
			h.isReady(c, "W")
			h.isReady(l, "R")
			h.want(h.k.ConnectUnix(c, "p1"), syscall.EISCONN)
			h.want(h.k.Listen(c, 1), syscall.EINVAL)
			h.must(h.k.BindUnix(c, "uu"))
			h.want(h.k.BindUnix(c, "ua"), syscall.EINVAL)
			h.writes(c, "abc")
			s, peer, err := h.k.Accept(l)
			h.must(err)
			if peer.IsValid() {
				h.Errorf("peer is %v", peer)
			}
			h.reads(s, "abc", nil)
			h.names(s, "p1", "uu")
			h.names(c, "uu", "p1")
		},
		"ended on one side": func(h *host) {
			c, s := h.unixPair()
			h.must(h.k.CloseWrite(c))
			h.isReady(c, "W")
			h.isReady(s, "RW")
			h.refuses(c, syscall.EPIPE)
			h.writes(s, "zz")
			h.reads(c, "zz", nil)
			h.must(h.k.CloseWrite(s))
			h.isReady(c, "RWH")
			h.isReady(s, "RWH")
			h.must(h.k.CloseWrite(c))
		},
		"closed by the peer": func(h *host) {
			c, s := h.unixPair()
			h.writes(c, "22")
			h.must(h.k.Close(c))
			h.isReady(s, "RWH")
			h.refuses(s, syscall.EPIPE)
			h.reads(s, "22", nil)
			h.reads(s, "", nil)
			h.names(s, "@pair", "")
		},
		"closed with unread bytes": func(h *host) {
			c, s := h.unixPair()
			h.writes(s, "unread")
			h.writes(c, "22")
			h.must(h.k.Close(c))
			h.isReady(s, "RWFH")
			h.refuses(s, syscall.EPIPE)
			h.reads(s, "22", nil)
			h.reads(s, "", syscall.ECONNRESET)
			h.reads(s, "", nil)
			h.isReady(s, "RWH")
		},
		"in the queue of a closed listener": func(h *host) {
			l := h.named(sys.UnixStream, "p")
			h.must(h.k.Listen(l, 1))
			c := h.unix()
			h.must(h.k.ConnectUnix(c, "p"))
			h.must(h.k.Close(l))
			h.isReady(c, "RWFH")
			h.reads(c, "", syscall.ECONNRESET)
			h.reads(c, "", nil)
			h.refuses(c, syscall.EPIPE)
		},
		"closed before it was accepted": func(h *host) {
			l := h.named(sys.UnixStream, "p")
			h.must(h.k.Listen(l, 1))
			c := h.unix()
			h.must(h.k.ConnectUnix(c, "p"))
			h.writes(c, "bye")
			h.must(h.k.Close(c))
			s := h.accepts(l)
			h.isReady(s, "RWH")
			h.reads(s, "bye", nil)
			h.reads(s, "", nil)
		},
		"full backlog": func(h *host) {
			l := h.named(sys.UnixStream, "p")
			h.must(h.k.Listen(l, 1))
			for _, want := range []error{nil, nil, syscall.EAGAIN} {
				if err := h.k.ConnectUnix(h.unix(), "p"); err != want {
					h.Errorf("ConnectUnix answers %v, want %v", err, want)
				}
			}
		},
		"full buffer": func(h *host) {
			c, s := h.unixPair()
			h.set(c, sys.SendBuffer, 10_000)
			if total := h.fill(c); total != 20_000 {
				h.Errorf("%d bytes fit", total)
			}
			h.isReady(c, "")
			h.drain(s, 14_999)
			h.isReady(c, "")
			h.drain(s, 1)
			h.isReady(c, "W")
			h.fill(c)
			h.must(h.k.Close(s))
			h.isReady(c, "RWFH")
		},
	} {
		t.Run(name, func(t *testing.T) { run(newHost(t)) })
	}
}

func TestUnixNames(t *testing.T) {
	h := newHost(t)
	fd := h.unix()
	for name, want := range map[string]error{
		"":                             syscall.EINVAL,
		"@" + strings.Repeat("a", 108): syscall.EINVAL,
		"a\x00b":                       syscall.EINVAL,
		strings.Repeat("a", 256):       syscall.ENAMETOOLONG,
		strings.Repeat("a/", 2048):     syscall.ENAMETOOLONG,
	} {
		if err := h.k.BindUnix(fd, name); err != want {
			t.Errorf("%d bytes: %v, want %v", len(name), err, want)
		}
	}
	h.want(h.k.BindUnix(h.tcp(), "p"), syscall.EAFNOSUPPORT)
	h.must(h.k.BindUnix(fd, "./dir/../p"))
	h.want(h.k.BindUnix(h.unix(), "p"), syscall.EADDRINUSE)
	h.want(h.k.BindUnix(h.unix(), "p/q"), syscall.ENOTDIR)
	h.want(h.k.ConnectUnix(h.unix(), "p"), syscall.ECONNREFUSED)
	h.want(h.k.ConnectUnix(h.unix(), "none"), syscall.ENOENT)
	h.want(h.k.ConnectUnix(h.unix(), "@none"), syscall.ECONNREFUSED)
	h.want(h.k.ConnectUnix(h.unix(), ""), syscall.EINVAL)
	h.named(sys.Unixgram, "@gram")
	h.want(h.k.ConnectUnix(h.unix(), "@gram"), syscall.EPROTOTYPE)
	h.must(h.k.Close(fd))
	h.want(h.k.ConnectUnix(h.unix(), "p"), syscall.ECONNREFUSED)
	h.want(h.k.BindUnix(h.unix(), "p"), syscall.EADDRINUSE)
	h.must(h.k.UnlinkUnix("p"))
	h.want(h.k.UnlinkUnix("p"), syscall.ENOENT)
	h.want(h.k.ConnectUnix(h.unix(), "p"), syscall.ENOENT)
	second := h.named(sys.UnixStream, "p")

	h.must(h.k.UnlinkUnix("p"))
	third := h.named(sys.UnixStream, "p")
	h.must(h.k.Listen(third, 1))
	h.must(h.k.Close(second)) // whose name is another's by now
	h.must(h.k.ConnectUnix(h.unix(), "p"))

	abstract := h.named(sys.UnixStream, "@"+strings.Repeat("a", 107))
	h.must(h.k.Close(abstract))
	h.named(sys.UnixStream, "@"+strings.Repeat("a", 107))
}
