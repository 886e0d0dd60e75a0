package weirtls

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/weirnet/weir"
)

// join connects a side of weirtls to a peer, which has not begun TLS.
func (p *place) join(role Role, cfg Config, conn weir.ConnConfig, h Handler) peer {
	p.t.Helper()
	if role == AsServer {
		return p.dial(p.serve(cfg, conn, h))
	}
	at, accept := p.listen()
	p.call(at, cfg, conn, h)
	return accept()
}

// TestSenderOrder: what goroutines write arrives, each one's in its order, under limits that make them wait, also where
// the queue of the loop is full most of the time.
func TestSenderOrder(t *testing.T) {
	for name, loop := range map[string]weir.Config{"": {}, ", no posts": {MaxPosts: 1}} {
		for _, role := range []Role{AsServer, AsClient} {
			for _, version := range versions {
				t.Run(fmt.Sprintf("%v %s%s", role, versionName(version), name), func(t *testing.T) {
					onEachKernel(t, loop, func(t *testing.T, p *place) { sendNumbers(t, p, role, version, loop.MaxPosts > 0) })
				})
			}
		}
	}
}

func sendNumbers(t *testing.T, p *place, role Role, version uint16, flood bool) {
	const writers, each = 4, 500
	var wait sync.WaitGroup
	closed := make(chan error, 1)
	other := p.join(role, Config{TLS: roleTLS(role, version), SenderBufferBytes: 200}, weir.ConnConfig{WriteBufferBytes: 500}, Handler{
		OnOpen: func(c *Conn) { // before the handshake
			s := c.Sender()
			for w := range writers {
				wait.Go(func() { writeNumbers(t, s, w, each) })
			}
			over := make(chan struct{})
			if flood {
				go floodPosts(c.Loop(), over)
			}
			go func() {
				wait.Wait()
				close(over)
				_ = c.Loop().PostContext(context.Background(), func() { _ = c.Close() })
			}()
		},
		OnClose: func(c *Conn, err error) {
			if c.sender.told < 0 {
				t.Errorf("posts have been counted wrong: %d", c.sender.told)
			}
			closed <- err
		},
	})
	c := stdConn(opposite(role), other, roleTLS(opposite(role), version))
	got, err := io.ReadAll(c)
	_ = c.Close()
	if err := errors.Join(err, <-closed); err != nil {
		t.Fatal(err)
	}
	if len(got) != writers*each*6 {
		t.Fatalf("%d bytes came", len(got))
	}
	var next [writers]uint32
	for b := got; len(b) > 0; b = b[6:] {
		w, n := b[0], binary.BigEndian.Uint32(b[1:])
		if b[5] != '\n' || n != next[w] {
			t.Fatalf("of writer %d came %d, want %d", w, n, next[w])
		}
		next[w]++
	}
}

func writeNumbers(t *testing.T, s *Sender, who, n int) {
	for i := range n {
		b := binary.BigEndian.AppendUint32([]byte{byte(who)}, uint32(i))
		b = append(b, '\n')
		if i%2 == 0 { // without waiting, where there is room
			if n, err := s.Write(b); err == nil && n == len(b) {
				continue
			} else if n != 0 || err != weir.ErrWouldBlock {
				t.Errorf("Write answers %d, %v", n, err)
			}
		}
		if err := s.WriteContext(context.Background(), b); err != nil {
			t.Error(err)
			return
		}
	}
}

// floodPosts keeps the queue of the loop full.
func floodPosts(l *weir.Loop, over <-chan struct{}) {
	for {
		select {
		case <-over:
			return
		default:
			_ = l.PostContext(context.Background(), func() {})
		}
	}
}

// TestSenderMemory: a connection that once had much to send holds nothing of it when all has gone.
func TestSenderMemory(t *testing.T) {
	onEachKernel(t, weir.Config{}, func(t *testing.T, p *place) {
		const burst = 1 << 20
		conns := make(chan *Conn, 1)
		other := p.join(AsServer, Config{TLS: serverTLS(0), SenderBufferBytes: 2 * burst}, weir.ConnConfig{}, Handler{
			OnOpen: func(c *Conn) {
				for range 2 {
					if _, err := c.Sender().Write(make([]byte, burst)); err != nil {
						t.Error(err)
					}
				}
				conns <- c
			},
		})
		c := stdConn(AsClient, other, clientTLS(0))
		defer c.Close()
		if _, err := io.CopyN(io.Discard, c, 2*burst); err != nil {
			t.Fatal(err)
		}
		s := (<-conns).sender
		do(t, p.loop, func() {
			if s.first != nil || s.last != nil || s.moving != nil || s.held != 0 || s.told != 0 {
				t.Errorf("it holds %d bytes", s.held)
			}
		})
	})
}
