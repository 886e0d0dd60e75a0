package weir

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirnet/weir/internal/memsys"
)

// TestConnSender: what goroutines write arrives, each one's in its order, under limits that make them wait.
func TestConnSender(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		const writers, each = 8, 500
		l := newLoop(t, Config{Kernel: k})
		var wait sync.WaitGroup
		ln := serve(t, l, ListenerConfig{Conn: ConnConfig{WriteBufferBytes: 200}}, ConnHandler{
			OnOpen: func(c *Conn) {
				s := c.Sender()
				if c.Sender() != s {
					t.Error("there are two senders")
				}
				for w := range writers {
					wait.Go(func() { writeNumbers(t, s, w, each) })
				}
				go func() {
					wait.Wait()
					_ = l.Post(func() { _ = c.Close() })
				}()
			},
			OnClose: func(c *Conn, err error) {
				if err != nil {
					t.Error(err)
				}
			},
		})
		p := newPeer(t, l, ln, 0)
		p.readUntilOver(l, func() { _ = l.Close() })
		run(t, l)
		wait.Wait()
		if len(p.got) != writers*each*6 {
			t.Fatalf("%d bytes came", len(p.got))
		}
		var next [writers]uint32
		for b := p.got; len(b) > 0; b = b[6:] {
			w, n := b[0], binary.BigEndian.Uint32(b[1:])
			if b[5] != '\n' || n != next[w] {
				t.Fatalf("of writer %d came %d, want %d", w, n, next[w])
			}
			next[w]++
		}
	})
}

func writeNumbers(t *testing.T, s *ConnSender, who, n int) {
	for i := range n {
		b := binary.BigEndian.AppendUint32([]byte{byte(who)}, uint32(i))
		b = append(b, '\n')
		if i%2 == 0 { // without waiting, where there is room
			if n, err := s.Write(b); err == nil && n == len(b) {
				continue
			} else if n != 0 || err != ErrWouldBlock {
				t.Errorf("Write answers %d, %v", n, err)
			}
		}
		if err := s.WriteContext(t.Context(), b); err != nil {
			t.Error(err)
			return
		}
	}
}

// TestConnSenderLimits: "ErrWouldBlock when ConnConfig.WriteBufferBytes would be exceeded, but an empty queue takes any
// b"; WriteContext waits, and ends with its context.
func TestConnSenderLimits(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		var c *Conn
		l, p := timed(t, net, ConnConfig{WriteBufferBytes: 1000}, ConnHandler{OnOpen: func(conn *Conn) {
			c = conn
			block(t, net, c, true)
		}})
		l.AfterFunc(time.Second, func() {
			s := c.Sender()
			if n, err := s.Write(nil); n != 0 || err != nil {
				t.Errorf("of nothing: %d, %v", n, err)
			}
			if n, err := s.Write(make([]byte, 5000)); n != 5000 || err != nil {
				t.Errorf("the first: %d, %v", n, err)
			}
			if n, err := s.Write([]byte("x")); n != 0 || err != ErrWouldBlock {
				t.Errorf("the next: %d, %v", n, err)
			}
		})
		waited := make(chan error, 2)
		l.AfterFunc(2*time.Second, func() { // moved meanwhile, as far as the connection has room
			s := c.Sender()
			if queued := c.Stats().Queued; queued != 1000 {
				t.Errorf("%d bytes are queued", queued)
			}
			if n, err := s.Write(make([]byte, 900)); n != 900 || err != nil {
				t.Errorf("the second: %d, %v", n, err)
			}
			go func() {
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errTimeUp)
				defer cancel()
				waited <- s.WriteContext(ctx, make([]byte, 200))
				waited <- s.WriteContext(t.Context(), make([]byte, 200))
			}()
		})
		l.AfterFunc(5*time.Second, func() {
			if err := <-waited; err != errTimeUp {
				t.Errorf("WriteContext: %v", err)
			}
			select {
			case err := <-waited:
				t.Errorf("it has not waited: %v", err)
			default:
			}
			block(t, net, c, false)
			p.readUntilOver(l, func() { _ = l.Close() })
		})
		l.AfterFunc(6*time.Second, func() {
			if err := <-waited; err != nil {
				t.Error(err)
			}
			_ = c.Close()
			if _, err := c.Sender().Write([]byte("x")); err != ErrClosed {
				t.Errorf("after Close: %v", err)
			}
			if err := c.Sender().WriteContext(t.Context(), []byte("x")); err != ErrClosed {
				t.Errorf("after Close: %v", err)
			}
		})
		run(t, l)
		if len(p.got) != 5000+900+200 {
			t.Errorf("%d bytes came", len(p.got))
		}
	})
}

