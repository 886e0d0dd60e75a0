package weirtls_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirnet/weir"
	"github.com/weirnet/weir/weirtest"
	"github.com/weirnet/weir/weirtls"
)

// playApart is play with the peers on a loop of their own, which is closed when the first has ended and what it sent has
// had the time to arrive. setUp is called before both run.
func playApart(t *testing.T, setUp func(s, peers *script)) {
	t.Helper()
	certificate() // not on the clock of the bubble
	synctest.Test(t, func(t *testing.T) {
		k := weirtest.NewNetwork().Kernel()
		var both [2]*weir.Loop
		for i := range both {
			l, err := weir.New(weir.Config{Kernel: k})
			if err != nil {
				t.Fatal(err)
			}
			both[i] = l
		}
		setUp(&script{t, both[0]}, &script{t, both[1]})
		over := make(chan struct{})
		go func() {
			defer close(over)
			_ = both[1].Run(context.Background())
		}()
		_ = both[0].Run(context.Background())
		time.Sleep(time.Minute)
		_ = both[1].Close()
		<-over
	})
}

// TestSenderEnds ends a connection while goroutines write on it, with a peer that reads or not: each hears of it, and
// where the end is an orderly one, whatever was taken arrives before the close_notify.
func TestSenderEnds(t *testing.T) {
	nothing := func(*script, *weirtls.Conn) {}
	for name, row := range map[string]struct {
		end      func(s *script, c *weirtls.Conn)
		peerEnds func(c *weirtls.Conn)
		orderly  bool
	}{
		"Close":                 {end: func(_ *script, c *weirtls.Conn) { _ = c.Close() }, orderly: true},
		"CloseWrite":            {end: func(_ *script, c *weirtls.Conn) { _ = c.CloseWrite() }, orderly: true},
		"Stop":                  {end: func(s *script, _ *weirtls.Conn) { s.loop.Stop(time.Minute) }, orderly: true},
		"Reset":                 {end: func(_ *script, c *weirtls.Conn) { _ = c.Reset() }},
		"loop Close":            {end: func(s *script, _ *weirtls.Conn) { _ = s.loop.Close() }},
		"the peer's reset":      {end: nothing, peerEnds: func(c *weirtls.Conn) { _ = c.Reset() }},
		"a record that is none": {end: nothing, peerEnds: func(c *weirtls.Conn) { _ = c.Raw().Enqueue([]byte("this is no record")) }},
	} {
		for _, reads := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				var taken, came atomic.Int64
				ended := false
				playApart(t, func(s, peers *script) {
					var c, peer *weirtls.Conn
					at := s.serve(weirtls.Config{SenderBufferBytes: 2000, CloseTimeout: 3 * time.Second},
						weir.ConnConfig{WriteBufferBytes: 1000, SendBufferBytes: 1, CloseTimeout: 3 * time.Second}, weirtls.Handler{
							OnHandshake: func(conn *weirtls.Conn, _ tls.ConnectionState) {
								c = conn
								s.writers(c.Sender(), &taken)
							},
							OnEnd: func(c *weirtls.Conn) { _ = c.Close() },
						})
					peer = peers.dial(at, nil, weirtls.Handler{
						OnHandshake: func(c *weirtls.Conn, _ tls.ConnectionState) { c.Pause() },
						OnData:      func(_ *weirtls.Conn, b []byte) { came.Add(int64(len(b))) },
						OnEnd: func(c *weirtls.Conn) {
							ended = true
							_ = c.Close()
						},
					})
					s.after(time.Second, func() {
						if q := c.Raw().Stats().Queued; q > 1000+17<<10 {
							t.Errorf("%d bytes are queued", q)
						}
						row.end(s, c)
						s.after(30*time.Second, func() { _ = s.loop.Close() })
					})
					peers.after(time.Second, func() {
						if reads {
							peer.Resume()
						}
						if row.peerEnds != nil {
							row.peerEnds(peer)
						}
					})
				})
				switch {
				case taken.Load() == 0:
					t.Error("nothing was taken")
				case row.orderly && reads && (came.Load() != taken.Load() || !ended):
					t.Errorf("%d bytes were taken, %d came, ended %v", taken.Load(), came.Load(), ended)
				case came.Load() > taken.Load():
					t.Errorf("%d bytes were taken, and %d came", taken.Load(), came.Load())
				}
			})
		}
	}
}

// writers write until the Sender takes no more, and have all ended before the bubble does.
func (s *script) writers(sender *weirtls.Sender, taken *atomic.Int64) {
	for range 8 {
		go func() {
			for {
				err := sender.WriteContext(context.Background(), make([]byte, 300))
				if err != nil {
					if err != weir.ErrClosed {
						s.Error(err)
					}
					return
				}
				taken.Add(300)
			}
		}()
	}
}

// TestSenderFarewell holds of the Sender "A Stop has it all go out before OnStop is called", also where others would write
// for ever.
func TestSenderFarewell(t *testing.T) {
	var taken atomic.Int64
	var got bytes.Buffer
	playApart(t, func(s, peers *script) {
		began := time.Now()
		at := s.serve(weirtls.Config{}, weir.ConnConfig{WriteBufferBytes: 1000}, weirtls.Handler{
			OnHandshake: func(c *weirtls.Conn, _ tls.ConnectionState) { s.writers(c.Sender(), &taken) },
			OnStop: func(c *weirtls.Conn) {
				s.wantWrite(c.Sender(), []byte("x"), weir.ErrClosed)
				if _, err := c.Write([]byte("bye")); err != nil && err != weir.ErrWouldBlock {
					t.Error(err)
				}
			},
			OnDrain: func(c *weirtls.Conn) { _, _ = c.Write([]byte("bye")) },
			OnClose: func(_ *weirtls.Conn, err error) {
				if d := time.Since(began); d > time.Minute || err != nil {
					t.Errorf("stopped after %v: %v", d, err)
				}
			},
		})
		peers.dial(at, nil, weirtls.Handler{
			OnData: func(c *weirtls.Conn, b []byte) {
				got.Write(b)
				c.Pause() // slow, so that something waits all the time
				peers.after(100*time.Millisecond, c.Resume)
			},
		})
		s.after(time.Second, func() { s.loop.Stop(-1) })
	})
	if want := int(taken.Load()) + len("bye"); got.Len() != want || !bytes.HasSuffix(got.Bytes(), []byte("bye")) {
		t.Errorf("%d bytes came, want %d", got.Len(), want)
	}
}
