package weir

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/weirnet/weir/fault"
)

func plan(t *testing.T, text string) fault.Plan {
	t.Helper()
	p, err := fault.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestFaults has the third send of a loop fail, on each kernel: its datagram counts as lost, the others arrive, and
// Faults tells of the hit.
func TestFaults(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k, Faults: plan(t, "send#3=EPERM; send#5=drop")})
		got := ""
		server := listen(t, l, Bound{}, func(u *UDP, d *Datagram) {
			if got += string(d.Payload); d.Payload[0] == '6' {
				_ = l.Close()
			}
		})
		var failed error
		client, err := l.ListenUDP(loopback4, UDPConfig{}, UDPHandler{OnError: func(_ *UDP, err error) { failed = err }})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 6 {
			if err := client.Send([]byte{byte('1' + i)}, server.LocalAddr()); err != nil {
				t.Fatal(err)
			}
			client.flush()
		}
		run(t, l)
		if got != "1246" {
			t.Errorf("received %q, want 1246", got)
		}
		if op, ok := failed.(*OpError); !ok || op.Err != syscall.EPERM {
			t.Errorf("OnError: %v", failed)
		}
		if s := client.Stats(); s.Sent != 5 || s.SendLost != 1 {
			t.Errorf("sent %d, lost %d", s.Sent, s.SendLost)
		}
		if in := l.Faults(); !slices.Equal(in.Hits(), []int{1, 1}) || in.Dropped() != 1 {
			t.Errorf("hits %v, dropped %d", in.Hits(), in.Dropped())
		}
	})
}

// TestFaultsOfNew: a poller that fails ends New, and a plan that is invalid is named.
func TestFaultsOfNew(t *testing.T) {
	t.Parallel()
	if _, err := New(Config{Faults: plan(t, "poller=EMFILE")}); err == nil || !strings.Contains(err.Error(), syscall.EMFILE.Error()) {
		t.Errorf("New: %v", err)
	}
	bad := fault.Plan{Rules: []fault.Rule{{Call: fault.Send}}}
	_, err := New(Config{Faults: bad})
	if err == nil || !strings.HasPrefix(err.Error(), "weir: Config.Faults: ") || !strings.Contains(err.Error(), bad.Validate().Error()) {
		t.Errorf("New: %v", err)
	}
}

// TestNoFaults holds "free when absent": without a plan the loop has the kernel itself.
func TestNoFaults(t *testing.T) {
	t.Parallel()
	k := realKernel(t)
	l := newLoop(t, Config{Kernel: k, Faults: fault.Plan{Seed: 7}})
	if l.kernel != k.backend.Kernel || l.Faults() != nil {
		t.Errorf("%T, %v", l.kernel, l.Faults())
	}
	if in := l.Faults(); in.Hits() != nil {
		t.Error("a loop without faults has hit something")
	}
}
