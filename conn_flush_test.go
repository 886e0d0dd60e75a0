package weir

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirnet/weir/internal/memsys"
)

// TestConnFlush: "Flush writes what is queued now …, instead of after the callback", wherever it is called.
func TestConnFlush(t *testing.T) {
	overSockets(t, func(t *testing.T, k *Kernel, serve func(*testing.T, *Loop, ListenerConfig, ConnHandler) *Listener) {
		l := newLoop(t, Config{Kernel: k})
		var want []byte
		flush := func(c *Conn, size int) {
			before := l.stats.streams.writeCalls.Load()
			b := stretch(len(want), size)
			want = append(want, b...)
			if err := c.Enqueue(b); err != nil {
				t.Error(err)
			}
			c.Flush()
			c.Flush() // nothing is left
			calls := l.stats.streams.writeCalls.Load() - before
			if s := c.Stats(); s.Written != uint64(len(want)) || s.Queued != 0 || c.Room() != 1000 || calls != 1 {
				t.Errorf("%d bytes written of %d, %d queued, by %d calls", s.Written, len(want), s.Queued, calls)
			}
			if s := l.Stats().Streams; s.QueuedBytes != 0 {
				t.Errorf("Stats tells of %d queued bytes", s.QueuedBytes)
			}
		}
		drains := 0
		ln := serve(t, l, ListenerConfig{Conn: ConnConfig{WriteBufferBytes: 1000}}, ConnHandler{
			OnOpen: func(c *Conn) {
				flush(c, 900)
				l.AfterFunc(time.Millisecond, func() {
					c.Pause() // of reading
					flush(c, 900)
					c.Resume()
				})
			},
			OnData:  func(c *Conn, _ []byte) { flush(c, 900); flush(c, 2000) },
			OnDrain: func(*Conn) { drains++ },
			OnEnd: func(c *Conn) {
				flush(c, 10)
				_ = c.Close()
				c.Flush()
			},
			OnClose: func(c *Conn, err error) {
				if c.Flush(); err != nil {
					t.Error(err)
				}
				_ = l.Close()
			},
		})
		p := newPeer(t, l, ln, 0)
		p.write([]byte("request"))
		l.AfterFunc(20*time.Millisecond, p.closeWrite)
		run(t, l)
		if p.read(); !bytes.Equal(p.got, want) || len(want) != 4710 || !p.over || drains != 1 {
			t.Errorf("%d bytes came of %d, %d drains, then %v", len(p.got), len(want), drains, p.err)
		}
	})
}

// TestConnFlushRefused: a connection that is not there yet, one that the kernel has taken no more of, and one that rests
// is not written to; what was queued goes out later.
func TestConnFlushRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{Faults: plan(t, "write#1=EAGAIN")})
		idle := func(c *Conn, when string) {
			before := l.stats.streams.writeCalls.Load()
			if err := c.Enqueue([]byte(when + ",")); err != nil {
				t.Error(err)
			}
			c.Flush()
			if n := l.stats.streams.writeCalls.Load() - before; n != 0 {
				t.Errorf("%s: %d calls", when, n)
			}
		}
		ln := serve(t, l, ListenerConfig{}, ConnHandler{OnOpen: func(c *Conn) {
			_ = c.Enqueue([]byte("a,"))
			c.Flush()
			if !c.blocked {
				t.Error("it is not blocked")
			}
			idle(c, "blocked")
			l.AfterFunc(time.Second, func() {
				if c.blocked || !c.out.Empty() {
					t.Error("it is blocked for ever")
				}
				c.rest()
				idle(c, "resting")
				l.AfterFunc(time.Second, func() { _ = c.Close() })
			})
		}})
		p := newPeer(t, l, ln, 0)
		dialled := ""
		c := dialTo(t, l, serve(t, l, ListenerConfig{}, ConnHandler{OnData: func(_ *Conn, b []byte) { dialled += string(b) }}), ConnConfig{}, ConnHandler{})
		idle(c, "dialling")
		p.readUntilOver(l, func() { _ = l.Close() })
		run(t, l)
		if string(p.got) != "a,blocked,resting," || dialled != "dialling," {
			t.Errorf("%q came, and %q", p.got, dialled)
		}
	})
}

