package weir

import (
	"errors"
	"runtime"
	"syscall"
	"testing"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sock"
	"github.com/weirnet/weir/internal/sys"
)

const benchConns = 16

// connBench is a loop with benchConns connections whose peers are bare sockets outside of it. A step has each peer
// send a message and wait for what comes back.
type connBench struct {
	loop *Loop
	raw  [benchConns]int
	open int
	size int
	v    *sys.Vector
	in   []byte
	err  error
}

func newConnBench(t testing.TB, k *Kernel, cfg ConnConfig, size int, onData func(c *Conn, b []byte)) *connBench {
	t.Helper()
	l, err := New(Config{Kernel: k})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	b := &connBench{loop: l, size: size, v: sys.NewVector(1), in: make([]byte, size)}
	ln, err := l.ListenTCP(loopback4, ListenerConfig{Conn: cfg}, ListenerHandler{Conn: ConnHandler{
		OnOpen: func(*Conn) { b.open++ },
		OnData: onData,
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range b.raw {
		b.raw[i], _, _, err = sock.ConnectTCP(l.kernel, sock.TCPOptions{}, ln.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.kernel.Close(b.raw[i]) })
	}
	for b.open < benchConns {
		b.turn()
	}
	return b
}

func (b *connBench) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

func (b *connBench) turn() {
	b.loop.NextTurn(nothing) // there may be no event, and a turn would wait for one
	b.fail(b.loop.turn())
}

// echo sends a message on each connection, and takes the answers.
func (b *connBench) echo() {
	for _, fd := range b.raw {
		b.v.Bufs = append(b.v.Bufs[:0], b.in)
		if n, err := b.loop.kernel.Write(fd, b.v, false); n != b.size {
			b.fail(errors.Join(err, errors.New("a short write")))
		}
	}
	for _, fd := range b.raw {
		for got := 0; got < b.size && b.err == nil; {
			n, err := b.loop.kernel.Read(fd, b.in[got:])
			switch {
			case err == syscall.EAGAIN:
				b.turn()
			case err != nil:
				b.fail(err)
			}
			got += n
		}
	}
}

// TestConnAllocations: in the steady state a message costs no allocation, written at once, queued, or by the Sender,
// with time limits or without.
func TestConnAllocations(t *testing.T) {
	for _, row := range []struct {
		name   string
		size   int
		onData func(c *Conn, b []byte)
	}{
		{"small", 100, func(c *Conn, b []byte) { _, _ = c.Write(b) }},
		{"large", 40_000, func(c *Conn, b []byte) { _, _ = c.Write(b) }},
		{"vector", 100, func(c *Conn, b []byte) { _, _ = c.Writev([][]byte{b[:1], b[1:]}) }},
		{"queued", 30_000, func(c *Conn, b []byte) { _ = c.Enqueue(b) }},
		{"sender", 100, func(c *Conn, b []byte) { _, _ = c.Sender().Write(b) }},
		{"paused and resumed", 100, func(c *Conn, b []byte) { _, _ = c.Write(b); c.Pause(); c.Resume() }},
	} {
		t.Run(row.name, func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				cfg := ConnConfig{IdleTimeout: 1e15, ReadTimeout: 1e15, WriteTimeout: 1e15}
				b := newConnBench(t, k, cfg, row.size, row.onData)
				for range 20 { // queues and buffers grow to their size
					b.echo()
				}
				allocs := testing.AllocsPerRun(50, b.echo)
				if b.err != nil {
					t.Fatal(b.err)
				}
				if allocs != 0 && !raceEnabled {
					t.Errorf("%v allocations for %d messages, want 0", allocs, benchConns)
				}
			})
		})
	}
}

// BenchmarkConnEcho: a message of 1,200 bytes and its echo on each of 16 connections, the bare sockets' part included.
func BenchmarkConnEcho(b *testing.B) {
	x := newConnBench(b, NewKernel(poll.Native()), ConnConfig{}, benchPayload, func(c *Conn, p []byte) { _, _ = c.Write(p) })
	for range 100 {
		x.echo()
	}
	runtime.GC()
	b.ReportAllocs()
	b.SetBytes(benchConns * benchPayload)
	for b.Loop() {
		x.echo()
	}
	if x.err != nil {
		b.Fatal(x.err)
	}
}
