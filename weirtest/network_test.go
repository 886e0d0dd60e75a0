package weirtest

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirnet/weir"
)

// onLoop runs a loop on its own goroutine until the test ends.
func onLoop(t *testing.T, l *weir.Loop) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- l.Run(context.Background()) }()
	t.Cleanup(func() {
		_ = l.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestNetworkLoops holds "loops on one Network reach each other", in a bubble, at an address that was added.
func TestNetworkLoops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNetwork()
		n.AddAddr(netip.MustParseAddr("192.0.2.7"))
		var loops [2]*weir.Loop
		for i := range loops {
			l, err := weir.New(weir.Config{Kernel: n.Kernel()})
			if err != nil {
				t.Fatal(err)
			}
			loops[i] = l
		}
		server, err := loops[0].ListenUDP(netip.MustParseAddrPort("192.0.2.7:53"), weir.UDPConfig{}, weir.UDPHandler{
			OnDatagram: func(u *weir.UDP, d *weir.Datagram) {
				payload, from := strings.Clone(string(d.Payload)), d.Source
				loops[0].AfterFunc(time.Hour, func() { _ = u.Send([]byte(payload+" back"), from) })
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		got, start := make(chan string, 1), time.Now()
		client, err := loops[1].DialUDP(netip.AddrPort{}, server.LocalAddr(), weir.UDPConfig{}, weir.UDPHandler{
			OnDatagram: func(_ *weir.UDP, d *weir.Datagram) { got <- string(d.Payload) },
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Send([]byte("there and"), netip.AddrPort{}); err != nil {
			t.Fatal(err)
		}
		onLoop(t, loops[0])
		onLoop(t, loops[1])
		if text := <-got; text != "there and back" {
			t.Errorf("got %q", text)
		}
		if took := time.Since(start); took != time.Hour {
			t.Errorf("took %v, want an hour", took)
		}
	})
}

// TestSetMaxDescriptors holds "what would make another one then fails with EMFILE".
func TestSetMaxDescriptors(t *testing.T) {
	t.Parallel()
	n := NewNetwork()
	l, err := weir.New(weir.Config{Kernel: n.Kernel()})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	open := func() error {
		_, err := l.ListenUDP(netip.MustParseAddrPort("127.0.0.1:0"), weir.UDPConfig{}, weir.UDPHandler{})
		return err
	}
	n.SetMaxDescriptors(1)
	if err := open(); err != nil {
		t.Fatal(err)
	}
	if err := open(); !errors.Is(err, syscall.EMFILE) {
		t.Fatalf("the second of one answers %v", err)
	}
	n.SetMaxDescriptors(0)
	if err := open(); err != nil {
		t.Fatal(err)
	}
}

// TestBlockSends fills a queue while the network takes nothing, until OnDrain.
func TestBlockSends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNetwork()
		l, err := weir.New(weir.Config{Kernel: n.Kernel()})
		if err != nil {
			t.Fatal(err)
		}
		drained := make(chan weir.UDPStats, 1)
		u, err := l.ListenUDP(netip.MustParseAddrPort("[::]:7"), weir.UDPConfig{MaxQueuedSends: 4}, weir.UDPHandler{
			OnDrain: func(u *weir.UDP) { drained <- u.Stats() },
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := n.BlockSends(netip.MustParseAddrPort("[::]:8"), true); got != 0 {
			t.Errorf("%d sockets are bound to a port of nobody's", got)
		}
		if got := n.BlockSends(u.LocalAddr(), true); got != 1 {
			t.Fatalf("%d sockets blocked, want 1", got)
		}
		l.AfterFunc(0, func() {
			self := netip.MustParseAddrPort("127.0.0.1:7") // weir:port in memory
			for i := range 5 {
				if err := u.Send([]byte("x"), self); (err == weir.ErrWouldBlock) != (i == 4) {
					t.Errorf("send %d: %v", i, err)
				}
			}
		})
		onLoop(t, l)
		time.Sleep(time.Second)
		if len(drained) > 0 || u.Stats().Sent > 0 {
			t.Errorf("sent %d through a full buffer", u.Stats().Sent)
		}
		if got := n.BlockSends(u.LocalAddr(), false); got != 1 {
			t.Fatalf("%d sockets unblocked, want 1", got)
		}
		if s := <-drained; s.Sent != 4 || s.Refused != 1 || s.SendErrors.Wait != 1 {
			t.Errorf("sent %d, refused %d, waited %d", s.Sent, s.Refused, s.SendErrors.Wait)
		}
	})
}

func TestBalance(t *testing.T) {
	t.Parallel()
	whole := Balance{Accepted: 10, Delivered: 6, Dropped: 2, Stats: weir.UDPStats{
		Sent: 7, SendLost: 1, Unsent: 1, Queued: 1,
		Received: 4, KernelDropped: 1, Injected: 5, Discarded: 2, Undelivered: 1,
	}}
	for _, c := range []struct {
		name          string
		change        func(*Balance)
		check, closed string
	}{
		{"whole", func(*Balance) {}, "", ""},
		{"accepted", func(b *Balance) { b.Accepted++ }, "11 datagrams accepted, but 10", "11 datagrams accepted"},
		{"delivered twice", func(b *Balance) { b.Delivered++ }, "4 datagrams received and 5 injected, but 10", "4 datagrams received"},
		{"on the way", func(b *Balance) { b.Stats.KernelDropped-- }, "", "7 datagrams sent, but 6"},
		{"by a fault", func(b *Balance) { b.Dropped++ }, "", "7 datagrams sent, but 8"},
	} {
		b := whole
		c.change(&b)
		for _, row := range []struct {
			err  error
			want string
		}{{b.Check(), c.check}, {b.CheckClosed(), c.closed}} {
			if row.want == "" && row.err != nil || row.want != "" && (row.err == nil || !strings.HasPrefix(row.err.Error(), row.want)) {
				t.Errorf("%s: %v, want %q", c.name, row.err, row.want)
			}
		}
	}
}

func TestStreamBalance(t *testing.T) {
	t.Parallel()
	whole := StreamBalance{Accepted: 10, Delivered: 6, Stats: weir.StreamStats{
		WrittenBytes: 7, UnsentBytes: 2, QueuedBytes: 1, ReadBytes: 7, Discarded: 1,
	}}
	for _, c := range []struct {
		name          string
		change        func(*StreamBalance)
		check, closed string
	}{
		{"whole", func(*StreamBalance) {}, "", ""},
		{"accepted", func(b *StreamBalance) { b.Accepted++ }, "11 bytes accepted, but 10", "11 bytes accepted"},
		{"delivered twice", func(b *StreamBalance) { b.Delivered++ }, "7 bytes read, but 8", "7 bytes read, but 8"},
		{"on the way", func(b *StreamBalance) { b.Stats.WrittenBytes++; b.Accepted++ }, "", "8 bytes written, but 7 read"},
	} {
		b := whole
		c.change(&b)
		for _, row := range []struct {
			err  error
			want string
		}{{b.Check(), c.check}, {b.CheckClosed(), c.closed}} {
			if row.want == "" && row.err != nil || row.want != "" && (row.err == nil || !strings.HasPrefix(row.err.Error(), row.want)) {
				t.Errorf("%s: %v, want %q", c.name, row.err, row.want)
			}
		}
	}
}
