package weir

import (
	"bytes"
	"errors"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/weirnet/weir/internal/memsys"
)

// TestConnHalfOpen: each direction ends for itself, whichever is first.
func TestConnHalfOpen(t *testing.T) {
	overSockets(t, func(t *testing.T, k *Kernel, serve func(*testing.T, *Loop, ListenerConfig, ConnHandler) *Listener) {
		for _, peerFirst := range []bool{true, false} {
			l := newLoop(t, Config{Kernel: k})
			var order []string
			var p *peer
			ln := serve(t, l, ListenerConfig{}, ConnHandler{
				OnOpen: func(c *Conn) {
					if peerFirst {
						p.write([]byte("in"))
						p.closeWrite()
						return
					}
					_, _ = c.Write([]byte("out"))
					_ = c.CloseWrite()
					l.AfterFunc(5*time.Millisecond, func() {
						if p.read(); !p.over {
							t.Error("the peer has not read the end")
						}
						p.write([]byte("in"))
						p.closeWrite()
					})
				},
				OnData: func(_ *Conn, b []byte) { order = append(order, string(b)) },
				OnEnd: func(c *Conn) {
					order = append(order, "end")
					if peerFirst {
						l.AfterFunc(5*time.Millisecond, func() {
							_, _ = c.Write([]byte("out"))
							_ = c.CloseWrite()
						})
					}
				},
				OnClose: func(c *Conn, err error) {
					if order = append(order, "close"); err != nil {
						t.Error(err)
					}
					_ = l.Close()
				},
			})
			p = newPeer(t, l, ln, 0)
			run(t, l)
			if p.read(); string(p.got) != "out" || !p.over {
				t.Errorf("the peer read %q, then %v", p.got, p.err)
			}
			if want := []string{"in", "end", "close"}; !slices.Equal(order, want) {
				t.Errorf("peer first %v: %q, want %q", peerFirst, order, want)
			}
			if s := l.Stats().Streams; s.Closed != 1 || s.Broken != 0 || s.Open != 0 {
				t.Errorf("%+v", s)
			}
		}
	})
}

// TestConnEndNil: without OnEnd the connection closes when what is queued has gone out.
func TestConnEndNil(t *testing.T) {
	overSockets(t, func(t *testing.T, k *Kernel, serve func(*testing.T, *Loop, ListenerConfig, ConnHandler) *Listener) {
		l := newLoop(t, Config{Kernel: k})
		want := stretch(0, 20<<20)
		var p *peer
		ln := serve(t, l, ListenerConfig{}, ConnHandler{
			OnOpen: func(c *Conn) {
				if err := c.Enqueue(want); err != nil {
					t.Error(err)
				}
				p.closeWrite()
				l.AfterFunc(10*time.Millisecond, func() {
					if c.Stats().Queued == 0 {
						t.Error("all has gone out, and the test shows nothing")
					}
					p.readUntilOver(l, func() { _ = l.Close() })
				})
			},
			OnClose: func(_ *Conn, err error) {
				if err != nil {
					t.Error(err)
				}
			},
		})
		p = newPeer(t, l, ln, 0)
		run(t, l)
		if !bytes.Equal(p.got, want) {
			t.Errorf("%d bytes of %d came, then %v", len(p.got), len(want), p.err)
		}
	})
}

// TestConnBroken: the peer is gone with something unread, which is a reset. What it sent before is delivered, then
// OnClose tells; another connection does not hear of it.
func TestConnBroken(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		var p *peer
		got := ""
		ln := serve(t, l, ListenerConfig{}, ConnHandler{
			OnOpen: func(c *Conn) {
				if c.Data = "other"; p != nil && c.RemoteAddr() == localOf(t, p) {
					c.Data = "broken"
					c.Pause()
					l.AfterFunc(5*time.Millisecond, func() {
						p.write([]byte("last words"))
						p.close()
						_, _ = c.Write([]byte("1"))
						l.AfterFunc(5*time.Millisecond, func() {
							_, _ = c.Write([]byte("2"))
							c.Resume()
						})
					})
				}
			},
			OnData: func(_ *Conn, b []byte) { got += string(b) },
			OnClose: func(c *Conn, err error) {
				if c.Data == "other" {
					if err != ErrClosed {
						t.Errorf("the other's OnClose has %v", err)
					}
					return
				}
				wantReset(t, err)
				l.AfterFunc(5*time.Millisecond, func() { _ = l.Close() })
			},
		})
		newPeer(t, l, ln, 0)
		p = newPeer(t, l, ln, 0)
		run(t, l)
		if s := l.Stats().Streams; s.Broken != 1 || s.Closed != 2 {
			t.Errorf("%d broken of %d", s.Broken, s.Closed)
		}
		if got != "" && got != "last words" {
			t.Errorf("%q came", got)
		}
	})
}

