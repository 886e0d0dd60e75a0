package memsys_test

import (
	"net/netip"
	"syscall"
	"testing"

	"github.com/weirnet/weir/internal/sys"
)

// TestBacklog: "one more" than the backlog fits, and what does not is in progress until Accept makes room.
func TestBacklog(t *testing.T) {
	h := newHost(t)
	l, addr := h.listens(1)
	first, second, third, fourth := h.dials(addr), h.dials(addr), h.dials(addr), h.dials(addr)
	h.isReady(first, "W")
	h.isReady(second, "W")
	h.isReady(third, "")
	h.want(h.k.Connect(third, addr), syscall.EALREADY)
	h.refuses(third, syscall.EAGAIN)
	h.reads(third, "", syscall.EAGAIN)
	_, err := h.k.RemoteAddr(third)
	h.want(err, syscall.ENOTCONN)
	h.accepts(l)
	h.isReady(third, "W")
	h.isReady(fourth, "")
	h.must(h.k.Listen(l, 2))
	h.isReady(fourth, "W")
}

func TestBacklogEnds(t *testing.T) {
	h := newHost(t)
	l, addr := h.listens(0)
	h.dials(addr)
	gone, given, left := h.dials(addr), h.dials(addr), h.dials(addr)
	h.must(h.k.Close(gone))
	h.must(h.k.CloseWrite(given))
	h.isReady(given, "WFH")
	h.isReady(left, "")
	h.must(h.k.Close(l))
	h.isReady(left, "RWFH")
	h.socketError(left, syscall.ECONNREFUSED)
}

func TestAcceptTellsThePeer(t *testing.T) {
	h := newHost(t)
	l := h.socket(sys.IPv6, sys.TCP)
	h.must(h.k.Bind(l, netip.MustParseAddrPort("[::]:0")))
	h.must(h.k.Listen(l, 1))
	bound, err := h.k.LocalAddr(l)
	h.must(err)
	c := h.dials(netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), bound.Port()))
	conn, peer, err := h.k.Accept(l)
	h.must(err)
	local, err := h.k.LocalAddr(c)
	h.must(err)
	if want := netip.AddrPortFrom(netip.AddrFrom16(local.Addr().As16()), local.Port()); peer != want {
		t.Errorf("peer is %v, want %v", peer, want)
	}
	if remote, err := h.k.RemoteAddr(conn); remote != peer || err != nil {
		t.Errorf("RemoteAddr is %v, %v", remote, err)
	}
	if d, err := h.k.Describe(l); !d.Listening || d.Kind != sys.TCP || d.Family != sys.IPv6 || err != nil {
		t.Errorf("the listener is %+v, %v", d, err)
	}
	if d, err := h.k.Describe(conn); d.Listening || err != nil {
		t.Errorf("the connection is %+v, %v", d, err)
	}
}

// TestSharedPorts has what Linux 6.18 answers to a second socket.
func TestSharedPorts(t *testing.T) {
	const a, p = sys.ReuseAddr, sys.ReusePort
	for _, c := range []struct {
		name          string
		first, second []sys.Option
		listens       bool // the first one
		addr          string
		bind, listen  error
	}{
		{"alone", nil, nil, false, "127.0.0.1", syscall.EADDRINUSE, nil},
		{"ReuseAddr, bound", []sys.Option{a}, []sys.Option{a}, false, "127.0.0.1", nil, nil},
		{"ReuseAddr of one", []sys.Option{a}, nil, false, "127.0.0.1", syscall.EADDRINUSE, nil},
		{"ReuseAddr, listening", []sys.Option{a}, []sys.Option{a}, true, "127.0.0.1", syscall.EADDRINUSE, nil},
		{"ReuseAddr, wildcard", []sys.Option{a}, []sys.Option{a}, true, "0.0.0.0", syscall.EADDRINUSE, nil},
		{"ReusePort", []sys.Option{p}, []sys.Option{p}, true, "127.0.0.1", nil, nil},
		{"one of each", []sys.Option{p}, []sys.Option{a}, true, "127.0.0.1", syscall.EADDRINUSE, nil},
		{"other address", nil, nil, true, "127.0.0.2", nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHost(t)
			first, second := h.tcp(), h.tcp()
			for _, o := range c.first {
				h.must(h.k.SetOption(first, o, 1))
			}
			for _, o := range c.second {
				h.must(h.k.SetOption(second, o, 1))
			}
			h.must(h.k.Bind(first, netip.MustParseAddrPort("127.0.0.1:0")))
			if c.listens {
				h.must(h.k.Listen(first, 1))
			}
			at, err := h.k.LocalAddr(first)
			h.must(err)
			h.want(h.k.Bind(second, netip.AddrPortFrom(netip.MustParseAddr(c.addr), at.Port())), c.bind)
			if c.bind == nil {
				h.want(h.k.Listen(second, 1), c.listen)
			}
		})
	}
}

func TestSecondListener(t *testing.T) {
	h := newHost(t)
	first, second := h.tcp(), h.tcp()
	h.must(h.k.SetOption(first, sys.ReuseAddr, 1))
	h.must(h.k.SetOption(second, sys.ReuseAddr, 1))
	h.must(h.k.Bind(first, netip.MustParseAddrPort("127.0.0.1:0")))
	at, err := h.k.LocalAddr(first)
	h.must(err)
	h.must(h.k.Bind(second, at))
	h.must(h.k.Listen(second, 1))
	h.want(h.k.Listen(first, 1), syscall.EADDRINUSE)
}

