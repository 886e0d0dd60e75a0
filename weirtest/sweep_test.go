package weirtest

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weirnet/weir"
	"github.com/weirnet/weir/fault"
	"github.com/weirnet/weir/internal/sys"
)

var loopback = netip.MustParseAddrPort("127.0.0.1:0")

// sweepOf runs a short sweep and returns its first failure.
func sweepOf(t *testing.T, s Scenario) (*sweep, string) {
	t.Helper()
	w := newSweep(s)
	w.log, w.short = t.Logf, true
	w.bubble = bubbleOf(t)
	w.run()
	if len(w.failures) == 0 {
		return w, ""
	}
	return w, w.failures[0].Error()
}

// TestSweepFinds has a scenario do each thing that a sweep looks for, where its socket cannot be bound: a sweep that
// did not look would pass.
func TestSweepFinds(t *testing.T) {
	stop := make(chan struct{})
	for _, c := range []struct {
		name string
		act  func(l *weir.Loop, err error) error
		want string // "": passes
		on   string // "memory", "machine", "": both
	}{
		{"nothing", func(_ *weir.Loop, err error) error { return err }, "", ""},
		{"survives", func(*weir.Loop, error) error { return nil }, "", ""},
		{"another error", func(*weir.Loop, error) error { return errors.New("no good") }, "fails with what is no fault of the plan: no good", ""},
		{"panic", func(*weir.Loop, error) error { panic("oh no") }, "panic: oh no", ""},
		{"FailNow", func(*weir.Loop, error) error { runtime.Goexit(); return nil }, "the goroutine was ended by runtime.Goexit", ""},
		{"spin", spin, "fails with what is no fault of the plan: weir: wait poller: weirtest: the loop asks its poller again", "memory"}, // as the clock stands still
		{"busy timer", func(l *weir.Loop, _ error) error {
			l.Every(200*time.Microsecond, func() {})
			return nil
		}, " calls in 200ms at rest", ""},
		{"busy elsewhere", func(*weir.Loop, error) error {
			over := stop
			go func() {
				for open := true; open; {
					select {
					case _, open = <-over:
					default: // it is to keep the processor busy
						runtime.Gosched()
					}
				}
			}()
			return nil
		}, " of a processor in ", "machine"}, // nor does it call
		{"goroutine", func(*weir.Loop, error) error { over := stop; go func() { <-over }(); return nil }, "a goroutine is left:\n", "machine"},
		{"goroutine", func(*weir.Loop, error) error {
			go time.Sleep(time.Hour)
			return nil
		}, "a goroutine is left:\n", "memory"},
		{"stuck", func(l *weir.Loop, _ error) error {
			l.AfterFunc(time.Millisecond, func() { time.Sleep(7 * time.Second) })
			return nil
		}, "not over 5s after Stop", "memory"},
	} {
		if c.on != "machine" {
			t.Run(c.name+" memory", func(t *testing.T) {
				w, got := sweepOf(t, faulted(false, c.act))
				plan := strings.HasPrefix(got, `with the plan "bind#1=EADDRINUSE", for Config.Faults: `)
				if (got != "") != (c.want != "") || !strings.Contains(got, c.want) || got != "" && !plan {
					t.Errorf("found %q, want %q", got, c.want)
				}
				if w.runs != 3 {
					t.Errorf("%d runs, want one without a fault, one with, and one that is over before its fault", w.runs)
				}
			})
		}
		if c.on != "memory" {
			t.Run(c.name+" machine", func(t *testing.T) {
				w := newSweep(faulted(true, c.act))
				plan, err := fault.Parse("bind#1=EADDRINUSE")
				if err != nil {
					t.Fatal(err)
				}
				before := takeCensus()
				got := w.runGroup([]fault.Plan{plan})[0].verdict(w)
				close(stop) // what the scenario left ends before the next
				stop = make(chan struct{})
				if (got != nil) != (c.want != "") || got != nil && !strings.Contains(got.Error(), c.want) {
					t.Errorf("found %v, want %q", got, c.want)
				}
				if err := before.left(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestSweepBlames: of loops that run at once, the one is found that left something.
func TestSweepBlames(t *testing.T) {
	stop := make(chan struct{})
	defer close(stop)
	w := newSweep(faulted(true, func(_ *weir.Loop, err error) error {
		if errors.Is(err, syscall.EACCES) {
			go func() { <-stop }()
		}
		return err
	}))
	w.Calls = []fault.Call{fault.Bind}
	w.short = false
	w.round(1, w.plans(1, w.Calls)[:4])
	if len(w.failures) != 1 || !strings.HasPrefix(w.failures[0].Error(), `with the plan "bind#1=EACCES"`) {
		t.Errorf("found %v", w.failures)
	}
}

// faulted is a scenario that opens a socket, and acts when that fails.
func faulted(onMachine bool, act func(l *weir.Loop, err error) error) Scenario {
	return Scenario{
		Machine: onMachine,
		Calls:   []fault.Call{fault.Bind},
		Setup: func(l *weir.Loop) (func(error) error, error) {
			_, err := l.ListenUDP(loopback, weir.UDPConfig{}, weir.UDPHandler{})
			if err != nil {
				return nil, act(l, err)
			}
			return nil, nil
		},
	}
}

func spin(l *weir.Loop, _ error) error {
	var again func()
	again = func() { l.NextTurn(again) }
	again()
	return nil
}

// TestSweepLeft: a run that leaves a socket open is found.
func TestSweepLeft(t *testing.T) {
	w := newSweep(faulted(false, nil))
	r := w.newRun(fault.Plan{})
	fd, err := r.watch.Socket(sys.IPv4, sys.UDP)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.verdict(w); err == nil || !strings.Contains(err.Error(), "1 sockets and 0 pollers are left") {
		t.Errorf("the verdict is %v", err)
	}
	if err := r.watch.Close(fd); err != nil || r.verdict(w) != nil {
		t.Errorf("%v, %v", err, r.verdict(w))
	}
}

// TestSweepHangs: a callback that does not return, and in a bubble stops the clock, is told of with its plan.
func TestSweepHangs(t *testing.T) {
	var hung atomic.Pointer[fault.Plan]
	w := newSweep(faulted(false, func(_ *weir.Loop, err error) error {
		for hung.Load() == nil {
			runtime.Gosched()
		}
		return err
	}))
	w.short, w.bubble = true, bubbleOf(t)
	w.hangTime, w.hung = 50*time.Millisecond, func(p fault.Plan) {
		if len(p.Rules) > 0 { // else the machine is slow
			hung.CompareAndSwap(nil, &p)
		}
	}
	w.run()
	if p := hung.Load(); p == nil || p.String() != "bind#1=EADDRINUSE" || len(w.failures) > 0 {
		t.Errorf("%v hangs, failures %v", p, w.failures)
	}
}

// TestSweepCheck: what the check says counts, and it hears how Run ended.
func TestSweepCheck(t *testing.T) {
	s := Scenario{Calls: []fault.Call{fault.Wait}}
	s.Setup = func(l *weir.Loop) (func(error) error, error) {
		return func(ended error) error {
			if ended != nil {
				return fmt.Errorf("the check heard of %w", ended)
			}
			return nil
		}, nil
	}
	_, got := sweepOf(t, s)
	if !strings.Contains(got, `"wait#1=EINVAL"`) || !strings.Contains(got, "the check heard of weir: wait poller: invalid argument") {
		t.Errorf("found %q", got)
	}
}

// TestSweepBaseline: a scenario that fails without a fault is not swept, and one that asks for what its kernel lacks
// is told apart.
func TestSweepBaseline(t *testing.T) {
	s := Scenario{Setup: func(*weir.Loop) (func(error) error, error) { return nil, errors.New("always") }}
	if w, got := sweepOf(t, s); w.runs != 1 || !strings.HasPrefix(got, `with the plan "", for Config.Faults: `) {
		t.Errorf("%d runs, found %q", w.runs, got)
	}
	s.Setup = func(*weir.Loop) (func(error) error, error) { return nil, weir.ErrUnsupported }
	if w, got := sweepOf(t, s); w.runs != 1 || got != "" || w.lacking == nil {
		t.Errorf("%d runs, found %q, lacking %v", w.runs, got, w.lacking)
	}
}

// TestSweepCovers looks at the plans that were run: each errno of each call that there is, and one time more.
func TestSweepCovers(t *testing.T) {
	for _, machine := range []bool{false, true} {
		for _, lasting := range []bool{false, true} {
			seen := map[string]int{}
			s := Scenario{Machine: machine, Lasting: lasting, Calls: []fault.Call{fault.Socket, fault.Wake, fault.Describe}}
			w := newSweep(s)
			w.short = false
			w.Setup = func(l *weir.Loop) (func(error) error, error) {
				for range 2 {
					if _, err := l.ListenUDP(loopback, weir.UDPConfig{}, weir.UDPHandler{}); err != nil {
						return nil, err
					}
				}
				return nil, nil
			}
			w.bubble = bubbleOf(t)
			w.ran = func(p fault.Plan) { seen[p.String()]++ }
			w.run()
			if len(w.failures) > 0 {
				t.Fatal(w.failures[0])
			}
			for _, c := range s.Calls {
				for _, e := range fault.Errnos(c) {
					for k := 1; k <= 2; k++ {
						r := fault.Rule{Call: c, From: k, Action: fault.Action{Errno: e}}
						if lasting {
							r.Times = -1
						}
						want := 1
						if lasting && (c == fault.Wake || e == syscall.EAGAIN) {
							want = 0
						}
						if text := r.String(); seen[text] != want {
							t.Errorf("machine %v: %s ran %d times, want %d", machine, text, seen[text], want)
						}
					}
				}
			}
		}
	}
}

// TestSweepShort runs one errno of each call, and another for the next call.
func TestSweepShort(t *testing.T) {
	t.Parallel()
	w := newSweep(Scenario{Quick: true})
	for k := 1; k <= 2; k++ {
		plans := w.plans(k, []fault.Call{fault.Recv, fault.Wake})
		if len(plans) != 2 || plans[0].Rules[0].Call != fault.Recv || plans[1].Rules[0].Call != fault.Wake {
			t.Errorf("plans %v", plans)
		}
		if got, want := plans[0].Rules[0].Action.Errno, fault.Errnos(fault.Recv)[k]; got != want {
			t.Errorf("errno %v, want %v", got, want)
		}
	}
}

// TestCheckLeaks: a socket that is left is found, one that a cleanup closes is not.
func TestCheckLeaks(t *testing.T) {
	before := takeCensus()
	c, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if openFiles() > 0 { // where there is a /proc
		if err := before.left(); err == nil || err.Error() != "1 sockets and pollers are left" {
			t.Errorf("left: %v", err)
		}
	}
	t.Run("cleanup", func(t *testing.T) {
		CheckLeaks(t)
		c, err := net.ListenPacket("udp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
	})
	_ = c.Close()
	if err := before.left(); err != nil {
		t.Error(err)
	}
}
