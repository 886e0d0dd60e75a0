package weir

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/weirnet/weir/internal/memsys"
)

// TestConnWriteLimit: "n < len(b) comes with ErrWouldBlock, and OnDrain follows", once, at half of the buffer or less.
func TestConnWriteLimit(t *testing.T) {
	overSockets(t, func(t *testing.T, k *Kernel, serve func(*testing.T, *Loop, ListenerConfig, ConnHandler) *Listener) {
		const limit = 100_000
		l := newLoop(t, Config{Kernel: k})
		var p *peer
		taken, drains, reading := 0, 0, false
		fill := func(c *Conn) {
			for {
				n, err := c.Write(stretch(taken, 9_001))
				taken += n
				if queued := c.Stats().Queued; queued > limit {
					t.Fatalf("%d bytes are queued", queued)
				}
				if n == 9_001 && err == nil {
					continue
				}
				if err != ErrWouldBlock || c.Stats().Queued != limit || c.Room() != 0 || n == 9_001 {
					t.Fatalf("Write answers %d, %v with %d bytes queued and room for %d", n, err, c.Stats().Queued, c.Room())
				}
				if n, err := c.Writev([][]byte{{1}, {2}}); n != 0 || err != ErrWouldBlock {
					t.Errorf("Writev answers %d, %v", n, err)
				}
				return
			}
		}
		var c *Conn
		ln := serve(t, l, ListenerConfig{Conn: ConnConfig{WriteBufferBytes: limit}}, ConnHandler{
			OnOpen: func(conn *Conn) { c = conn },
			OnDrain: func(c *Conn) {
				if queued := c.Stats().Queued; queued > limit/2 {
					t.Errorf("OnDrain with %d bytes queued", queued)
				}
				if drains++; !reading {
					return
				}
				switch drains {
				case 1:
					fill(c)
				case 2:
					_ = c.Close()
				}
			},
			OnClose: func(_ *Conn, err error) {
				if err != nil {
					t.Error(err)
				}
			},
		})
		p = newPeer(t, l, ln, 0)
		quiet := 0 // looks in which the kernel took no more: its buffers grow
		l.Every(time.Millisecond, func() {
			switch {
			case c == nil || reading:
			case c.Room() > 0:
				quiet = 0
				fill(c)
			default:
				quiet++
			}
			if quiet < 20 || reading {
				return
			}
			if s := l.Stats().Streams; s.QueuedBytes != limit {
				t.Errorf("Stats tells of %d queued bytes", s.QueuedBytes)
			}
			drains, reading = 0, true
			p.readUntilOver(l, func() { _ = l.Close() })
		})
		run(t, l)
		if drains != 2 || taken != len(p.got) || !bytes.Equal(p.got, stretch(0, taken)) {
			t.Errorf("%d drains; %d bytes were taken, %d came", drains, taken, len(p.got))
		}
		if s := l.Stats().Streams; s.QueuedBytes != 0 || s.UnsentBytes != 0 || s.WrittenBytes != uint64(taken) {
			t.Errorf("%d bytes queued, %d unsent, %d written of %d", s.QueuedBytes, s.UnsentBytes, s.WrittenBytes, taken)
		}
	})
}

// TestConnWriteCalls: what a callback writes is one call; what is large goes at once, with what is queued before it.
func TestConnWriteCalls(t *testing.T) {
	small := func(c *Conn) {
		for range 100 {
			_, _ = c.Write([]byte("0123456789"))
		}
	}
	for _, row := range []struct {
		name  string
		write func(c *Conn)
		calls uint64
		bytes int
	}{
		{"small ones", small, 1, 1000},
		{"of small buffers", func(c *Conn) { _, _ = c.Writev([][]byte{{1}, nil, {2, 3}, {}}) }, 1, 3},
		{"a large one", func(c *Conn) { _, _ = c.Write(make([]byte, 20_000)) }, 1, 20_000},
		{"a large one behind small ones", func(c *Conn) { small(c); _, _ = c.Write(make([]byte, 20_000)) }, 1, 21_000},
		{"a large one before a small one", func(c *Conn) { _, _ = c.Write(make([]byte, 20_000)); small(c) }, 2, 21_000},
		{"large buffers", func(c *Conn) {
			_, _ = c.Writev([][]byte{make([]byte, 10_000), make([]byte, 10_000), {1}})
		}, 1, 20_001},
		{"more buffers than a call takes", func(c *Conn) {
			var bufs [][]byte
			for range writeBuffers + 10 {
				bufs = append(bufs, make([]byte, 500))
			}
			if n, err := c.Writev(bufs); n != 37_000 || err != nil {
				c.Loop().cfg.Logger.Error("Writev", "n", n, "err", err)
			}
		}, 2, 37_000},
		{"nothing", func(c *Conn) { _, _ = c.Write(nil); _, _ = c.Writev(nil); _ = c.Enqueue(nil) }, 0, 0},
	} {
		for _, from := range []struct {
			name  string
			write func(l *Loop, c *Conn)
		}{
			{"OnData", func(l *Loop, c *Conn) { row.write(c) }},
			{"a timer", func(l *Loop, c *Conn) { l.AfterFunc(0, func() { row.write(c) }) }},
			{"a post", func(l *Loop, c *Conn) { _ = l.Post(func() { row.write(c) }) }},
		} {
			t.Run(row.name+" from "+from.name, func(t *testing.T) {
				onEachKernel(t, func(t *testing.T, k *Kernel) {
					l := newLoop(t, Config{Kernel: k})
					ln := serve(t, l, ListenerConfig{}, ConnHandler{OnData: func(c *Conn, _ []byte) { from.write(l, c) }})
					p := newPeer(t, l, ln, 0)
					p.write([]byte("x"))
					l.AfterFunc(30*time.Millisecond, func() { _ = l.Close() })
					run(t, l)
					if p.read(); len(p.got) != row.bytes {
						t.Errorf("%d bytes came, want %d", len(p.got), row.bytes)
					}
					if s := l.Stats().Streams; s.WriteCalls != row.calls {
						t.Errorf("%d calls, want %d", s.WriteCalls, row.calls)
					}
				})
			})
		}
	}
}

