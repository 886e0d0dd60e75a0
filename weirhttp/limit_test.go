package weirhttp

import (
	"context"
	"net"
	"net/netip"
	"testing"
)

func TestLimits(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		s    *Server
		want limits
	}{
		"defaults":           {&Server{}, limits{65536, 1024, 1024, 64}},
		"few connections":    {&Server{MaxConns: 100}, limits{100, 50, 50, 25}},
		"one connection":     {&Server{MaxConns: 1}, limits{1, 1, 1, 1}},
		"as they are":        {&Server{MaxConns: 1000, MaxConnsPerSource: 900, MaxHandshakes: 300, MaxHandshakesPerSource: 100}, limits{1000, 900, 300, 100}},
		"no source fills it": {&Server{MaxHandshakes: 10, MaxHandshakesPerSource: -1}, limits{65536, 1024, 10, 5}},
		"none": {&Server{MaxConns: -1, MaxConnsPerSource: -1, MaxHandshakes: -1, MaxHandshakesPerSource: -1},
			limits{unlimited, unlimited, unlimited / 2, unlimited / 4}},
	} {
		if got := tt.s.limits(); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

func TestSourceOf(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"192.0.2.7:1":                "192.0.2.7",
		"[::ffff:192.0.2.7]:1":       "192.0.2.7",
		"[2001:db8:1:2:3:4:5:6]:1":   "2001:db8:1:2::",
		"[2001:db8:1:2:ffff::]:1":    "2001:db8:1:2::",
		"[fe80::1%1]:1":              "fe80::",
		"[2001:db8:1:3:3:4:5:6]:443": "2001:db8:1:3::",
	} {
		a := netip.MustParseAddrPort(in)
		for _, from := range []net.Addr{net.TCPAddrFromAddrPort(a), net.UDPAddrFromAddrPort(a), textAddr(in)} {
			if got := sourceOf(from); got != netip.MustParseAddr(want) {
				t.Errorf("%T %s: %v, want %s", from, in, got, want)
			}
		}
	}
	for _, from := range []net.Addr{nil, textAddr("@"), &net.UnixAddr{Name: "x"}} {
		if got := sourceOf(from); got.IsValid() {
			t.Errorf("%v: %v", from, got)
		}
	}
}

type textAddr string

func (textAddr) Network() string  { return "text" }
func (a textAddr) String() string { return string(a) }

// What comes in goes out, and nothing is left of a source then.
func TestGate(t *testing.T) {
	t.Parallel()
	g := newGate(limits{conns: 3, connsPerSource: 2, handshakes: 4, handshakesPerSource: 2})
	a, b := textAddr("192.0.2.1:1"), textAddr("192.0.2.2:1")
	enter := func(from net.Addr, may bool) *admission {
		t.Helper()
		p, _ := g.enter(from)
		if (p != nil) != may {
			t.Fatalf("%v came in: %v, want %v", from, p != nil, may)
		}
		return p
	}
	a1, a2 := enter(a, true), enter(a, true)
	enter(a, false)
	b1 := enter(b, true)
	enter(b, false)
	if c, s := g.refused.conns.Load(), g.refused.source.Load(); c != 0 || s != 0 {
		t.Error("enter counts what its caller is to count")
	}
	if g.crowded(a) {
		t.Error("crowded without a handshake")
	}
	if !a1.try() || !g.crowded(a) || g.crowded(b) {
		t.Error("one of two handshakes of a source is half")
	}
	if !a2.try() || !g.crowded(b) {
		t.Error("two of four handshakes are half")
	}
	if a3 := (&admission{gate: g, source: a1.source}); a3.try() {
		t.Error("a third handshake of a source")
	}
	a1.shaken(true)
	a1.shaken(false) // is over already
	a2.shaken(false)
	if !b1.try() {
		t.Error("no slot after all were given back")
	}
	b1.shaken(true)
	if g.done.Load() != 2 || g.failed.Load() != 1 || len(g.slots) != 0 {
		t.Errorf("%d done, %d failed, %d in progress", g.done.Load(), g.failed.Load(), len(g.slots))
	}
	for _, p := range []*admission{a1, a2, b1} {
		p.leave()
	}
	if open, sources := g.opened(); open != 0 || sources != 0 {
		t.Errorf("%d open of %d sources", open, sources)
	}
}

// A wait that is given up leaves no slot taken.
func TestGateWait(t *testing.T) {
	t.Parallel()
	g := newGate(limits{conns: 9, connsPerSource: 9, handshakes: 1, handshakesPerSource: 1})
	first, _ := g.enter(textAddr("192.0.2.1:1"))
	other, _ := g.enter(textAddr("192.0.2.2:1"))
	if err := first.wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := other.wait(gone); err == nil || len(other.source.slots) != 0 {
		t.Errorf("%v, and %d slots taken", err, len(other.source.slots))
	}
	first.shaken(true)
	if err := other.wait(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestWindows(t *testing.T) {
	t.Parallel()
	var w windows
	const mib = 1 << 20
	source := func(n byte) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, n}) }
	for n := range byte(8) {
		if !w.grow(source(n), 64*mib) || w.grow(source(n), 1) {
			t.Fatal("a source has 64 MiB")
		}
	}
	if w.grow(source(9), mib) {
		t.Error("all have 512 MiB")
	}
	w.give(source(0), 64*mib)
	w.give(source(1), 0)
	if !w.grow(source(9), mib) || len(w.sources) != 8 || w.all != (512-64+1)*mib {
		t.Errorf("%d of %d sources", w.all, len(w.sources))
	}
}
