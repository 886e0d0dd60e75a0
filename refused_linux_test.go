//go:build linux

package weir

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/weirnet/weir/internal/sys/systest"
)

// TestRefusedBatchesOnLoop: under a filter that refuses the batched calls a loop goes on, at no more than the cost of
// the single ones: echoes arrive, a batch does, and nothing spins.
func TestRefusedBatchesOnLoop(t *testing.T) {
	if systest.Refused() {
		echoUnderFilter(t)
		return
	}
	cost := func(t *testing.T, spec string) (d time.Duration) {
		t.Helper()
		out := systest.RunRefused(t, "TestRefusedBatchesOnLoop", spec)
		_, said, _ := strings.Cut(out, "processor time: ")
		var ns int64
		if _, err := fmt.Sscan(said, &ns); err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		return time.Duration(ns)
	}
	unfiltered := cost(t, "none ENOSYS")
	for _, spec := range systest.Refusals() {
		t.Run(spec, func(t *testing.T) {
			if d := cost(t, spec); d > unfiltered+50*time.Millisecond {
				t.Errorf("it took %v of the processor, without a filter %v", d, unfiltered)
			}
		})
	}
}

// echoUnderFilter echoes three pings, one after the other, then 20 at once, and then waits.
func echoUnderFilter(t *testing.T) {
	began := processorTime(t)
	l := newLoop(t, Config{})
	fail := func(_ *UDP, err error) { t.Error(err) }
	server, err := l.ListenUDP(loopback4, UDPConfig{}, UDPHandler{
		OnDatagram: func(u *UDP, d *Datagram) { _ = u.Send(d.Payload, d.Source) },
		OnError:    fail,
	})
	if err != nil {
		t.Fatal(err)
	}
	echoes := 0
	client, err := l.DialUDP(netip.AddrPort{}, server.LocalAddr(), UDPConfig{}, UDPHandler{
		OnDatagram: func(u *UDP, d *Datagram) {
			switch echoes++; {
			case echoes < 3:
				_ = u.Send([]byte("ping"), netip.AddrPort{})
			case echoes == 3:
				for range 20 {
					_ = u.Send([]byte("ping"), netip.AddrPort{})
				}
			case echoes == 23:
				before := processorTime(t)
				l.AfterFunc(200*time.Millisecond, func() {
					if used := processorTime(t) - before; used > 50*time.Millisecond {
						t.Errorf("an idle loop used %v of the processor", used)
					}
					_ = l.Close()
				})
			}
		},
		OnError: fail,
	})
	if err != nil {
		t.Fatal(err)
	}
	_ = client.Send([]byte("ping"), netip.AddrPort{})
	run(t, l)
	fmt.Printf("processor time: %d\n", processorTime(t)-began)
	if s := server.Stats(); echoes != 23 || s.Received != 23 || s.Sent != 23 {
		t.Errorf("%d echoes; the server received %d and sent %d", echoes, s.Received, s.Sent)
	}
}
