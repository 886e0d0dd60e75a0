package weir

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirnet/weir/internal/memsys"
)

// TestDialTimeout: a connection that does not come about is given up, with nothing left.
func TestDialTimeout(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		full := fullListener(t, l)
		dialTo(t, l, full, ConnConfig{DialTimeout: 20 * time.Millisecond}, ConnHandler{
			OnOpen: func(*Conn) { t.Error("it is there") },
			OnClose: func(c *Conn, err error) {
				if e, ok := errors.AsType[*OpError](err); !ok || e.Op != "dial" || e.Addr != full.Addr() || !errors.Is(err, ErrTimeout) {
					t.Errorf("OnClose has %v", err)
				}
				if s := l.Stats().Streams; s.DialErrors != 1 || s.Dialled != 0 || s.Closed != 0 || s.Open != 0 || l.timers.len() != 0 {
					t.Errorf("%+v, %d timers", s, l.timers.len())
				}
				_ = l.Close()
			},
		})
		run(t, l)
	})
}

// TestDialTimeoutDefault: 30 s.
func TestDialTimeoutDefault(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		began := l.clock()
		dialTo(t, l, fullListener(t, l), ConnConfig{}, ConnHandler{OnClose: func(_ *Conn, err error) {
			if took := l.clock() - began; took != 30*time.Second || !errors.Is(err, ErrTimeout) {
				t.Errorf("%v after %v", err, took)
			}
			_ = l.Close()
		}})
		if err := l.Run(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// nobodys is a port for what is not dialled in the end.
const nobodys = ":1"

// TestDialErrors: what cannot be dialled says so at once, with the word that is wrong, and leaves nothing.
func TestDialErrors(t *testing.T) {
	l := newLoop(t, Config{})
	given := newLoop(t, Config{Kernel: NewKernel(memsys.New().Backend())})
	for _, row := range []struct {
		loop             *Loop
		network, address string
		cfg              ConnConfig
		want             error
		text             string
	}{
		{l, "tcq", "127.0.0.1" + nobodys, ConnConfig{}, nil, "weir: dial tcq 127.0.0.1" + nobodys + ": unknown network tcq"},
		{l, "", "127.0.0.1" + nobodys, ConnConfig{}, nil, "unknown network"},
		{l, "udp", "127.0.0.1" + nobodys, ConnConfig{}, nil, "unknown network udp"},
		{l, "tcp", "127.0.0.1", ConnConfig{}, nil, "127.0.0.1: missing port"},
		{l, "tcp", "::1", ConnConfig{}, nil, "::1: too many colons"},
		{l, "tcp", "", ConnConfig{}, nil, "missing port"},
		{l, "tcp", "127.0.0.1:0", ConnConfig{}, nil, "127.0.0.1:0"},
		{l, "unix", "/no/such/socket", ConnConfig{}, syscall.ENOENT, "/no/such/socket"},
		{l, "unix", "@weir-nobody-listens", ConnConfig{}, syscall.ECONNREFUSED, "@weir-nobody-listens"},
		{l, "tcp", "127.0.0.1" + nobodys, ConnConfig{WriteBufferBytes: -1}, nil, "WriteBufferBytes is -1"},
		{l, "unix", "@x", ConnConfig{MaxFiles: 1000}, nil, "MaxFiles"},
		{l, "tcp", "localhost" + nobodys, ConnConfig{TTL: 300}, nil, "TTL"},
		{l, "tcp", "localhost" + nobodys, ConnConfig{Bound: Count(-1)}, nil, "Count(-1)"},
		{given, "tcp", "localhost" + nobodys, ConnConfig{}, ErrUnsupported, "localhost" + nobodys},
	} {
		c, err := row.loop.Dial(row.network, row.address, row.cfg, ConnHandler{})
		if err == nil || c != nil || row.want != nil && !errors.Is(err, row.want) || !strings.Contains(fmt.Sprint(err), row.text) {
			t.Errorf("Dial(%q, %q): %v, want %q", row.network, row.address, err, row.text)
		}
		if e, ok := errors.AsType[*OpError](err); !ok || e.Op != "dial" || e.Net != row.network {
			t.Errorf("Dial(%q, %q): %#v", row.network, row.address, err)
		}
	}
	for _, l := range []*Loop{l, given} {
		if s := l.Stats().Streams; s.Open != 0 || l.table.len() != 0 || l.timers.len() != 0 {
			t.Errorf("%d open, %d sources, %d timers are left", s.Open, l.table.len(), l.timers.len())
		}
	}
	_ = l.Close()
	if _, err := l.Dial("tcp", "localhost"+nobodys, ConnConfig{}, ConnHandler{}); !errors.Is(err, ErrClosed) {
		t.Errorf("of a closed loop: %v", err)
	}
}

// TestDialName: a name is looked up off the loop. What was written before goes out in order.
func TestDialName(t *testing.T) {
	l := newLoop(t, Config{})
	want := stretch(0, 500_000)
	var got []byte
	ln := serve(t, l, ListenerConfig{}, ConnHandler{
		OnData: func(_ *Conn, b []byte) { got = append(got, b...) },
	})
	order := ""
	c, err := l.Dial("tcp4", fmt.Sprint("localhost:", ln.Addr().Port()), ConnConfig{}, ConnHandler{
		OnOpen: func(c *Conn) {
			if order += "open "; c.RemoteAddr() != ln.Addr() || !c.LocalAddr().IsValid() {
				t.Errorf("it goes from %v to %v", c.LocalAddr(), c.RemoteAddr())
			}
		},
		OnClose: func(_ *Conn, err error) {
			if order += "close"; err != nil {
				t.Error(err)
			}
			_ = l.Close()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(want); at += 50_000 {
		if n, err := c.Write(want[at:][:50_000]); n != 50_000 || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	run(t, l)
	if !bytes.Equal(got, want) || order != "open close" {
		t.Errorf("%d bytes of %d came; %q", len(got), len(want), order)
	}
}

// TestDialNameFails: a name that is none, and one where nobody listens.
func TestDialNameFails(t *testing.T) {
	refused, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(refused.Addr().String())
	_ = refused.Close()
	for _, row := range []struct{ network, address, text string }{
		{"tcp4", "localhost:" + port, "weir: dial tcp localhost:" + port + ": connect: connection refused"},
		{"tcp", "localhost:no-such-service", "weir: dial tcp localhost:no-such-service: "},
		{"tcp6", "127.0.0.1" + nobodys, "weir: dial tcp 127.0.0.1" + nobodys + ": "},
	} {
		l := newLoop(t, Config{})
		_, err := l.Dial(row.network, row.address, ConnConfig{}, ConnHandler{OnClose: func(_ *Conn, err error) {
			if !strings.HasPrefix(fmt.Sprint(err), row.text) {
				t.Errorf("OnClose has %v, want %s", err, row.text)
			}
			_ = l.Close()
		}})
		if err != nil {
			t.Error(err)
			continue
		}
		run(t, l)
	}
}

// TestDialNameAbandoned: the connection or the loop ends while a name is looked up, before and in Run. TestMain finds
// what is left.
func TestDialNameAbandoned(t *testing.T) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	for _, row := range []struct {
		name string
		end  func(l *Loop, c *Conn)
		runs bool
	}{
		{"loop closed before Run", func(l *Loop, _ *Conn) { _ = l.Close() }, false},
		{"loop closed", func(l *Loop, _ *Conn) { _ = l.Close() }, true},
		{"loop stopped", func(l *Loop, _ *Conn) { l.Stop(-1) }, true},
		{"connection closed", func(l *Loop, c *Conn) { _ = c.Close(); l.AfterFunc(30*time.Millisecond, func() { _ = l.Close() }) }, true},
		{"connection reset", func(l *Loop, c *Conn) { _ = c.Reset(); l.AfterFunc(30*time.Millisecond, func() { _ = l.Close() }) }, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			for range 20 {
				l := newLoop(t, Config{})
				closes := 0
				c, err := l.Dial("tcp4", "localhost:"+port, ConnConfig{}, ConnHandler{
					OnOpen:  func(*Conn) { t.Error("it is open") },
					OnClose: func(*Conn, error) { closes++ },
				})
				if err != nil {
					t.Fatal(err)
				}
				if row.end(l, c); row.name == "connection closed" {
					if _, err := c.Write([]byte("x")); err != ErrClosed {
						t.Error(err)
					}
				}
				run(t, l)
				if closes != 1 || len(l.dialers.made) > 1 {
					t.Errorf("%d calls of OnClose", closes)
				}
			}
		})
	}
}

// TestDialEnds: Close, Reset and the loop's Stop and Close while the kernel connects: OnClose alone, and what was queued
// counts as unsent.
func TestDialEnds(t *testing.T) {
	for _, row := range []struct {
		name string
		end  func(l *Loop, c *Conn)
		want error
	}{
		{"Close", func(_ *Loop, c *Conn) { _ = c.Close() }, nil},
		{"Reset", func(_ *Loop, c *Conn) { _ = c.Reset() }, nil},
		{"Stop", func(l *Loop, _ *Conn) { l.Stop(-1) }, nil},
		{"loop Close", func(l *Loop, _ *Conn) { _ = l.Close() }, ErrClosed},
	} {
		t.Run(row.name, func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				l := newLoop(t, Config{Kernel: k})
				closes := 0
				full := fullListener(t, l)
				c := dialTo(t, l, full, ConnConfig{}, ConnHandler{
					OnOpen: func(*Conn) { t.Error("it is open") },
					OnClose: func(_ *Conn, err error) {
						if closes++; err != row.want {
							t.Error(err)
						}
						_ = full.Close() // Stop would accept
						l.AfterFunc(5*time.Millisecond, func() { _ = l.Close() })
					},
				})
				_, _ = c.Write([]byte("12345"))
				_, _ = c.Sender().Write([]byte("678"))
				l.AfterFunc(5*time.Millisecond, func() { row.end(l, c) })
				run(t, l)
				if s := l.Stats().Streams; closes != 1 || s.UnsentBytes != 8 || s.QueuedBytes != 0 || s.Dialled != 0 {
					t.Errorf("%d closes, %d bytes unsent, %d queued", closes, s.UnsentBytes, s.QueuedBytes)
				}
			})
		})
	}
}

// TestDialUnixBusy: "Where the listener's backlog is full it is tried again until ConnConfig.DialTimeout".
func TestDialUnixBusy(t *testing.T) {
	for _, accepts := range []bool{true, false} {
		t.Run(fmt.Sprint(accepts), func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				l := newLoop(t, Config{Kernel: k})
				ln := serveUnix(t, l, ListenerConfig{Backlog: 1}, ConnHandler{})
				ln.Pause()
				for range 2 {
					newPeer(t, l, ln, 0)
				}
				opened := false
				c := dialTo(t, l, ln, ConnConfig{DialTimeout: 150 * time.Millisecond}, ConnHandler{
					OnOpen: func(c *Conn) { opened = true; _ = c.Close() },
					OnClose: func(_ *Conn, err error) {
						if (err == nil) != accepts || !accepts && !errors.Is(err, ErrTimeout) {
							t.Errorf("OnClose has %v", err)
						}
						if !accepts && !strings.Contains(err.Error(), ln.Name()) {
							t.Errorf("%v names nobody", err)
						}
						if l.timers.len() != 0 {
							t.Errorf("%d timers are left", l.timers.len())
						}
						_ = l.Close()
					},
				})
				if _, err := c.Write([]byte("early")); err != nil {
					t.Error(err)
				}
				if accepts {
					l.AfterFunc(20*time.Millisecond, ln.Resume)
				}
				run(t, l)
				if opened != accepts {
					t.Errorf("opened: %v", opened)
				}
			})
		})
	}
}

