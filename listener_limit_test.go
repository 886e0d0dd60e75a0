package weir

import (
	"errors"
	"testing"
	"time"

	"github.com/weirnet/weir/internal/memsys"
)

// TestListenerMaxConns: those above the limit wait, in peace, and come in when one closes.
func TestListenerMaxConns(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		var open []*Conn
		ln := serve(t, l, ListenerConfig{MaxConns: 2}, ConnHandler{OnOpen: func(c *Conn) {
			if open = append(open, c); c.Listener().Conns() > 2 {
				t.Errorf("%d are open", c.Listener().Conns())
			}
		}})
		for range 5 {
			dialTo(t, l, ln, ConnConfig{}, ConnHandler{})
		}
		for i, want := range []int{2, 3, 4, 5} {
			l.AfterFunc(time.Duration(i+1)*time.Second, func() {
				if len(open) != want {
					t.Errorf("%d were accepted after %d s, want %d", len(open), i+1, want)
				}
				_ = open[i].Close()
			})
		}
		l.AfterFunc(10*time.Second, func() {
			if turns := l.Turn(); turns > 100 {
				t.Errorf("%d turns", turns)
			}
			if n := ln.Conns(); n != 1 {
				t.Errorf("%d are left", n)
			}
			_ = l.Close()
		})
		run(t, l)
	})
}

// TestListenerMaxConnsOnKernel holds that waiting makes no turns on this machine's poller.
func TestListenerMaxConnsOnKernel(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		ln := serve(t, l, ListenerConfig{MaxConns: 1}, ConnHandler{})
		for range 3 {
			knock(t, k.backend.Kernel, ln.Addr())
		}
		l.AfterFunc(100*time.Millisecond, func() {
			if turns := l.Turn(); ln.Conns() != 1 || turns > 20 {
				t.Errorf("%d connections, %d turns", ln.Conns(), turns)
			}
			_ = l.Close()
		})
		run(t, l)
	})
}

// TestListenerPause: nobody is accepted, and nothing turns.
func TestListenerPause(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		resumed := false
		ln := serve(t, l, ListenerConfig{}, ConnHandler{OnOpen: func(*Conn) {
			if !resumed {
				t.Error("it is accepted while the listener is paused")
			}
			_ = l.Close()
		}})
		ln.Pause()
		knock(t, k.backend.Kernel, ln.Addr())
		l.AfterFunc(50*time.Millisecond, func() {
			if turns := l.Turn(); turns > 20 {
				t.Errorf("%d turns", turns)
			}
			resumed = true
			ln.Resume()
		})
		run(t, l)
	})
}

// TestListenerClose: "Connections that it has accepted live on", and the port is free at once.
func TestListenerClose(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		var order []string
		ln, err := l.ListenTCP(loopback4, ListenerConfig{}, ListenerHandler{
			Conn: ConnHandler{
				OnOpen: func(c *Conn) {
					ln := c.Listener()
					if err := ln.Close(); err != nil {
						t.Error(err)
					}
					if err := ln.Close(); err != ErrClosed {
						t.Errorf("the second Close answers %v", err)
					}
					if _, err := ln.Export(); err != ErrClosed {
						t.Errorf("Export answers %v", err)
					}
					ln.Pause()
					ln.Resume()
					ln.Stop()
					again, err := l.ListenTCP(ln.Addr(), ListenerConfig{}, ListenerHandler{})
					if err != nil {
						t.Error(err)
						return
					}
					_ = again.Close()
				},
				OnData: func(c *Conn, b []byte) { _, _ = c.Write(b) },
			},
			OnClose: func(ln *Listener, err error) {
				if order = append(order, "listener"); err != nil || ln.Conns() != 1 {
					t.Errorf("%v, %d connections", err, ln.Conns())
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		c := dialTo(t, l, ln, ConnConfig{}, ConnHandler{OnData: func(c *Conn, b []byte) {
			order = append(order, string(b))
			_ = l.Close()
		}})
		_, _ = c.Write([]byte("hello"))
		run(t, l)
		if len(order) != 2 || order[0] != "listener" || order[1] != "hello" {
			t.Errorf("%v", order)
		}
	})
}

// TestListenerEnds: OnClose tells why.
func TestListenerEnds(t *testing.T) {
	for _, row := range []struct {
		name string
		end  func(l *Loop, ln *Listener)
		want error
	}{
		{"Close", func(_ *Loop, ln *Listener) { _ = ln.Close() }, nil},
		{"Stop", func(_ *Loop, ln *Listener) { ln.Stop() }, nil},
		{"stop of the loop", func(l *Loop, _ *Listener) { l.Stop(-1) }, nil},
		{"close of the loop", func(l *Loop, _ *Listener) { _ = l.Close() }, ErrClosed},
	} {
		t.Run(row.name, func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				l := newLoop(t, Config{Kernel: k})
				calls := 0
				ln, err := l.ListenTCP(loopback4, ListenerConfig{}, ListenerHandler{OnClose: func(_ *Listener, err error) {
					if calls++; !errors.Is(err, row.want) {
						t.Errorf("OnClose has %v, want %v", err, row.want)
					}
					_ = l.Close()
				}})
				if err != nil {
					t.Fatal(err)
				}
				l.AfterFunc(0, func() { row.end(l, ln) })
				run(t, l)
				if calls != 1 {
					t.Errorf("%d calls of OnClose", calls)
				}
			})
		})
	}
}
