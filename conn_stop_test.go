package weir

import (
	"bytes"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/weirnet/weir/internal/memsys"
)

// TestConnCloseSlowly: a peer that reads slowly, but on and on, gets all, however long that takes.
func TestConnCloseSlowly(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		const size = 1 << 20
		closed := false
		l, p := timed(t, net, ConnConfig{CloseTimeout: time.Second}, ConnHandler{
			OnOpen: func(c *Conn) {
				_ = c.Enqueue(make([]byte, size))
				_ = c.Close()
			},
			OnClose: func(_ *Conn, err error) {
				if closed = true; err != nil {
					t.Errorf("OnClose has %v", err)
				}
			},
		})
		var tick *Timer
		tick = l.Every(400*time.Millisecond, func() {
			if p.readSome(64 << 10); p.over || p.err != nil {
				tick.Stop()
				_ = l.Close()
			}
		})
		run(t, l)
		if len(p.got) != size || p.err != nil || !closed {
			t.Errorf("the peer read %d bytes of %d, then %v", len(p.got), size, p.err)
		}
	})
}

// TestConnStopDrains: a Stop waits for who was refused a Write, and has OnDrain to come.
func TestConnStopDrains(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		rest := bytes.Repeat([]byte("0123456789abcdef"), 1<<18)
		want := len(rest)
		write := func(c *Conn) {
			n, err := c.Write(rest)
			if rest = rest[n:]; err != nil && !errors.Is(err, ErrWouldBlock) {
				t.Errorf("Write answers %v with %d bytes left", err, len(rest))
			}
		}
		l, p := timed(t, net, ConnConfig{WriteBufferBytes: 64 << 10}, ConnHandler{
			OnOpen: func(c *Conn) {
				write(c)
				c.Loop().Stop(-1)
			},
			OnDrain: write,
		})
		p.readUntilOver(l, func() {})
		run(t, l)
		p.read()
		if len(p.got) != want || len(rest) != 0 || !p.over {
			t.Errorf("the peer read %d bytes of %d; %d were never taken", len(p.got), want, len(rest))
		}
	})
}

// TestConnStopRelays: what one connection delivers in a Stop can be written on another that has nothing more to deliver.
func TestConnStopRelays(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		for _, fromFirst := range []bool{true, false} {
			l := newLoop(t, Config{Kernel: k})
			var conns []*Conn
			var peers [2]*peer
			const size = 200_000
			ln := serve(t, l, ListenerConfig{}, ConnHandler{
				OnOpen: func(c *Conn) {
					if conns = append(conns, c); len(conns) < 2 {
						return
					}
					from := 1
					if fromFirst {
						from = 0
					}
					conns[from].Data = conns[1-from]
					peers[from].write(make([]byte, size))
					conns[from].Pause()
					l.AfterFunc(20*time.Millisecond, func() { l.Stop(10 * time.Second) })
					peers[1-from].readUntilOver(l, func() {})
					peers[from].readUntilOver(l, peers[from].close)
				},
				OnData: func(c *Conn, b []byte) {
					if n, err := c.Data.(*Conn).Write(b); n != len(b) || err != nil {
						t.Errorf("Write answers %d of %d, %v", n, len(b), err)
					}
				},
			})
			for i := range peers {
				peers[i] = newPeer(t, l, ln, 0)
			}
			run(t, l)
			to := peers[0]
			if fromFirst {
				to = peers[1]
			}
			to.read()
			s := l.Stats().Streams
			if read := s.ReadBytes - s.Discarded; uint64(len(to.got)) != read || len(to.got) == 0 || to.err != nil {
				t.Errorf("%d bytes came of %d that were delivered, then %v", len(to.got), read, to.err)
			}
		}
	})
}

// TestConnSmallBuffer: many small writes of a callback are not refused while the kernel has room.
func TestConnSmallBuffer(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		ln := serve(t, l, ListenerConfig{Conn: ConnConfig{WriteBufferBytes: 4 << 10}}, ConnHandler{
			OnOpen: func(c *Conn) {
				for i := range 640 {
					if n, err := c.Write(make([]byte, 100)); n != 100 || err != nil {
						t.Fatalf("write %d answers %d, %v", i, n, err)
					}
				}
				_ = c.Close()
			},
		})
		p := newPeer(t, l, ln, 0)
		p.readUntilOver(l, func() { _ = l.Close() })
		run(t, l)
		if len(p.got) != 64_000 {
			t.Errorf("%d bytes came", len(p.got))
		}
	})
}

// TestConnCloseLost: a peer that has not got everything does not read an end, whatever closed the connection.
func TestConnCloseLost(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		for _, bySender := range []bool{false, true} {
			l := newLoop(t, Config{Kernel: k})
			ln := serve(t, l, ListenerConfig{Conn: ConnConfig{WriteBufferBytes: 16 << 20}}, ConnHandler{
				OnOpen: func(c *Conn) {
					b := make([]byte, 16<<20)
					if !bySender {
						_, _ = c.Write(b)
					} else if _, err := c.Sender().Write(b); err != nil {
						t.Error(err)
					}
					_ = l.Close()
				},
			})
			p := newPeer(t, l, ln, 4096)
			run(t, l)
			for range 1000 {
				if p.read(); p.over || p.err != nil {
					break
				}
				time.Sleep(time.Millisecond)
			}
			if !errors.Is(p.err, syscall.ECONNRESET) {
				t.Errorf("by a Sender %v: the peer has read %d bytes, an end %v, %v", bySender, len(p.got), p.over, p.err)
			}
		}
	})
}