// TestDialEarly: what is written before the connection is there goes out in order with what OnOpen writes.
func TestDialEarly(t *testing.T) {
	overSockets(t, func(t *testing.T, k *Kernel, serve func(*testing.T, *Loop, ListenerConfig, ConnHandler) *Listener) {
		l := newLoop(t, Config{Kernel: k})
		got := ""
		ln := serve(t, l, ListenerConfig{}, ConnHandler{
			OnData:  func(_ *Conn, b []byte) { got += string(b) },
			OnClose: func(*Conn, error) { _ = l.Close() },
		})
		c := dialTo(t, l, ln, ConnConfig{WriteBufferBytes: 10}, ConnHandler{OnOpen: func(c *Conn) {
			_, _ = c.Write([]byte("ij"))
			_ = c.CloseWrite()
		}})
		_, _ = c.Write([]byte("ab"))
		_, _ = c.Writev([][]byte{{'c'}, {'d'}})
		if n, err := c.Write([]byte("efghXXX")); n != 6 || err != ErrWouldBlock {
			t.Errorf("Write answers %d, %v", n, err)
		}
		if _, err := c.Export(); !errors.Is(err, syscall.ENOTCONN) {
			t.Errorf("Export: %v", err)
		}
		run(t, l)
		if got != "abcdefghXX" && got != "abcdefghXXij" {
			t.Errorf("%q came", got)
		}
	})
}

// TestConnToItself: a port that nobody listens at, and that the system gives to who dials it, refuses.
func TestConnToItself(t *testing.T) {
	l := newLoop(t, Config{Kernel: NewKernel(memsys.New().Backend())}) // which gives out ports in order
	ln := serve(t, l, ListenerConfig{}, ConnHandler{})
	next := netip.AddrPortFrom(ln.Addr().Addr(), ln.Addr().Port()+1)
	_, err := l.DialTCP(netip.AddrPort{}, next, ConnConfig{}, ConnHandler{
		OnOpen: func(c *Conn) { t.Errorf("%v is open to itself, %v", c.RemoteAddr(), c.LocalAddr()) },
		OnClose: func(_ *Conn, err error) {
			if !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("OnClose has %v", err)
			}
			_ = l.Close()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	run(t, l)
}
