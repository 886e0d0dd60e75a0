package weir

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weirnet/weir/internal/memsys"
)

// TestConnCount: at most n reads a turn, the last of which finds out that there is no more.
func TestConnCount(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		var turns []int // reads of each turn that had some
		last := uint64(0)
		total := 0
		ln := serve(t, l, ListenerConfig{Conn: ConnConfig{Bound: Count(3)}}, ConnHandler{
			OnData: func(c *Conn, b []byte) {
				if l.Turn() != last {
					last, turns = l.Turn(), append(turns, 0)
				}
				turns[len(turns)-1]++
				if total += len(b); total == 8*10 {
					_ = l.Close()
				}
			},
		})
		l.readBuf = make([]byte, 10) // a read is full at once
		p := newPeer(t, l, ln, 0)
		p.write(make([]byte, 80))
		run(t, l)
		if want := []int{3, 3, 2}; !slices.Equal(turns, want) {
			t.Errorf("reads of the turns %v, want %v", turns, want)
		}
		if s := l.Stats().Streams; s.BoundStops != 2 || s.ReadBytes != 80 {
			t.Errorf("%d stops on the bound and %d bytes, want 2 and 80", s.BoundStops, s.ReadBytes)
		}
	})
}

// TestConnShare: a connection that always has more holds up a timer and other connections by one visit at most.
// A callback takes 100 µs here, and Q is MaxShare where a timer takes as long.
func TestConnShare(t *testing.T) {
	for _, row := range []struct {
		name    string
		prepare func(p *peer)
	}{
		{"full reads", func(p *peer) {}},
		{"half-closed with a full window", func(p *peer) { p.fill(); p.closeWrite() }},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, net *memsys.Net) {
				const work = 100 * time.Microsecond
				l := loopIn(t, net, Config{})
				l.readBuf = make([]byte, 64)
				var busy *peer
				bytes := 0
				ln := serve(t, l, ListenerConfig{}, ConnHandler{
					OnData: func(c *Conn, b []byte) {
						if time.Sleep(work); c.Data == nil {
							c.Data = len(b)
						}
						if bytes += len(b); busy.fd >= 0 && row.name == "full reads" {
							busy.write(b) // a writer that is as fast as the reader
						}
					},
				})
				var waits []time.Duration
				quiet := serve(t, l, ListenerConfig{}, ConnHandler{
					OnData: func(c *Conn, b []byte) { waits = append(waits, l.clock()-c.Data.(time.Duration)) },
					OnOpen: func(c *Conn) { c.Data = time.Duration(0) },
				})
				busy = newPeer(t, l, ln, 0)
				busy.write(make([]byte, 100<<10))
				row.prepare(busy)
				var peers []*peer
				for range 20 {
					peers = append(peers, newPeer(t, l, quiet, 0))
				}
				late := time.Duration(0)
				ticks := 0
				due := l.clock()
				l.Every(20*time.Millisecond, func() {
					due += 20 * time.Millisecond
					late = max(late, l.clock()-due)
					if ticks++; ticks == 10 {
						_ = l.Close()
					}
					for _, s := range l.table.slots {
						if c, ok := s.source.(*Conn); ok && c.listener == quiet {
							c.Data = l.clock()
						}
					}
					for _, p := range peers {
						p.write([]byte("x"))
					}
				})
				run(t, l)
				// At most the rest of one visit and one callback.
				if late > minShare+work || ticks < 10 {
					t.Errorf("the timer was %v late", late)
				}
				if len(waits) < 9*20 {
					t.Errorf("%d of the others' messages came", len(waits))
				}
				if most := slices.Max(waits); most > 3*work+pollEvery {
					t.Errorf("another connection waited %v", most)
				}
				if bytes == 0 {
					t.Error("the busy connection was not read")
				}
			})
		})
	}
}