// block has the connection's writes find no room.
func block(t *testing.T, net *memsys.Net, c *Conn, on bool) {
	t.Helper()
	if err := net.BlockSends(c.fd, on); err != nil {
		t.Error(err)
	}
}

// TestConnSenderAccounts: whatever ends the connection, what was taken is delivered or counted as unsent, and who waits
// for room hears of the end.
func TestConnSenderAccounts(t *testing.T) {
	for _, row := range []struct {
		name string
		end  func(l *Loop, c *Conn, p *peer)
	}{
		{"Close", func(_ *Loop, c *Conn, _ *peer) { _ = c.Close() }},
		{"CloseWrite", func(l *Loop, c *Conn, p *peer) { _ = c.CloseWrite(); l.AfterFunc(time.Second, p.closeWrite) }},
		{"Reset", func(_ *Loop, c *Conn, _ *peer) { _ = c.Reset() }},
		{"the peer's reset", func(_ *Loop, _ *Conn, p *peer) { p.reset() }},
		{"the peer's end", func(_ *Loop, _ *Conn, p *peer) { p.closeWrite() }},
		{"Stop", func(l *Loop, _ *Conn, _ *peer) { l.Stop(10 * time.Second) }},
		{"loop Close", func(l *Loop, _ *Conn, _ *peer) { _ = l.Close() }},
		{"a write that fails, paused", func(l *Loop, c *Conn, _ *peer) {
			c.Pause()
			c.breakOff(c.opError("send", syscall.EPERM))
			l.AfterFunc(time.Second, func() {
				if _, err := c.Sender().Write([]byte("x")); err != ErrClosed {
					panic("it takes what nobody will write")
				}
				c.Resume()
			})
		}},
		{"a write that fails", func(_ *Loop, c *Conn, _ *peer) { c.breakOff(c.opError("send", syscall.EPERM)) }},
	} {
		for _, reads := range []bool{true, false} {
			t.Run(row.name, func(t *testing.T) {
				inBubble(t, func(t *testing.T, net *memsys.Net) {
					var c *Conn
					cfg := ConnConfig{WriteBufferBytes: 1000, CloseTimeout: 3 * time.Second, SendBufferBytes: 1}
					var l *Loop
					l, p := timed(t, net, cfg, ConnHandler{
						OnOpen:  func(conn *Conn) { c = conn; c.Sender() },
						OnClose: func(*Conn, error) { l.AfterFunc(time.Second, func() { _ = l.Close() }) },
					})
					var taken atomic.Int64
					var wait sync.WaitGroup
					l.AfterFunc(time.Second, func() {
						s := c.Sender()
						for range 8 {
							wait.Go(func() {
								for {
									err := s.WriteContext(context.Background(), make([]byte, 300))
									if errors.Is(err, ErrClosed) {
										return
									}
									if err != nil {
										t.Error(err)
										return
									}
									taken.Add(300)
								}
							})
						}
					})
					l.AfterFunc(2*time.Second, func() {
						if reads {
							var tick *Timer
							tick = l.Every(time.Millisecond, func() {
								if p.fd < 0 {
									tick.Stop()
									return
								}
								p.read()
							})
						}
						row.end(l, c, p)
					})
					run(t, l)
					synctest.Wait()
					wait.Wait()
					s := l.Stats().Streams
					if got := s.WrittenBytes + s.UnsentBytes; got != uint64(taken.Load()) || got == 0 {
						t.Errorf("%d bytes were taken; %d written, %d unsent", taken.Load(), s.WrittenBytes, s.UnsentBytes)
					}
					graceful := row.name == "Close" || row.name == "CloseWrite" || row.name == "Stop"
					if graceful && reads && s.UnsentBytes > 0 {
						t.Errorf("%d bytes unsent", s.UnsentBytes)
					}
				})
			})
		}
	}
}

// TestConnSenderTogether: what is written before the loop comes to it is one call.
func TestConnSenderTogether(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l, p := timed(t, net, ConnConfig{}, ConnHandler{OnData: func(c *Conn, _ []byte) {
			for range 100 {
				_, _ = c.Sender().Write([]byte("0123456789"))
			}
		}})
		p.write([]byte("x"))
		l.AfterFunc(time.Second, func() { _ = l.Close() })
		run(t, l)
		if p.read(); !bytes.Equal(p.got, bytes.Repeat([]byte("0123456789"), 100)) || l.Stats().Streams.WriteCalls != 1 {
			t.Errorf("%d bytes in %d calls", len(p.got), l.Stats().Streams.WriteCalls)
		}
	})
}
