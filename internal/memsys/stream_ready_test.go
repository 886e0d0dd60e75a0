package memsys_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
)

// TestStreamsWake: a poller that found nothing hears of what others' calls, and the own ones, make ready.
func TestStreamsWake(t *testing.T) {
	for name, run := range map[string]func(h *host) (fd int, quiet, loud poll.Ready, act func()){
		"room for a writer": func(h *host) (int, poll.Ready, poll.Ready, func()) {
			from, to := h.small()
			h.fill(from)
			return from, 0, poll.Writable, func() { h.drain(to, 7000) }
		},
		"room for a unix writer": func(h *host) (int, poll.Ready, poll.Ready, func()) {
			from, to := h.unixPair()
			n := h.fill(from)
			return from, 0, poll.Writable, func() { h.drain(to, n) }
		},
		"room for a unix sender": func(h *host) (int, poll.Ready, poll.Ready, func()) {
			r, c := h.named(sys.Unixgram, "r"), h.socket(sys.UnixFamily, sys.Unixgram)
			h.must(h.k.ConnectUnix(c, "r"))
			for range 11 {
				h.post(c, "x", "", nil)
			}
			return c, 0, poll.Writable, func() { h.gets(r, "x", "") }
		},
		"the end behind what was read": func(h *host) (int, poll.Ready, poll.Ready, func()) {
			from, to := h.small()
			h.must(h.BlockSends(to, true))
			h.writes(from, "x")
			h.must(h.k.CloseWrite(from))
			return to, poll.Readable, poll.Readable, func() { h.drain(to, 1) }
		},
		"room in a backlog": func(h *host) (int, poll.Ready, poll.Ready, func()) {
			l, addr := h.listens(0)
			h.dials(addr)
			return h.dials(addr), 0, poll.Writable, func() { h.accepts(l) }
		},
		"a connection": func(h *host) (int, poll.Ready, poll.Ready, func()) {
			l, addr := h.listens(0)
			return l, 0, poll.Readable, func() { h.dials(addr) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			fd, quiet, loud, act := run(h)
			p := h.poller()
			defer p.Close()
			h.must(p.Add(fd, poll.Read|poll.Write, 1))
			events := make([]poll.Event, 1)
			for _, want := range []poll.Ready{quiet, loud} {
				n, err := p.Wait(events, 0)
				h.must(err)
				var got poll.Ready
				if n > 0 {
					got = events[0].Ready
				}
				if got != want {
					t.Fatalf("ready for %b, want %b", got, want)
				}
				act()
				act = func() {}
			}
		})
	}
}

// TestNoLongerWaiting: a client that gave up is not let in.
func TestNoLongerWaiting(t *testing.T) {
	h := newHost(t)
	l, addr := h.listens(0)
	h.dials(addr)
	given := h.dials(addr)
	h.must(h.k.CloseWrite(given))
	h.accepts(l)
	h.isReady(l, "")
	_, err := h.k.RemoteAddr(given)
	h.want(err, syscall.ENOTCONN)
}

// TestSameConnection: two sockets of one address cannot be connected to the same peer.
func TestSameConnection(t *testing.T) {
	h := newHost(t)
	_, addr := h.listens(4)
	first, second := h.tcp(), h.tcp()
	h.set(first, sys.ReuseAddr, 1)
	h.set(second, sys.ReuseAddr, 1)
	h.must(h.k.Bind(first, netip.MustParseAddrPort("127.0.0.1:0")))
	local, err := h.k.LocalAddr(first)
	h.must(err)
	h.must(h.k.Bind(second, local))
	h.want(h.k.Connect(first, addr), syscall.EINPROGRESS)
	h.want(h.k.Connect(second, addr), syscall.EADDRNOTAVAIL)
}

// TestErrorStaysAtTheEndOfAFile: a SendFile that has nothing to send does not take the socket's error.
func TestErrorStaysAtTheEndOfAFile(t *testing.T) {
	h := newHost(t)
	l, addr := h.listens(0)
	h.must(h.k.Close(l))
	c := h.dials(addr)
	name := filepath.Join(t.TempDir(), "empty")
	h.must(os.WriteFile(name, nil, 0o600))
	f, err := os.Open(name)
	h.must(err)
	defer f.Close()
	n, err := h.k.SendFile(c, f, 0, 1, false)
	if n != 0 || err != nil {
		t.Errorf("SendFile answers %d, %v", n, err)
	}
	h.socketError(c, syscall.ECONNREFUSED)
}
