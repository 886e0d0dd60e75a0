package memsys

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
)

// TestWaitCostsWhatIsReady: the ready list holds what was notified, and drops what is found not ready.
func TestWaitCostsWhatIsReady(t *testing.T) {
	n := New()
	k := n.Backend().Kernel
	made, _ := n.newPoller()
	p := made.(*poller)
	fds := make([]int, 1000)
	for i := range fds {
		fds[i], _ = k.Socket(sys.IPv4, sys.UDP)
		if err := k.Bind(fds[i], netip.MustParseAddrPort("127.0.0.1:0")); err != nil {
			t.Fatal(err)
		}
		if err := p.Add(fds[i], poll.Read, uint64(i)); err != nil {
			t.Fatal(err)
		}
	}
	if p.ready.count != 0 {
		t.Fatalf("%d are listed while none is ready", p.ready.count)
	}
	out := sys.NewSendBatch(1)
	out.Msgs[0].Addr, _ = k.LocalAddr(fds[7])
	for range 2 { // twice, to be listed once
		if _, err := k.Send(fds[0], out, 0, 1); err != nil {
			t.Fatal(err)
		}
	}
	if p.ready.count != 1 {
		t.Fatalf("%d are listed while one is ready", p.ready.count)
	}
	if _, err := k.Recv(fds[7], sys.NewRecvBatch(2, 8), 2); err != nil {
		t.Fatal(err)
	}
	if got, err := p.Wait(make([]poll.Event, 8), 0); got != 0 || err != nil {
		t.Fatalf("Wait answers %d, %v", got, err)
	}
	if p.ready.count != 0 {
		t.Errorf("%d are listed after a Wait that found none ready", p.ready.count)
	}
}

// TestWaitTakesItsTime has the exact times that only a bubble has.
func TestWaitTakesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := New().newPoller()
		if err != nil {
			t.Fatal(err)
		}
		events := make([]poll.Event, 1)
		wait := func(timeout, want time.Duration) {
			t.Helper()
			start := time.Now()
			if n, err := p.Wait(events, timeout); n != 0 || err != nil {
				t.Fatalf("Wait answers %d, %v", n, err)
			}
			if took := time.Since(start); took != want {
				t.Errorf("Wait for %v took %v, want %v", timeout, took, want)
			}
		}
		wait(0, 0)
		wait(time.Nanosecond, time.Nanosecond)
		wait(time.Hour, time.Hour)
		for _, timeout := range []time.Duration{-1, time.Hour} {
			go func() {
				time.Sleep(3 * time.Second)
				_ = p.Wake()
				_ = p.Wake()
			}()
			wait(timeout, 3*time.Second)
			synctest.Wait() // the second wake may have come after that Wait
			_, _ = p.Wait(events, 0)
		}
		wait(time.Minute, time.Minute) // the timer of the Wait that was woken is not left over
	})
}
