package weir

import (
	"errors"
	"net/netip"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
)

const (
	benchBatch   = 64 // datagrams of one step: as many as one send call takes
	benchPayload = 1200
)

// bench is a loop with one socket, and a bare socket outside of the loop that talks to it. A step moves
// benchBatch datagrams.
type bench struct {
	loop *Loop
	udp  *UDP
	raw  int
	addr netip.AddrPort // of raw
	out  *sys.SendBatch // for udp
	in   *sys.RecvBatch
	got  int // by udp
	back int // by raw
	err  error
}

func newBench(t testing.TB, k *Kernel, onDatagram func(b *bench, d *Datagram)) *bench {
	t.Helper()
	l, err := New(Config{Kernel: k})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	b := &bench{loop: l, out: sys.NewSendBatch(benchBatch), in: sys.NewRecvBatch(benchBatch, benchPayload)}
	b.udp, err = l.ListenUDP(loopback4, UDPConfig{RecvBufferBytes: 1 << 20}, UDPHandler{
		OnDatagram: func(_ *UDP, d *Datagram) {
			b.got++
			if onDatagram != nil {
				onDatagram(b, d)
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	b.raw, err = l.kernel.Socket(sys.IPv4, sys.UDP)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.kernel.Close(b.raw) })
	b.fail(l.kernel.SetOption(b.raw, sys.RecvBuffer, 1<<20))
	b.fail(l.kernel.Bind(b.raw, loopback4))
	if b.addr, err = l.kernel.LocalAddr(b.raw); err != nil || b.err != nil {
		t.Fatal(err, b.err)
	}
	payload := pattern(0, benchPayload)
	for i := range b.out.Msgs {
		b.out.Msgs[i] = sys.Message{Buf: payload, Addr: b.udp.LocalAddr()}
	}
	return b
}

func (b *bench) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// guard ends a step that lost something and would wait for ever.
func (b *bench) guard() *bench {
	b.loop.AfterFunc(30*time.Second, func() { b.fail(errors.New("nothing ended the step")) })
	return b
}

// rawSend gives a batch to the kernel for udp.
func (b *bench) rawSend() {
	for from := 0; from < benchBatch; {
		n, err := b.loop.kernel.Send(b.raw, b.out, from, benchBatch)
		if err != nil {
			b.fail(err)
			return
		}
		from += n
	}
}

// rawRecv takes what udp sent.
func (b *bench) rawRecv() {
	for {
		n, err := b.loop.kernel.Recv(b.raw, b.in, benchBatch)
		if errors.Is(err, syscall.EAGAIN) {
			return
		}
		if err != nil {
			b.fail(err)
			return
		}
		b.back += n
	}
}

// receive has the loop take a batch.
func (b *bench) receive() {
	b.rawSend()
	for want := b.got + benchBatch; b.got < want && b.err == nil; {
		b.fail(b.loop.turn())
	}
}

// send has the loop send a batch. It needs no turn: the queue is flushed at 64.
func (b *bench) send() {
	for i := range b.out.Msgs {
		if err := b.udp.Send(b.out.Msgs[i].Buf, b.addr); err != nil {
			b.fail(err)
		}
	}
	b.rawRecv()
}

// sendAtTurnEnd has the loop send half a batch in each of two turns.
func (b *bench) sendAtTurnEnd() {
	for range 2 {
		for i := range benchBatch / 2 {
			if err := b.udp.Send(b.out.Msgs[i].Buf, b.addr); err != nil {
				b.fail(err)
			}
		}
		b.loop.NextTurn(nothing) // there is no event, and a turn would wait for one
		b.fail(b.loop.turn())
		b.rawRecv()
	}
}

func nothing() {}

// echo has the loop answer a batch.
func (b *bench) echo() {
	b.rawSend()
	for want := b.back + benchBatch; b.back < want && b.err == nil; {
		b.fail(b.loop.turn())
		b.rawRecv()
	}
}

func echo(b *bench, d *Datagram) {
	if err := b.udp.Send(d.Payload, d.Source); err != nil {
		b.fail(err)
	}
}

// TestUDPAllocations: in the steady state a datagram costs no allocation, on its way in, out, or through.
func TestUDPAllocations(t *testing.T) {
	for _, row := range []struct {
		name       string
		onDatagram func(*bench, *Datagram)
		step       func(*bench)
	}{
		{"receive", nil, (*bench).receive},
		{"send", nil, (*bench).send},
		{"send at the end of the turn", nil, (*bench).sendAtTurnEnd},
		{"echo", echo, (*bench).echo},
		{"stats", func(b *bench, _ *Datagram) { b.udp.Stats() }, (*bench).receive},
	} {
		t.Run(row.name, func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				b := newBench(t, k, row.onDatagram).guard()
				for range 20 { // queues and buffers grow to their size
					row.step(b)
				}
				allocs := testing.AllocsPerRun(50, func() { row.step(b) })
				if b.err != nil {
					t.Fatal(b.err)
				}
				if allocs != 0 && !raceEnabled {
					t.Errorf("%v allocations for %d datagrams, want 0", allocs, benchBatch)
				}
				if b.udp.kept.Len() > 0 {
					t.Errorf("%d datagrams are kept", b.udp.kept.Len())
				}
			})
		})
	}
}

// TestUDPKeptAllocations: nor does one that is kept, as here all of a batch but the first.
func TestUDPKeptAllocations(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		b := newBench(t, k, nil).guard()
		resume := b.udp.Resume
		b.udp.handler.OnDatagram = func(u *UDP, _ *Datagram) {
			b.got++
			u.Pause()
			b.loop.NextTurn(resume)
		}
		for range 5 {
			b.receive()
		}
		allocs := testing.AllocsPerRun(20, b.receive)
		if b.err != nil {
			t.Fatal(b.err)
		}
		if allocs != 0 && !raceEnabled {
			t.Errorf("%v allocations for %d datagrams, want 0", allocs, benchBatch)
		}
	})
}

// benchmark measures a step on the real kernel. One operation is a batch.
func benchmark(b *testing.B, onDatagram func(*bench, *Datagram), step func(*bench)) {
	x := newBench(b, NewKernel(poll.Native()), onDatagram)
	for range 100 { // queues and buffers grow to their size
		step(x)
	}
	runtime.GC()
	b.ReportAllocs()
	b.SetBytes(benchBatch * benchPayload)
	for b.Loop() {
		step(x)
	}
	if x.err != nil {
		b.Fatal(x.err)
	}
}

// BenchmarkUDPReceive: 64 datagrams of 1,200 bytes, their sending by a bare socket included.
func BenchmarkUDPReceive(b *testing.B) { benchmark(b, nil, (*bench).receive) }

// BenchmarkUDPSend: the same, their receiving by a bare socket included.
func BenchmarkUDPSend(b *testing.B) { benchmark(b, nil, (*bench).send) }

// BenchmarkUDPEcho: both.
func BenchmarkUDPEcho(b *testing.B) { benchmark(b, echo, (*bench).echo) }
