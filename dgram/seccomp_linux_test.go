//go:build linux

package dgram

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/weirnet/weir/internal/sys/systest"
)

// TestRefusedBatches: under a filter that refuses the batched calls a Conn does with single ones, and says so. Each Conn
// makes one refused call of a kind, at most: that it does not make others, package sys tests.
func TestRefusedBatches(t *testing.T) {
	if systest.Refused() {
		underFilter(t)
		return
	}
	t.Setenv("WEIR_DISABLE", "") // what is off already cannot be refused
	for _, spec := range append(systest.Refusals(), "none ENOSYS") {
		t.Run(spec, func(t *testing.T) {
			out := systest.RunRefused(t, "TestRefusedBatches", spec)
			calls, _, _ := strings.Cut(spec, " ")
			for _, call := range []string{"recvmmsg", "sendmmsg"} {
				want := call + ": batched"
				if strings.Contains(calls, call) {
					want = call + ": single"
				}
				if !strings.Contains(out, want) {
					t.Errorf("no %q in\n%s", want, out)
				}
			}
		})
	}
}

func underFilter(t *testing.T) {
	var log syncBuffer
	cfg := Config{NoGSO: true, NoGRO: true, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	a, b := listen(t, loopback4, cfg), listen(t, loopback4, cfg)
	for range 3 {
		send(t, a, "ping", addrOf(b))
		wantNext(t, b, "ping")
		send(t, b, "pong", addrOf(a))
		wantNext(t, a, "pong")
	}
	for range 2 {
		payloads := strings.Fields(strings.Repeat("many ", 20))
		if n, err := a.WriteBatch(messagesTo(b, payloads...), 0); n != 20 || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
		if got := readBatch(t, b, 20); len(got) != 20 {
			t.Errorf("%d of 20", len(got))
		}
	}
	s, p := a.Stats(), b.Stats()
	if s.Sent != 43 || s.SendLost != 0 || p.Received != 43 || p.ReceiveErrors != 0 {
		t.Errorf("%+v\n%+v", s, p)
	}
	for call, on := range map[string]bool{"recvmmsg": p.Paths.BatchedReceives, "sendmmsg": s.Paths.BatchedSends} {
		how := map[bool]string{true: "batched", false: "single"}[on]
		t.Logf("%s: %s", call, how)
		told := map[bool]int{true: 0, false: 2}[on] // of each Conn once
		if n := strings.Count(log.String(), "path="+call+" "); n != told {
			t.Errorf("%s: logged %d times, want %d: %s", call, n, told, &log)
		}
	}
}
