package weir

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/weirnet/weir/internal/memsys"
)

// TestConnTimeouts: each kind to the instant, on the clock of the bubble.
func TestConnTimeouts(t *testing.T) {
	const sec = time.Second
	write := func(l *Loop, p *peer, at time.Duration) { l.AfterFunc(at, func() { p.write([]byte("x")) }) }
	for _, row := range []struct {
		name  string
		cfg   ConnConfig
		start func(l *Loop, c *Conn, p *peer) // OnOpen, at 0
		want  []string
	}{
		{"idle", ConnConfig{IdleTimeout: 3 * sec}, func(*Loop, *Conn, *peer) {}, []string{"idle 3s", "idle 6s", "idle 9s"}},
		{"idle, renewed by reads", ConnConfig{IdleTimeout: 3 * sec}, func(l *Loop, _ *Conn, p *peer) {
			write(l, p, 2*sec)
			write(l, p, 4*sec)
		}, []string{"idle 7s"}},
		{"idle, renewed by writes", ConnConfig{IdleTimeout: 3 * sec}, func(l *Loop, c *Conn, _ *peer) {
			l.AfterFunc(sec, func() { _, _ = c.Write([]byte("x")) })
		}, []string{"idle 4s", "idle 7s"}},
		{"read", ConnConfig{ReadTimeout: 4 * sec}, func(l *Loop, c *Conn, p *peer) {
			write(l, p, sec)
			l.AfterFunc(2*sec, func() { _, _ = c.Write([]byte("x")) }) // of no account
		}, []string{"read 5s", "read 9s"}},
		{"read, paused", ConnConfig{ReadTimeout: 2 * sec}, func(l *Loop, c *Conn, _ *peer) {
			c.Pause()
			l.AfterFunc(5*sec, c.Resume)
		}, []string{"read 7s", "read 9s"}},
		{"read, ended", ConnConfig{ReadTimeout: 2 * sec}, func(l *Loop, _ *Conn, p *peer) {
			l.AfterFunc(sec, p.closeWrite)
		}, nil},
		{"write", ConnConfig{WriteTimeout: 3 * sec}, func(_ *Loop, c *Conn, _ *peer) {
			_ = c.Enqueue(make([]byte, 20<<20))
		}, []string{"write 3s", "write 6s", "write 9s"}},
		{"write, renewed when some is taken", ConnConfig{WriteTimeout: 3 * sec}, func(l *Loop, c *Conn, p *peer) {
			_ = c.Enqueue(make([]byte, 20<<20))
			l.AfterFunc(2*sec, func() { p.read() })
		}, []string{"write 5s", "write 8s"}},
		{"write, empty queue", ConnConfig{WriteTimeout: 3 * sec}, func(_ *Loop, c *Conn, _ *peer) {
			_, _ = c.Write([]byte("x"))
		}, nil},
		{"write, from when it waits", ConnConfig{WriteTimeout: 3 * sec}, func(l *Loop, c *Conn, _ *peer) {
			l.AfterFunc(4*sec, func() { _ = c.Enqueue(make([]byte, 20<<20)) })
		}, []string{"write 7s"}},
		{"read does not renew idle", ConnConfig{IdleTimeout: 5 * sec, ReadTimeout: 2 * sec}, func(*Loop, *Conn, *peer) {},
			[]string{"read 2s", "read 4s", "idle 5s", "read 6s", "read 8s"}},
		{"both at a time", ConnConfig{IdleTimeout: 4 * sec, ReadTimeout: 4 * sec}, func(*Loop, *Conn, *peer) {},
			[]string{"idle 4s", "read 4s", "idle 8s", "read 8s"}},
		{"deadline", ConnConfig{}, func(l *Loop, c *Conn, p *peer) {
			c.SetDeadline(time.Now().Add(6 * sec))
			write(l, p, sec)
		}, []string{"deadline 6s"}},
		{"deadline taken back", ConnConfig{}, func(l *Loop, c *Conn, _ *peer) {
			c.SetDeadline(time.Now().Add(6 * sec))
			l.AfterFunc(sec, func() { c.SetDeadline(time.Time{}) })
		}, nil},
		{"deadline before", ConnConfig{}, func(_ *Loop, c *Conn, _ *peer) {
			c.SetDeadline(time.Now().Add(-time.Hour))
		}, []string{"deadline 1ns"}},
		{"set", ConnConfig{IdleTimeout: time.Hour}, func(l *Loop, c *Conn, _ *peer) {
			l.AfterFunc(sec, func() { c.SetTimeout(IdleTimeout, 5*sec) })
		}, []string{"idle 6s"}},
		{"set in a slow callback", ConnConfig{}, func(l *Loop, c *Conn, _ *peer) {
			time.Sleep(3 * sec)
			c.SetTimeout(ReadTimeout, 2*sec)
			c.SetTimeout(IdleTimeout, 4*sec)
		}, []string{"read 5s", "idle 7s", "read 7s", "read 9s"}},
		{"taken back", ConnConfig{IdleTimeout: sec, ReadTimeout: 2 * sec}, func(_ *Loop, c *Conn, _ *peer) {
			c.SetTimeout(IdleTimeout, 0)
			c.SetTimeout(ReadTimeout, -1)
		}, nil},
		{"one that never comes", ConnConfig{IdleTimeout: 1<<63 - 1}, func(*Loop, *Conn, *peer) {}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, net *memsys.Net) {
				var l *Loop
				var p *peer
				var began time.Duration
				var got []string
				l, p = timed(t, net, row.cfg, ConnHandler{
					OnOpen: func(c *Conn) {
						began = l.clock()
						l.AfterFunc(10*time.Second-1, func() { _ = l.Close() })
						row.start(l, c, p)
					},
					OnEnd:     func(*Conn) {},
					OnTimeout: func(_ *Conn, what Timeout) { got = append(got, fmt.Sprint(what, " ", l.clock()-began)) },
				})
				run(t, l)
				if !slices.Equal(got, row.want) {
					t.Errorf("%q, want %q", got, row.want)
				}
				if s := l.Stats().Streams; s.Timeouts != uint64(len(got)) {
					t.Errorf("%d timeouts are counted", s.Timeouts)
				}
			})
		})
	}
}