// TestConnAgain: a call for the asking, with no bytes, once each; not while the connection is paused, and not once it
// is closed.
func TestConnAgain(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		var calls []string
		var c *Conn
		note := func(s string) { calls = append(calls, s) }
		h := ConnHandler{
			OnOpen: func(*Conn) { note("open") },
			OnData: func(c *Conn, b []byte) {
				note(fmt.Sprintf("data %q", b))
				switch len(calls) {
				case 3:
					c.Again()
				case 4:
					c.Pause()
					c.Again()
					l.AfterFunc(20*time.Millisecond, func() { note("resume"); c.Resume() })
				case 6:
					l.AfterFunc(time.Millisecond, c.Again) // of a quiet connection
				case 7:
					_ = c.Close()
					c.Again()
				}
			},
			OnClose: func(*Conn, error) {
				note("close")
				l.AfterFunc(time.Millisecond, func() { c.Again(); l.AfterFunc(time.Millisecond, func() { _ = l.Close() }) })
			},
		}
		ln := serve(t, l, ListenerConfig{}, ConnHandler{OnOpen: func(c *Conn) { _, _ = c.Write([]byte("1")) }})
		c = dialTo(t, l, ln, ConnConfig{}, h)
		c.Again() // before it is there
		run(t, l)
		want := []string{"open", `data ""`, `data "1"`, `data ""`, "resume", `data ""`, `data ""`, "close"}
		if !slices.Equal(calls, want) {
			t.Errorf("%q\nwant %q", calls, want)
		}
	})
}

// TestConnAgainAfterEnd: "once the peer has ended it is too late".
func TestConnAgainAfterEnd(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		ln := serve(t, l, ListenerConfig{}, ConnHandler{
			OnData: func(*Conn, []byte) { t.Error("a call after the end") },
			OnEnd: func(c *Conn) {
				c.Again()
				l.AfterFunc(5*time.Millisecond, func() { l.Stop(-1) }) // which does not wait for it
			},
		})
		newPeer(t, l, ln, 0).closeWrite()
		run(t, l)
	})
}

// TestConnAgainForEver: it is under the bound, and starves no timer.
func TestConnAgainForEver(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		calls := 0
		l, p := timed(t, net, ConnConfig{}, ConnHandler{OnData: func(c *Conn, b []byte) {
			time.Sleep(100 * time.Microsecond)
			calls++
			c.Again()
		}})
		p.write([]byte("x"))
		began := l.clock()
		l.AfterFunc(20*time.Millisecond, func() {
			if late := l.clock() - began - 20*time.Millisecond; late > 100*time.Microsecond {
				t.Errorf("the timer was %v late", late)
			}
			_ = l.Close()
		})
		run(t, l)
		if calls < 190 {
			t.Errorf("%d calls in 20 ms", calls)
		}
	})
}

// TestConnPause: what is not read fills the window, and the peer has to wait. After Resume come the bytes, then the end.
func TestConnPause(t *testing.T) {
	overSockets(t, func(t *testing.T, k *Kernel, serve func(*testing.T, *Loop, ListenerConfig, ConnHandler) *Listener) {
		l := newLoop(t, Config{Kernel: k})
		got, wrote, ended := 0, 0, false
		var p *peer
		ln := serve(t, l, ListenerConfig{}, ConnHandler{
			OnOpen: func(c *Conn) {
				c.Pause()
				l.AfterFunc(20*time.Millisecond, func() {
					if got != 0 || p.write([]byte("x")) != 0 {
						t.Errorf("%d bytes were read, or the peer writes on", got)
					}
					p.closeWrite()
					l.AfterFunc(5*time.Millisecond, c.Resume)
				})
			},
			OnData: func(_ *Conn, b []byte) { got += len(b) },
			OnEnd: func(c *Conn) {
				ended = true
				_ = c.Close()
			},
			OnClose: func(_ *Conn, err error) {
				if err != nil {
					t.Error(err)
				}
				_ = l.Close()
			},
		})
		p = newPeer(t, l, ln, 0)
		l.AfterFunc(5*time.Millisecond, func() { wrote = p.fill() })
		l.AfterFunc(10*time.Millisecond, func() { wrote += p.fill() }) // the kernel's buffers may have grown
		l.AfterFunc(15*time.Millisecond, func() { wrote += p.fill() })
		run(t, l)
		if got != wrote || wrote == 0 || !ended {
			t.Errorf("%d bytes were read of %d; ended: %v", got, wrote, ended)
		}
	})
}