// writeStep is one thing that a handler writes.
type writeStep struct {
	kind int // Write, Writev, Enqueue, SendFile
	size int
}

// TestConnOrder: whatever is written how, the peer reads it in that order, with a slow reader and short writes; and
// what did not fit was not taken.
func TestConnOrder(t *testing.T) {
	content := pattern(0, 1<<20)
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	sizes := rapid.OneOf(rapid.IntRange(0, 100), rapid.IntRange(0, 9_000),
		rapid.SampledFrom([]int{directBytes - 1, directBytes, directBytes + 1, 65_536}))
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) writeStep {
			return writeStep{rapid.IntRange(0, 3).Draw(rt, "kind"), sizes.Draw(rt, "size")}
		}), 1, 8).Draw(rt, "steps")
		faults := rapid.SampledFrom([]string{"", "write=short:7", "write%0.5=EAGAIN; sendfile%0.5=EAGAIN", "write%0.3=ENOBUFS", "sendfile=short:900", "sendfile=EINVAL"}).Draw(rt, "faults")
		at := rapid.IntRange(2_000, 70_000).Draw(rt, "read at a time")
		limit := rapid.SampledFrom([]int{1, 1000, 100_000, 1 << 20}).Draw(rt, "limit")
		if faults == "write=short:7" {
			limit = min(limit, 500)
			for i := range steps {
				steps[i].size = min(steps[i].size, 500) // a call for each 7 bytes
			}
		}
		synctest.Test(t, func(t *testing.T) {
			l := loopIn(t, memsys.New(), Config{Faults: plan(t, faults)})
			var want []byte
			done := 0
			sent := 0
			ln := serve(t, l, ListenerConfig{Conn: ConnConfig{WriteBufferBytes: limit, SendBufferBytes: 20_000}}, ConnHandler{
				OnOpen: func(c *Conn) {
					c.Data = 0
					for i, s := range steps {
						l.AfterFunc(time.Duration(i/3)*time.Millisecond, func() {
							b := content[len(want)%1000:][:s.size]
							n, err := s.write(c, b, file, int64(len(want)%1000), func(err error) {
								if done++; err != nil {
									t.Error(err)
								}
							})
							if s.kind == 3 && err == nil {
								sent++
							}
							if n < s.size && err != ErrWouldBlock || n == s.size && err != nil {
								t.Errorf("%+v: %d, %v", s, n, err)
							}
							want = append(want, b[:n]...)
							if i == len(steps)-1 {
								_ = c.Close()
							}
						})
					}
				},
				OnClose: func(_ *Conn, err error) {
					if err != nil {
						t.Error(err)
					}
				},
			})
			p := newPeer(t, l, ln, 0)
			var tick *Timer
			tick = l.Every(50*time.Microsecond, func() {
				if p.readSome(at); p.over || p.err != nil {
					tick.Stop()
					_ = l.Close()
				}
			})
			run(t, l)
			if !bytes.Equal(p.got, want) || p.err != nil || done != sent {
				t.Errorf("%d bytes came, %d were taken; %v; %d files of %d", len(p.got), len(want), p.err, done, sent)
			}
		})
	})
}