// TestConnTimeoutNil: "Nil ends the connection, with an error that matches ErrTimeout".
func TestConnTimeoutNil(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		var l *Loop
		l, p := timed(t, net, ConnConfig{ReadTimeout: time.Second, IdleTimeout: 2 * time.Second}, ConnHandler{
			OnClose: func(_ *Conn, err error) {
				if e, ok := errors.AsType[*OpError](err); !ok || e.Op != "read" || !errors.Is(err, ErrTimeout) ||
					!errors.Is(err, os.ErrDeadlineExceeded) || l.clock() != time.Second {
					t.Errorf("OnClose has %v at %v", err, l.clock())
				}
				l.AfterFunc(5*time.Second, func() { _ = l.Close() })
			},
		})
		run(t, l)
		if p.read(); p.err == nil {
			t.Error("the peer was not reset")
		}
		if l.timers.len() != 0 {
			t.Errorf("%d timers are left", l.timers.len())
		}
	})
}

// TestConnDialTimeouts: what was set before the connection is there begins then, but for a deadline.
func TestConnDialTimeouts(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		full := fullListener(t, l)
		var told []string
		handler := ConnHandler{
			OnTimeout: func(c *Conn, what Timeout) { told = append(told, fmt.Sprint(what, " ", l.clock())) },
			OnClose:   func(_ *Conn, err error) { told = append(told, fmt.Sprint(err, " ", l.clock())) },
		}
		c, err := l.DialTCP(loopback4, full.Addr(), ConnConfig{IdleTimeout: time.Second}, handler)
		if err != nil {
			t.Fatal(err)
		}
		c.SetTimeout(ReadTimeout, time.Second)
		c.SetDeadline(time.Now().Add(5 * time.Second))
		l.AfterFunc(10*time.Second, func() { _ = l.Close() })
		run(t, l)
		want := []string{"weir: dial tcp " + full.Addr().String() + ": " + os.ErrDeadlineExceeded.Error() + " 5s"}
		if !slices.Equal(told, want) {
			t.Errorf("%q, want %q", told, want)
		}
	})
}

// TestConnTimeoutSet: the names, and that a deadline is no limit that begins again.
func TestConnTimeoutSet(t *testing.T) {
	if s := fmt.Sprint(IdleTimeout, ReadTimeout, WriteTimeout, Deadline, Timeout(0), Timeout(9)); s !=
		"idle read write deadline timeout(0) timeout(9)" {
		t.Error(s)
	}
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l, _ := timed(t, net, ConnConfig{}, ConnHandler{OnOpen: func(c *Conn) {
			defer func() {
				if recover() == nil {
					t.Error("SetTimeout takes a deadline")
				}
				_ = c.Close()
				_ = c.Loop().Close()
			}()
			c.SetTimeout(Deadline, time.Second)
		}})
		run(t, l)
	})
}

// TestConnTimeoutCost: reads and writes leave the heap of timers as it is, however many there are.
func TestConnTimeoutCost(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l, c := manyTimeouts(t, net, 10_000)
		seq := l.timers.seq
		for i := range 1000 {
			l.now += time.Duration(i)
			c.touchRead()
			c.touchWrite()
		}
		if l.timers.seq != seq {
			t.Errorf("1,000 reads and writes armed %d timers", l.timers.seq-seq)
		}
		if allocs := testing.AllocsPerRun(100, func() { c.touchRead(); c.touchWrite() }); allocs != 0 && !raceEnabled {
			t.Errorf("%v allocations", allocs)
		}
	})
}

// manyTimeouts is a loop with so many connections that have limits; the last is returned.
func manyTimeouts(t testing.TB, net *memsys.Net, n int) (*Loop, *Conn) {
	l, err := New(Config{Kernel: NewKernel(net.Backend())})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	limits := &connLimits{bound: Share(), idle: time.Minute, read: time.Minute, write: time.Minute}
	var c *Conn
	for range n {
		c = l.newConn(limits, 0, &l.outgoing, &ConnHandler{})
		c.opened()
	}
	if l.timers.len() != n {
		t.Fatalf("%d timers", l.timers.len())
	}
	return l, c
}

// BenchmarkTimeouts: what a read and a write cost beside a million limits.
func BenchmarkTimeouts(b *testing.B) {
	l, c := manyTimeouts(b, memsys.New(), 1_000_000)
	b.ReportAllocs()
	for b.Loop() {
		l.now++
		c.touchRead()
		c.touchWrite()
	}
}