// TestConnPausedReset: a reset is told at once.
func TestConnPausedReset(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		var p *peer
		ln := serve(t, l, ListenerConfig{}, ConnHandler{
			OnOpen: func(c *Conn) {
				c.Pause()
				l.AfterFunc(time.Millisecond, p.reset)
			},
			OnClose: func(_ *Conn, err error) {
				wantReset(t, err)
				_ = l.Close()
			},
		})
		p = newPeer(t, l, ln, 0)
		run(t, l)
	})
}

// TestConnPausedHungUp: a peer that is gone, for a connection that does not read, keeps nothing busy. What it sent
// comes after Resume.
func TestConnPausedHungUp(t *testing.T) {
	overSockets(t, func(t *testing.T, k *Kernel, serve func(*testing.T, *Loop, ListenerConfig, ConnHandler) *Listener) {
		l := newLoop(t, Config{Kernel: k})
		var p *peer
		got, turns := "", uint64(0)
		ln := serve(t, l, ListenerConfig{}, ConnHandler{
			OnOpen: func(c *Conn) {
				c.Pause()
				_ = c.CloseWrite() // both directions are over
				p.write([]byte("last"))
				p.close()
				l.AfterFunc(20*time.Millisecond, func() { turns = l.Turn() })
				l.AfterFunc(120*time.Millisecond, func() {
					if turns = l.Turn() - turns; turns > 4 {
						t.Errorf("%d turns of waiting", turns)
					}
					c.Resume()
				})
			},
			OnData: func(_ *Conn, b []byte) { got += string(b) },
			OnClose: func(_ *Conn, err error) {
				if got != "last" {
					t.Errorf("%q before OnClose(%v)", got, err)
				}
				_ = l.Close()
			},
		})
		p = newPeer(t, l, ln, 0)
		run(t, l)
	})
}

// TestConnStop: what was received is read, answered and flushed, then the connection is closed; also where it is paused,
// pauses again, or asks for a call.
func TestConnStop(t *testing.T) {
	for _, row := range []struct {
		name   string
		again  bool
		onData func(l *Loop, c *Conn)
	}{
		{"reads", false, func(*Loop, *Conn) {}},
		{"asks for a call", true, func(*Loop, *Conn) {}},
		{"pauses", false, func(l *Loop, c *Conn) { c.Pause(); l.AfterFunc(time.Millisecond, c.Resume) }},
		{"pauses and asks", true, func(l *Loop, c *Conn) { c.Pause(); l.AfterFunc(time.Millisecond, c.Resume) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				l := newLoop(t, Config{Kernel: k})
				l.readBuf = make([]byte, 1000)
				left := 0
				ln := serve(t, l, ListenerConfig{}, ConnHandler{
					OnOpen: func(c *Conn) {
						c.Pause()
						l.AfterFunc(5*time.Millisecond, func() { l.Stop(-1) })
					},
					OnData: func(c *Conn, b []byte) {
						if len(b) > 0 {
							_, _ = c.Write(b)
							if row.again {
								left++ // one more call to come
								c.Again()
							}
							row.onData(l, c)
							return
						}
						left = 0
					},
					OnClose: func(c *Conn, err error) {
						if err != nil || left != 0 {
							t.Errorf("OnClose has %v, %d calls that were asked for did not come", err, left)
						}
					},
				})
				p := newPeer(t, l, ln, 0)
				p.write(make([]byte, 20_500))
				run(t, l)
				if p.read(); len(p.got) != 20_500 || !p.over {
					t.Errorf("%d bytes came back, then %v", len(p.got), p.err)
				}
			})
		})
	}
}

// TestConnStopGrace: who never reads on costs the grace.
func TestConnStopGrace(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		var told error
		l, p := timed(t, net, ConnConfig{}, ConnHandler{
			OnData:  func(c *Conn, _ []byte) { c.Pause() },
			OnClose: func(_ *Conn, err error) { told = err },
		})
		p.write([]byte("x"))
		began := l.clock()
		l.Stop(3 * time.Second)
		run(t, l)
		if took := l.clock() - began; took != 3*time.Second || told != ErrClosed {
			t.Errorf("it took %v, and OnClose has %v", took, told)
		}
	})
}
