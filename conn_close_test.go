package weir

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/weirnet/weir/internal/memsys"
)

// TestConnCloseFlushes: a slow reader gets all that was queued when Close was called, and OnClose comes then.
func TestConnCloseFlushes(t *testing.T) {
	overSockets(t, func(t *testing.T, k *Kernel, serve func(*testing.T, *Loop, ListenerConfig, ConnHandler) *Listener) {
		l := newLoop(t, Config{Kernel: k})
		want := stretch(0, 20<<20)
		closed := false
		ln := serve(t, l, ListenerConfig{}, ConnHandler{
			OnOpen: func(c *Conn) {
				_ = c.Enqueue(want)
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			},
			OnData: func(*Conn, []byte) { t.Error("OnData after Close") },
			OnClose: func(_ *Conn, err error) {
				if closed = true; err != nil {
					t.Error(err)
				}
			},
		})
		p := newPeer(t, l, ln, 0)
		l.AfterFunc(5*time.Millisecond, func() {
			if p.write([]byte("not read any more")); closed {
				t.Error("it is closed, and the test shows nothing")
			}
			p.readUntilOver(l, func() {
				p.closeWrite()
				l.AfterFunc(10*time.Millisecond, func() { _ = l.Close() })
			})
		})
		run(t, l)
		if !bytes.Equal(p.got, want) || !closed {
			t.Errorf("%d bytes of %d came, then %v; closed %v", len(p.got), len(want), p.err, closed)
		}
	})
}

// TestConnCloseUnread: a server that answers and closes while the client has sent more does not take its answer away.
func TestConnCloseUnread(t *testing.T) {
	overSockets(t, func(t *testing.T, k *Kernel, serve func(*testing.T, *Loop, ListenerConfig, ConnHandler) *Listener) {
		for _, paused := range []bool{false, true} {
			l := newLoop(t, Config{Kernel: k})
			l.readBuf = make([]byte, 10)
			answer := stretch(0, 50_000)
			var p *peer
			ln := serve(t, l, ListenerConfig{}, ConnHandler{
				OnData: func(c *Conn, b []byte) {
					if paused {
						c.Pause()
					}
					_, _ = c.Write(answer)
					_ = c.Close()
					l.AfterFunc(2*time.Millisecond, func() { p.write(make([]byte, 1000)) })
					l.AfterFunc(4*time.Millisecond, func() {
						p.write(make([]byte, 1000))
						p.readUntilOver(l, p.close)
					})
				},
				OnClose: func(_ *Conn, err error) {
					if err != nil {
						t.Error(err)
					}
					_ = l.Close()
				},
			})
			p = newPeer(t, l, ln, 0)
			p.write(make([]byte, 20_000))
			run(t, l)
			if !bytes.Equal(p.got, answer) || p.err != nil {
				t.Errorf("paused %v: %d bytes of %d came, then %v", paused, len(p.got), len(answer), p.err)
			}
		}
	})
}

// TestConnCloseTimeout: a peer that takes nothing, or does not end, costs CloseTimeout, a reset and what is queued.
func TestConnCloseTimeout(t *testing.T) {
	for _, row := range []struct {
		name   string
		cfg    ConnConfig
		size   int
		unread bool
		want   time.Duration
	}{
		{"default", ConnConfig{}, 20 << 20, false, 10 * time.Second},
		{"shorter", ConnConfig{CloseTimeout: time.Second}, 20 << 20, false, time.Second},
		{"unread", ConnConfig{CloseTimeout: 2 * time.Second}, 0, true, 2 * time.Second},
		{"unread and queued", ConnConfig{CloseTimeout: 2 * time.Second}, 20 << 20, true, 2 * time.Second},
		{"none, but to write", ConnConfig{CloseTimeout: -1, WriteTimeout: 3 * time.Second}, 20 << 20, false, 3 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, net *memsys.Net) {
				var began time.Duration
				var l *Loop
				l, p := timed(t, net, row.cfg, ConnHandler{
					OnOpen: func(c *Conn) {
						_ = c.Enqueue(make([]byte, row.size))
						began = l.clock()
						_ = c.Close()
					},
					OnClose: func(_ *Conn, err error) {
						if !errors.Is(err, ErrTimeout) || l.clock()-began != row.want {
							t.Errorf("OnClose has %v after %v", err, l.clock()-began)
						}
						_ = l.Close()
					},
				})
				if row.unread {
					p.write([]byte("x"))
				}
				run(t, l)
				s := l.Stats().Streams
				if s.Timeouts != 1 || s.UnsentBytes+s.WrittenBytes != uint64(row.size) || row.size > 0 && s.UnsentBytes == 0 {
					t.Errorf("%d timeouts, %d bytes unsent, %d written", s.Timeouts, s.UnsentBytes, s.WrittenBytes)
				}
				if l.timers.len() != 0 {
					t.Errorf("%d timers are left", l.timers.len())
				}
				if p.read(); p.err == nil && !p.over { // an end, where the writing direction had been ended before
					t.Error("the peer was not reset")
				}
			})
		})
	}
}