// TestConnFlushMost: "until half a MiB has gone": the rest goes out after the callback.
func TestConnFlushMost(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		const size = 6 << 20
		l := loopIn(t, net, Config{})
		ln := serve(t, l, ListenerConfig{Conn: ConnConfig{SendBufferBytes: 8 << 20}}, ConnHandler{OnOpen: func(c *Conn) {
			_ = c.Enqueue(stretch(0, size))
			c.Flush()
			if n := c.Stats().Written; n < flushBytesAtOnce || n > writeBuffers*64<<10 || l.Stats().Streams.WriteCalls != 1 {
				t.Errorf("%d bytes are written by %d calls, want one", n, l.Stats().Streams.WriteCalls)
			}
			_ = c.Close()
		}})
		p := newPeer(t, l, ln, 8<<20)
		p.readUntilOver(l, func() { _ = l.Close() })
		run(t, l)
		if !bytes.Equal(p.got, stretch(0, size)) {
			t.Errorf("%d bytes came, then %v", len(p.got), p.err)
		}
	})
}

// TestConnFlushCallsNobody: "No call of this package calls a handler": OnDrain, what a file has to tell, the end of both
// directions and a peer that is gone are told of when the callback has returned in which Flush was called.
func TestConnFlushCallsNobody(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, stretch(0, 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, row := range []struct {
		name string
		do   func(c *Conn, p *peer, hear func(string))
		want string
	}{
		{"OnDrain", func(c *Conn, _ *peer, _ func(string)) { _ = c.Enqueue(make([]byte, 1000)) }, "flushed drain close"},
		{"a file", func(c *Conn, _ *peer, hear func(string)) {
			if err := c.SendFile(f, 0, 1000, func(err error) {
				if hear("sent"); err != nil {
					t.Error(err)
				}
			}); err != nil {
				t.Error(err)
			}
		}, "flushed sent close"},
		{"both ends", func(c *Conn, _ *peer, _ func(string)) {
			_, _ = c.Write([]byte("bye"))
			_ = c.CloseWrite()
		}, "flushed close"},
		{"a peer that is gone", func(c *Conn, p *peer, _ func(string)) {
			p.reset()
			_, _ = c.Write([]byte("bye"))
		}, "flushed close"},
	} {
		t.Run(row.name, func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				l := newLoop(t, Config{Kernel: k})
				l.native = true // has the loop take files in memory, too
				var p *peer
				var heard []string
				hear := func(what string) { heard = append(heard, what) }
				ln := serve(t, l, ListenerConfig{Conn: ConnConfig{WriteBufferBytes: 1000}}, ConnHandler{
					OnEnd: func(c *Conn) {
						row.do(c, p, hear)
						c.Flush()
						hear("flushed")
						l.AfterFunc(20*time.Millisecond, func() { _ = c.Close() })
					},
					OnDrain: func(*Conn) { hear("drain") },
					OnClose: func(*Conn, error) {
						hear("close")
						_ = l.Close()
					},
				})
				p = newPeer(t, l, ln, 0)
				p.closeWrite()
				run(t, l)
				if got := strings.Join(heard, " "); got != row.want {
					t.Errorf("it has heard %q, want %q", got, row.want)
				}
			})
		})
	}
}

// TestConnEnqueueDrain: after an Enqueue OnDrain comes "as if Write had been refused when there is no room left", not
// before, and once.
func TestConnEnqueueDrain(t *testing.T) {
	const limit = 1000
	for _, row := range []struct {
		name   string
		sizes  []int
		drains int
	}{
		{"some room", []int{limit - 1}, 0},
		{"none left", []int{limit}, 1},
		{"in pieces", []int{limit - 1, 1}, 1},
		{"too much", []int{limit - 1, 10 * limit}, 1},
		{"and more", []int{limit, limit, 0, 1}, 1},
		{"nothing", []int{0}, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				l := newLoop(t, Config{Kernel: k})
				drains, size := 0, 0
				ln := serve(t, l, ListenerConfig{Conn: ConnConfig{WriteBufferBytes: limit}}, ConnHandler{
					OnOpen: func(c *Conn) {
						for _, n := range row.sizes {
							if err := c.Enqueue(make([]byte, n)); err != nil {
								t.Error(err)
							}
							size += n
						}
						if c.Room() != max(limit-size, 0) {
							t.Errorf("room for %d behind %d bytes", c.Room(), size)
						}
						l.AfterFunc(20*time.Millisecond, func() { _ = c.Close() })
					},
					OnDrain: func(c *Conn) {
						if drains++; c.Room() < limit/2 {
							t.Errorf("OnDrain with room for %d", c.Room())
						}
					},
				})
				p := newPeer(t, l, ln, 0)
				p.readUntilOver(l, func() { _ = l.Close() })
				run(t, l)
				if drains != row.drains || len(p.got) != size {
					t.Errorf("%d drains, want %d; %d bytes came of %d", drains, row.drains, len(p.got), size)
				}
			})
		})
	}
}
