//go:build perf

package weir

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"
)

// streamRun is a server with a listener that echoes for quiet connections, and a timer, while something is aimed at it,
// or, as a control, at another process.
type streamRun struct {
	role    string // of the flood
	conns   int    // of the flood
	control bool
	d       time.Duration
}

type streamResult struct {
	ticks, due int
	lags       []time.Duration // sorted
	p50, p99   time.Duration   // of the quiet connections' answers
	wait       Histogram
	accepted   uint64
	read       uint64
}

func (r streamRun) run(t *testing.T) (res streamResult) {
	t.Helper()
	l := newLoop(t, Config{})
	quiet := serve(t, l, ListenerConfig{}, ConnHandler{OnData: func(c *Conn, b []byte) { _, _ = c.Write(b) }})
	target := quiet.Addr().String() // connects go where the quiet ones are
	if r.role == "pour" {
		target = serve(t, l, ListenerConfig{}, ConnHandler{}).Addr().String()
	}
	if r.control {
		startStreamPeer(t, "sink", "-", 0, 0).read(t, &target)
	}
	clients := startStreamPeer(t, "quiet", quiet.Addr().String(), 100, r.d)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var ready string
		clients.read(t, &ready)
		flood := startStreamPeer(t, r.role, target, r.conns, r.d+time.Second)
		flood.read(t, &ready)
		_ = l.Post(func() {
			const tick = 20 * time.Millisecond
			due := l.now + tick
			timer := l.Every(tick, func() {})
			timer.fn = func() {
				res.ticks++
				res.lags = append(res.lags, l.now-due)
				due = timer.when
			}
			res.due = int(r.d / tick)
			l.AfterFunc(r.d, func() { timer.Stop() })
		})
		var p50, p99 int64
		clients.read(t, &p50, &p99)
		res.p50, res.p99 = time.Duration(p50), time.Duration(p99)
		_ = flood.in.Close()
		s := l.Stats()
		res.wait, res.accepted, res.read = s.VisitWait, s.Streams.Accepted, s.Streams.ReadBytes
		_ = l.Close()
	}()
	ctx, cancel := context.WithTimeout(t.Context(), r.d+20*time.Second)
	defer cancel()
	if err := l.Run(ctx); err != nil {
		t.Fatal(err)
	}
	<-done
	slices.Sort(res.lags)
	t.Logf("%s, control %v: %d of %d ticks, lag p99 %v; quiet p50 %v p99 %v; wait for a visit p50 %v p90 %v p99 %v; %d accepted, %d MiB read",
		r.role, r.control, res.ticks, res.due, res.lags[len(res.lags)*99/100], res.p50, res.p99,
		res.wait.Quantile(0.5), res.wait.Quantile(0.9), res.wait.Quantile(0.99), res.accepted, res.read>>20)
	return res
}

// TestPerfStreamFlood: one connection that reads at full speed.
func TestPerfStreamFlood(t *testing.T) {
	quietBeside(t, streamRun{role: "pour", d: 4 * time.Second})
}

// TestPerfAcceptStorm: 5,000 connects.
func TestPerfAcceptStorm(t *testing.T) {
	quietBeside(t, streamRun{role: "connect", conns: 5000, d: 2 * time.Second})
}

// quietBeside holds that the flood costs a timer of 20 ms no tick in twenty, and 100 quiet connections at p99 no more
// than twice what the same flood costs them that is aimed at another process, and 1 ms.
func quietBeside(t *testing.T, r streamRun) {
	attempts(t, func() string {
		r.control = true
		control := r.run(t)
		r.control = false
		got := r.run(t)
		limits, _ := Config{}.resolve()
		switch {
		case got.ticks < got.due*95/100:
			return fmt.Sprintf("%d of %d ticks", got.ticks, got.due)
		case got.p99 > 2*control.p99+time.Millisecond:
			return fmt.Sprintf("quiet connections wait %v at p99, %v in the control", got.p99, control.p99)
		case got.wait.Quantile(0.9) > limits.MaxShare: // beyond, it tells how long the process had no processor
			return fmt.Sprintf("the wait for a visit is %v at p90", got.wait.Quantile(0.9))
		}
		return ""
	})
}

// TestPerfSlowReaders holds that 1,000 connections which never read, while the server writes, cost no more memory than
// their limit, and others nothing.
func TestPerfSlowReaders(t *testing.T) {
	const conns, limit = 1000, 64 << 10
	l := newLoop(t, Config{})
	taken, full := 0, 0
	cfg := ListenerConfig{Conn: ConnConfig{WriteBufferBytes: limit, SendBufferBytes: 8 << 10}}
	chunk := make([]byte, 16<<10)
	deaf := serve(t, l, cfg, ConnHandler{OnData: func(c *Conn, _ []byte) {
		for {
			n, err := c.Write(chunk)
			taken += n
			if err != nil {
				full++
				return
			}
		}
	}})
	quiet := serve(t, l, ListenerConfig{}, ConnHandler{OnData: func(c *Conn, b []byte) { _, _ = c.Write(b) }})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	go func() {
		defer l.Close()
		var ready string
		startStreamPeer(t, "deaf", deaf.Addr().String(), conns, 0).read(t, &ready)
		time.Sleep(500 * time.Millisecond)
		clients := startStreamPeer(t, "quiet", quiet.Addr().String(), 20, time.Second)
		clients.read(t, &ready)
		var p50, p99 int64
		clients.read(t, &p50, &p99)
		runtime.GC()
		runtime.ReadMemStats(&after)
		t.Logf("the rest is answered in %v at p50, %v at p99", time.Duration(p50), time.Duration(p99))
	}()
	run(t, l)
	each := (int(after.HeapInuse) - int(before.HeapInuse)) / conns
	t.Logf("%d connections are full, %d bytes taken for each; heap %d bytes each", full, taken/conns, each)
	if full != conns || each > 2*limit {
		t.Errorf("want %d connections with %d bytes each at most", conns, 2*limit)
	}
}

// TestPerfOutOfDescriptors is the same with the share of the processor that a machine at rest allows.
func TestPerfOutOfDescriptors(t *testing.T) { TestListenerOutOfDescriptors(t) }