// TestConnEndsInCallback: each way to end a connection, in each callback. OnClose comes once and last, no descriptor and
// no timer is left, and the bytes are accounted for.
func TestConnEndsInCallback(t *testing.T) {
	ways := map[string]func(l *Loop, c *Conn){
		"Close":      func(_ *Loop, c *Conn) { _ = c.Close() },
		"Reset":      func(_ *Loop, c *Conn) { _ = c.Reset() },
		"loop Close": func(l *Loop, _ *Conn) { _ = l.Close() },
		"Stop":       func(l *Loop, _ *Conn) { l.Stop(time.Second) },
		"panic":      func(*Loop, *Conn) { panic("from a callback") },
		"Goexit":     func(*Loop, *Conn) { runtime.Goexit() },
		"slow, Close": func(_ *Loop, c *Conn) {
			time.Sleep(time.Second)
			_ = c.Close()
		},
	}
	for _, callback := range []string{"OnOpen", "OnData", "OnDrain", "OnEnd", "OnTimeout", "OnClose"} {
		for way, end := range ways {
			for _, server := range []bool{true, false} {
				t.Run(fmt.Sprint(callback, " ", way, " ", server), func(t *testing.T) {
					inBubble(t, func(t *testing.T, net *memsys.Net) { endInCallback(t, net, callback, server, end) })
				})
			}
		}
	}
}

func endInCallback(t *testing.T, net *memsys.Net, callback string, server bool, end func(l *Loop, c *Conn)) {
	l := loopIn(t, net, Config{})
	opened, closed := map[*Conn]int{}, map[*Conn]int{}
	done := false
	at := func(name string, c *Conn, mine bool) {
		if closed[c] > 0 {
			t.Errorf("%s after OnClose", name)
		}
		if name == "OnClose" {
			closed[c]++
		}
		if name == callback && mine && !done {
			done = true
			end(l, c)
		}
	}
	handler := func(mine bool) ConnHandler {
		return ConnHandler{
			OnOpen: func(c *Conn) {
				opened[c]++
				_, _ = c.Write(make([]byte, 3000))
				at("OnOpen", c, mine)
			},
			OnData: func(c *Conn, b []byte) {
				if len(b) > 100 {
					_, _ = c.Write([]byte("answer"))
				}
				at("OnData", c, mine)
			},
			OnDrain: func(c *Conn) {
				if at("OnDrain", c, mine); callback != "OnTimeout" {
					_ = c.CloseWrite()
				}
			},
			OnEnd: func(c *Conn) { at("OnEnd", c, mine) },
			OnTimeout: func(c *Conn, _ Timeout) {
				at("OnTimeout", c, mine)
				_ = c.CloseWrite()
			},
			OnClose: func(c *Conn, _ error) { at("OnClose", c, mine) },
		}
	}
	cfg := ConnConfig{WriteBufferBytes: 1000, IdleTimeout: 20 * time.Millisecond}
	ln := serve(t, l, ListenerConfig{Conn: cfg}, handler(server))
	dialTo(t, l, ln, cfg, handler(!server))
	l.AfterFunc(10*time.Second, func() { _ = l.Close() })
	left := make(chan struct{})
	go func() {
		defer close(left)
		defer func() { _ = recover() }()
		_ = l.Run(t.Context())
	}()
	<-left
	if !done {
		t.Errorf("there was no %s", callback)
	}
	if len(opened) == 0 || len(closed) < len(opened) {
		t.Errorf("%d opened, %d closed", len(opened), len(closed))
	}
	for _, n := range closed {
		if n != 1 {
			t.Errorf("%d calls of OnClose", n)
		}
	}
	if calls := net.Calls(); calls.CloseAdded != 0 {
		t.Errorf("%d descriptors were closed in the poller", calls.CloseAdded)
	}
	if s := l.Stats().Streams; s.Open != 0 || s.QueuedBytes != 0 {
		t.Errorf("%d open, %d bytes queued", s.Open, s.QueuedBytes)
	}
}