// TestPortOfConnections: a listener's port is taken as long as its connections are, but for those that share.
func TestPortOfConnections(t *testing.T) {
	for _, shared := range []bool{false, true} {
		h := newHost(t)
		var options []sys.Option
		want := syscall.EADDRINUSE
		if shared {
			options = append(options, sys.ReuseAddr)
			want = 0
		}
		l, addr := h.listens(1, options...)
		h.dials(addr)
		conn := h.accepts(l)
		h.must(h.k.Close(l))
		next := h.tcp()
		h.must(h.k.SetOption(next, sys.ReuseAddr, 1))
		if err := h.k.Bind(next, addr); err != nil && err != want || err == nil && want != 0 {
			t.Errorf("shared %v: Bind answers %v", shared, err)
		}
		h.must(h.k.Close(conn))
		if !shared {
			h.must(h.k.Bind(next, addr))
		}
		h.must(h.k.Listen(next, 1))
	}
}

func TestReusePortSpreads(t *testing.T) {
	h := newHost(t)
	first, addr := h.listens(64, sys.ReusePort)
	second := h.tcp()
	h.must(h.k.SetOption(second, sys.ReusePort, 1))
	h.must(h.k.Bind(second, addr))
	h.must(h.k.Listen(second, 64))
	for range 40 {
		h.dials(addr)
	}
	counts := map[int]int{}
	for _, l := range []int{first, second} {
		for {
			if _, _, err := h.k.Accept(l); err != nil {
				h.want(err, syscall.EAGAIN)
				break
			}
			counts[l]++
		}
	}
	if counts[first]+counts[second] != 40 || counts[first] < 5 || counts[second] < 5 {
		t.Errorf("spread %v", counts)
	}
}

// TestDeferAccept: "a connection enters the queue with its first data", or its end, and is forgotten with a reset.
func TestDeferAccept(t *testing.T) {
	h := newHost(t)
	l, addr := h.listens(8)
	h.must(h.k.SetOption(l, sys.DeferAccept, 5))
	talks, ends, resets, closes := h.dials(addr), h.dials(addr), h.dials(addr), h.dials(addr)
	h.isReady(l, "")
	h.isReady(talks, "W")
	h.must(h.k.SetOption(resets, sys.Linger, 0))
	h.must(h.k.Close(resets))
	h.isReady(l, "")
	h.writes(talks, "first")
	h.isReady(l, "R")
	h.reads(h.accepts(l), "first", nil)
	h.isReady(l, "")
	h.must(h.k.CloseWrite(ends))
	h.reads(h.accepts(l), "", nil)
	h.must(h.k.Close(closes))
	h.reads(h.accepts(l), "", nil)
	_, _, err := h.k.Accept(l)
	h.want(err, syscall.EAGAIN)
	late := h.dials(addr)
	h.must(h.k.Close(l))
	h.isReady(late, "W")
	h.writes(late, "x")
	h.isReady(late, "RWFH")
	h.socketError(late, syscall.ECONNRESET)
}

func TestSetMaxDescriptors(t *testing.T) {
	h := newHost(t)
	l, addr := h.listens(1)
	c := h.dials(addr)
	h.SetMaxDescriptors(2)
	_, _, err := h.k.Accept(l)
	h.want(err, syscall.EMFILE)
	_, err = h.k.Socket(sys.IPv4, sys.TCP)
	h.want(err, syscall.EMFILE)
	_, err = h.k.Duplicate(c)
	h.want(err, syscall.EMFILE)
	h.isReady(l, "R")
	h.SetMaxDescriptors(0)
	h.accepts(l)
	if calls := h.Calls(); calls.Accept != 2 || calls.Listen != 1 {
		t.Errorf("counted %+v", calls)
	}
}

// TestConnectAnswers has what Linux answers at once.
func TestConnectAnswers(t *testing.T) {
	for _, c := range []struct {
		family sys.Family
		local  string // empty: not bound
		to     string
		want   error
	}{
		{sys.IPv4, "", "127.255.255.255:1", syscall.ENETUNREACH},
		{sys.IPv4, "", "224.0.0.1:1", syscall.ENETUNREACH},
		{sys.IPv4, "", "192.0.2.1:1", syscall.ENETUNREACH},
		{sys.IPv4, "127.0.0.1:0", "192.0.2.1:1", syscall.EINVAL},
		{sys.IPv4, "", "127.0.0.1:0", syscall.EINPROGRESS},
		{sys.IPv4, "", "0.0.0.0:1", syscall.EINPROGRESS},
		{sys.IPv4, "", "[::1]:0", syscall.EAFNOSUPPORT},
		{sys.IPv6, "", "127.0.0.1:0", syscall.EINVAL},
		{sys.IPv6, "", "[fe80::1]:1", syscall.EINVAL},
		{sys.IPv6, "", "[::ffff:127.0.0.1]:1", syscall.EINPROGRESS},
		{sys.IPv6, "[::1]:0", "[::ffff:127.0.0.1]:1", syscall.ENETUNREACH},
		{sys.IPv6, "[::ffff:127.0.0.1]:0", "[::1]:0", syscall.EAFNOSUPPORT},
	} {
		h := newHost(t)
		fd := h.socket(c.family, sys.TCP)
		if c.local != "" {
			h.must(h.k.Bind(fd, netip.MustParseAddrPort(c.local)))
		}
		if err := h.k.Connect(fd, netip.MustParseAddrPort(c.to)); err != c.want {
			t.Errorf("%v from %q: %v, want %v", c.to, c.local, err, c.want)
		}
	}
}