func localOf(t *testing.T, p *peer) any {
	t.Helper()
	a, err := p.k.LocalAddr(p.fd)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestConnWriteFails: whatever a write answers, what came before is delivered, OnClose tells the reason once, and
// what was taken is counted as unsent. The peer, which does nothing, is not waited for.
func TestConnWriteFails(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EPIPE, syscall.ECONNRESET, syscall.EPERM, syscall.EHOSTUNREACH} {
		for _, row := range []struct {
			name  string
			start func(l *Loop, c *Conn)
		}{
			{"written", func(_ *Loop, c *Conn) { _, _ = c.Write(make([]byte, 1000)) }},
			{"written through", func(_ *Loop, c *Conn) {
				if n, err := c.Write(make([]byte, 100_000)); n != 0 || !errors.Is(err, syscall.EPIPE) {
					c.Loop().Stop(0)
				}
			}},
			{"written and closed", func(_ *Loop, c *Conn) { _, _ = c.Write(make([]byte, 1000)); _ = c.Close() }},
			{"written and ended", func(_ *Loop, c *Conn) { _, _ = c.Write(make([]byte, 1000)); _ = c.CloseWrite() }},
			{"given to the sender", func(l *Loop, c *Conn) {
				_, _ = c.Sender().Write(make([]byte, 1000))
			}},
		} {
			t.Run(errno.Error()+" "+row.name, func(t *testing.T) {
				inBubble(t, func(t *testing.T, net *memsys.Net) {
					server := loopIn(t, net, Config{Faults: faultErrno(t, "write", errno)})
					closed := 0
					got := 0
					ln := serve(t, server, ListenerConfig{}, ConnHandler{
						OnData: func(c *Conn, b []byte) {
							if got += len(b); got == 2 {
								t.Error("too much")
							}
							row.start(server, c)
						},
						OnClose: func(c *Conn, err error) {
							if closed++; !errors.Is(err, errno) {
								t.Errorf("OnClose has %v", err)
							}
							server.AfterFunc(time.Second, func() { _ = server.Close() })
						},
					})
					other := loopIn(t, net, Config{})
					p := newPeer(t, other, ln, 0)
					p.write([]byte("x"))
					run(t, server)
					if s := server.Stats().Streams; closed != 1 || s.Broken != 1 || s.QueuedBytes != 0 ||
						s.UnsentBytes != 1000 && row.name != "written through" {
						t.Errorf("%d closes, %d broken, %d unsent, %d queued", closed, s.Broken, s.UnsentBytes, s.QueuedBytes)
					}
				})
			})
		}
	}
}

// TestConnReset: "the peer reads an error instead of an end (RST), and what is queued on both sides is lost".
func TestConnReset(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		ln := serve(t, l, ListenerConfig{}, ConnHandler{
			OnOpen: func(c *Conn) {
				_ = c.Enqueue(make([]byte, 20<<20))
				if err := c.Reset(); err != nil {
					t.Error(err)
				}
				if err := c.Reset(); err != ErrClosed {
					t.Errorf("Reset again: %v", err)
				}
			},
			OnClose: func(c *Conn, err error) {
				if err != nil {
					t.Error(err)
				}
				if s := l.Stats().Streams; s.UnsentBytes+s.WrittenBytes != 20<<20 || s.UnsentBytes == 0 {
					t.Errorf("%d unsent, %d written", s.UnsentBytes, s.WrittenBytes)
				}
				_ = l.Close()
			},
		})
		p := newPeer(t, l, ln, 0)
		run(t, l)
		if p.read(); p.err != syscall.ECONNRESET {
			t.Errorf("the peer has read %d bytes, end %v, error %v", len(p.got), p.over, p.err)
		}
	})
}

// TestConnWriteBreaks: "n < len(b) comes with" an error, also where the connection breaks while Write makes room.
func TestConnWriteBreaks(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k, Faults: plan(t, "write*=EPIPE")})
		ln := serve(t, l, ListenerConfig{Conn: ConnConfig{WriteBufferBytes: 1}}, ConnHandler{
			OnOpen: func(c *Conn) {
				if n, err := c.Write(make([]byte, 3)); n != 1 || !errors.Is(err, syscall.EPIPE) {
					t.Errorf("Write took %d: %v", n, err)
				}
				_ = c.Reset()
			},
			OnClose: func(*Conn, error) { _ = l.Close() },
		})
		newPeer(t, l, ln, 0)
		run(t, l)
	})
}
