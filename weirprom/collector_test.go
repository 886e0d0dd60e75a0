package weirprom

import (
	"context"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weirnet/weir"
	"github.com/weirnet/weir/internal/memsys"
)

var somewhere = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 0)

// newLoop makes a loop on a network of its own, in memory.
func newLoop(t *testing.T, cfg weir.Config) *weir.Loop {
	t.Helper()
	cfg.Kernel = weir.NewKernel(memsys.New().Backend())
	l, err := weir.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func run(t *testing.T, l *weir.Loop) {
	t.Helper()
	if err := l.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// registered is a registry with a collector alone, pedantic: it finds what Describe does not tell.
func registered(t *testing.T, c *Collector) *prometheus.Registry {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	if err := reg.Register(c); err != nil {
		t.Fatal(err)
	}
	return reg
}

func compare(t *testing.T, g prometheus.Gatherer, want string, names ...string) {
	t.Helper()
	if err := testutil.GatherAndCompare(g, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}

// TestCollect: each loop has its numbers under its name, while it runs and "after it has ended".
func TestCollect(t *testing.T) {
	t.Parallel()
	busy, idle := newLoop(t, weir.Config{}), newLoop(t, weir.Config{})
	defer idle.Close()
	reg := registered(t, NewCollector(map[string]*weir.Loop{"busy": busy, "idle": idle}))

	const want = `
		# HELP weir_udp_datagrams_received_total Datagrams received from the kernel.
		# TYPE weir_udp_datagrams_received_total counter
		weir_udp_datagrams_received_total{loop="busy"} 3
		weir_udp_datagrams_received_total{loop="idle"} 0
		# HELP weir_udp_datagrams_sent_total Datagrams taken by the kernel.
		# TYPE weir_udp_datagrams_sent_total counter
		weir_udp_datagrams_sent_total{loop="busy"} 3
		weir_udp_datagrams_sent_total{loop="idle"} 0
		# HELP weir_udp_received_bytes_total Bytes of the datagrams received.
		# TYPE weir_udp_received_bytes_total counter
		weir_udp_received_bytes_total{loop="busy"} 300
		weir_udp_received_bytes_total{loop="idle"} 0
	`
	names := []string{"weir_udp_datagrams_received_total", "weir_udp_datagrams_sent_total", "weir_udp_received_bytes_total"}
	received := 0
	u, err := busy.ListenUDP(somewhere, weir.UDPConfig{}, weir.UDPHandler{OnDatagram: func(*weir.UDP, *weir.Datagram) {
		if received++; received == 3 {
			busy.NextTurn(func() {
				compare(t, reg, want, names...)
				_ = busy.Close()
			})
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := u.Send(make([]byte, 100), u.LocalAddr()); err != nil {
			t.Fatal(err)
		}
	}
	run(t, busy)
	compare(t, reg, want, names...)
}

// TestSendErrors: each class is a value of the label.
func TestSendErrors(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(fixed{UDP: weir.UDPStats{SendErrors: weir.SendErrors{Wait: 1, Stale: 2, Offload: 3, Size: 4, Lost: 5, Caller: 6, Dead: 7}}})
	compare(t, reg, `
		# HELP weir_udp_send_errors_total Answers of the kernel to sends, by what they mean: wait (the buffer was full), stale (about an earlier datagram), offload (a train or traffic class was refused), size, lost, caller, dead.
		# TYPE weir_udp_send_errors_total counter
		weir_udp_send_errors_total{class="caller",loop="fixed"} 6
		weir_udp_send_errors_total{class="dead",loop="fixed"} 7
		weir_udp_send_errors_total{class="lost",loop="fixed"} 5
		weir_udp_send_errors_total{class="offload",loop="fixed"} 3
		weir_udp_send_errors_total{class="size",loop="fixed"} 4
		weir_udp_send_errors_total{class="stale",loop="fixed"} 2
		weir_udp_send_errors_total{class="wait",loop="fixed"} 1
	`, "weir_udp_send_errors_total")
}

// TestHistograms: seconds, in fixed buckets; what is longer than the last bound is in count and sum.
func TestHistograms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoop(t, weir.Config{StopWhenIdle: true})
		l.AfterFunc(0, func() { time.Sleep(5 * time.Millisecond) })
		l.AfterFunc(time.Hour, func() { time.Sleep(3 * time.Second) })
		run(t, l)
		compare(t, registered(t, NewCollector(map[string]*weir.Loop{"a": l})), `
			# HELP weir_loop_timer_lag_seconds From when a timer was due to when it was called.
			# TYPE weir_loop_timer_lag_seconds histogram
			`+buckets("weir_loop_timer_lag_seconds", 2, 2, 2)+`
			weir_loop_timer_lag_seconds_sum{loop="a"} 0
			weir_loop_timer_lag_seconds_count{loop="a"} 2
		`, "weir_loop_timer_lag_seconds")

		s := l.Stats()
		turns := s.TurnLength.Count()
		compare(t, registered(t, NewCollector(map[string]*weir.Loop{"a": l})), `
			# HELP weir_loop_turn_seconds Length of turns, without the time waited.
			# TYPE weir_loop_turn_seconds histogram
			`+buckets("weir_loop_turn_seconds", turns-2, turns-1, turns)+`
			weir_loop_turn_seconds_sum{loop="a"} 3.005
			weir_loop_turn_seconds_count{loop="a"} `+text(turns)+`
		`, "weir_loop_turn_seconds")
	})
}

// TestSet holds "adds loops later", "a nil loop takes the name away", "instead of the one that had the name
// before", "what is not UTF-8 in a name is replaced".
func TestSet(t *testing.T) {
	t.Parallel()
	a, b := newLoop(t, weir.Config{StopWhenIdle: true}), newLoop(t, weir.Config{})
	defer b.Close()
	a.NextTurn(func() {})
	run(t, a)
	c := NewCollector(nil)
	reg := registered(t, c)
	const turns = "weir_loop_turns_total"
	expect := func(when string, series int) {
		t.Helper()
		if n, err := testutil.GatherAndCount(reg, turns); err != nil || n != series {
			t.Errorf("%s: %d series, want %d; %v", when, n, series, err)
		}
	}
	expect("empty", 0)
	c.Set("x", a)
	c.Set("\xff", b)
	expect("with two", 2)
	c.Set("\xff", nil)
	c.Set("nobody", nil)
	expect("with one", 1)
	if a.Turn() == 0 {
		t.Fatal("it made no turn")
	}
	c.Set("x", b)
	compare(t, reg, `
		# HELP weir_loop_turns_total Turns of the loop.
		# TYPE weir_loop_turns_total counter
		weir_loop_turns_total{loop="x"} 0
	`, turns)
}

// TestOneMap holds "the map is copied".
func TestOneMap(t *testing.T) {
	t.Parallel()
	l := newLoop(t, weir.Config{})
	defer l.Close()
	loops := map[string]*weir.Loop{"a": l, "none": nil}
	reg := registered(t, NewCollector(loops))
	clear(loops)
	if n, err := testutil.GatherAndCount(reg, "weir_loop_turns_total"); err != nil || n != 1 {
		t.Errorf("%d series, %v", n, err)
	}
}

// TestConventions has Prometheus' own linter read it.
func TestConventions(t *testing.T) {
	t.Parallel()
	l := newLoop(t, weir.Config{})
	defer l.Close()
	problems, err := testutil.GatherAndLint(registered(t, NewCollector(map[string]*weir.Loop{"a": l})))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// TestAnyGoroutine collects while loops run, come and go.
func TestAnyGoroutine(t *testing.T) {
	t.Parallel()
	l := newLoop(t, weir.Config{})
	c := NewCollector(map[string]*weir.Loop{"a": l})
	reg := registered(t, c)
	u, err := l.ListenUDP(somewhere, weir.UDPConfig{}, weir.UDPHandler{
		OnDatagram: func(u *weir.UDP, d *weir.Datagram) { _ = u.Send(d.Payload, d.Source) },
	})
	if err != nil {
		t.Fatal(err)
	}
	_ = u.Send([]byte("round and round"), u.LocalAddr())
	var wg sync.WaitGroup
	wg.Go(func() { _ = l.Run(context.Background()) })
	var scrapes sync.WaitGroup
	for range 4 {
		scrapes.Go(func() {
			for range 25 {
				c.Set("b", l)
				if _, err := reg.Gather(); err != nil {
					t.Error(err)
				}
				c.Set("b", nil)
			}
		})
	}
	scrapes.Wait()
	_ = l.Close()
	wg.Wait()
}