func (s writeStep) write(c *Conn, b []byte, f *os.File, offset int64, done func(error)) (n int, err error) {
	switch s.kind {
	case 0:
		return c.Write(b)
	case 1:
		third := len(b) / 3
		return c.Writev([][]byte{b[:third], nil, b[third : 2*third], b[2*third:]})
	case 2:
		err = c.Enqueue(b)
	case 3:
		err = c.SendFile(f, offset, int64(len(b)), done)
	}
	if err != nil {
		return 0, err
	}
	return len(b), nil
}

// TestConnEnqueue: "without a limit", and "OnDrain comes as if Write had been refused when more than the limit was
// queued".
func TestConnEnqueue(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		drains := 0
		ln := serve(t, l, ListenerConfig{Conn: ConnConfig{WriteBufferBytes: 1000}}, ConnHandler{
			OnOpen: func(c *Conn) {
				for range 1000 {
					if err := c.Enqueue(make([]byte, 15_000)); err != nil {
						t.Error(err)
					}
				}
			},
			OnDrain: func(c *Conn) {
				if drains++; c.Stats().Queued > 500 {
					t.Errorf("OnDrain with %d bytes", c.Stats().Queued)
				}
				_ = c.Close()
			},
		})
		p := newPeer(t, l, ln, 0)
		p.readUntilOver(l, func() { _ = l.Close() })
		run(t, l)
		if len(p.got) != 15_000_000 || drains != 1 {
			t.Errorf("%d bytes, %d drains", len(p.got), drains)
		}
	})
}

// TestConnWriteErrors: each method has the same answers where nothing can be written any more.
func TestConnWriteErrors(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		var c *Conn
		l, p := timed(t, net, ConnConfig{}, ConnHandler{OnOpen: func(conn *Conn) {
			c = conn
			_ = c.CloseWrite()
			check := func(want error) {
				t.Helper()
				_, e1 := c.Write([]byte("x"))
				_, e2 := c.Writev([][]byte{{1}})
				for _, err := range []error{e1, e2, c.Enqueue([]byte("x")), c.SendFile(os.Stdin, 0, 1, func(error) {})} {
					if !errors.Is(err, want) {
						t.Errorf("%v, want %v", err, want)
					}
				}
				if c.Room() != 0 {
					t.Errorf("there is room for %d bytes", c.Room())
				}
			}
			check(syscall.EPIPE)
			_ = c.Close()
			check(ErrClosed)
			if err := c.Close(); err != ErrClosed {
				t.Errorf("Close again: %v", err)
			}
			if err := c.CloseWrite(); err != ErrClosed {
				t.Errorf("CloseWrite: %v", err)
			}
		}})
		p.readUntilOver(l, func() { _ = l.Close() })
		run(t, l)
	})
}

// TestConnFileEnds: "A file that ends before n bytes were read resets the connection".
func TestConnFileEnds(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		name := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(name, []byte("12345"), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		l := newLoop(t, Config{Kernel: k})
		var told error
		ln := serve(t, l, ListenerConfig{}, ConnHandler{
			OnOpen: func(c *Conn) {
				if err := c.SendFile(f, 0, 6, func(err error) { told = err }); err != nil {
					t.Error(err)
				}
			},
			OnClose: func(_ *Conn, err error) {
				if told != io.ErrUnexpectedEOF || !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("done has %v, OnClose %v", told, err)
				}
				_ = l.Close()
			},
		})
		p := newPeer(t, l, ln, 0)
		run(t, l)
		if p.read(); p.err != syscall.ECONNRESET {
			t.Errorf("the peer read %q, end %v, %v", p.got, p.over, p.err)
		}
	})
}

// stretch is a part of an endless text.
func stretch(from, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte((from+i)*7 ^ (from+i)>>9)
	}
	return b
}

// TestConnDrainOvertaken: OnDrain comes when there is room, also where a Write had found some, and took all of it, before
// OnDrain could be called.
func TestConnDrainOvertaken(t *testing.T) {
	overSockets(t, func(t *testing.T, k *Kernel, serve func(*testing.T, *Loop, ListenerConfig, ConnHandler) *Listener) {
		l := newLoop(t, Config{Kernel: k})
		ln := serve(t, l, ListenerConfig{Conn: ConnConfig{WriteBufferBytes: 1}}, ConnHandler{
			OnOpen: func(c *Conn) {
				for _, b := range [][]byte{make([]byte, 3), make([]byte, 8<<20)} {
					if n, err := c.Write(b); err != ErrWouldBlock {
						t.Errorf("Write took %d: %v", n, err)
					}
				}
			},
			OnDrain: func(c *Conn) {
				if c.Room() == 0 {
					t.Error("OnDrain without room")
				}
				_ = l.Close()
			},
		})
		p := newPeer(t, l, ln, 0)
		p.readUntilOver(l, func() {})
		run(t, l)
	})
}
