package weir

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weirnet/weir/internal/memsys"
)

func newGroup(t *testing.T, cfg GroupConfig) *Group {
	t.Helper()
	g, err := NewGroup(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return g
}

// nth is one of the group's loops.
func (g *Group) nth(n int) *Loop { return g.loops[n] }

func groupIsDone(g *Group) bool {
	select {
	case <-g.Done():
		return true
	default:
		return false
	}
}

// "so that the first can listen on port 0 and the others on the port that it was given": many clients of one port are
// served by all loops.
func TestGroupSharesPort(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		const loops, clients = 3, 64
		addr := loopback4
		var served [loops]atomic.Int64
		setups := 0
		g := newGroup(t, GroupConfig{
			Loops: loops, Config: Config{Kernel: k},
			Setup: func(l *Loop) error {
				n := setups
				setups++
				u, err := l.ListenUDP(addr, UDPConfig{ReusePort: true}, UDPHandler{OnDatagram: func(u *UDP, d *Datagram) {
					served[n].Add(1)
					_ = u.Reply(d, d.Payload)
				}})
				if err == nil {
					addr = u.LocalAddr()
				}
				return err
			},
		})
		ended := make(chan error, 1)
		go func() { ended <- g.Run(t.Context()) }()

		l := newLoop(t, Config{Kernel: k})
		answers := 0
		for range clients {
			c, err := l.DialUDP(netip.AddrPort{}, addr, UDPConfig{}, UDPHandler{OnDatagram: func(*UDP, *Datagram) {
				if answers++; answers == clients {
					_ = l.Close()
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Send([]byte("x"), netip.AddrPort{}); err != nil {
				t.Fatal(err)
			}
		}
		run(t, l)
		if err := g.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil || !groupIsDone(g) {
			t.Errorf("Run: %v", err)
		}
		turns, lengths, spent := uint64(0), uint64(0), time.Duration(0)
		for i, l := range g.Loops() {
			if served[i].Load() == 0 {
				t.Errorf("loop %d has served nobody", i)
			}
			one := l.Stats()
			turns += l.Turn()
			lengths += one.TurnLength.Count()
			spent += one.TurnLength.Sum()
		}
		s := g.Stats()
		if s.UDP.Received != clients || s.UDP.Sent != clients || s.Turns != turns {
			t.Errorf("%d received, %d sent, %d turns of %d", s.UDP.Received, s.UDP.Sent, s.Turns, turns)
		}
		if n, d := s.TurnLength.Count(), s.TurnLength.Sum(); n != lengths || d != spent || n == 0 {
			t.Errorf("%d turns of %v together, want %d of %v", n, d, lengths, spent)
		}
		if err := g.Run(t.Context()); err != ErrClosed {
			t.Errorf("again: %v", err)
		}
	})
}

// "When one loop ends, so do the others": and their sources hear how.
func TestGroupEndsTogether(t *testing.T) {
	cause := errors.New("enough")
	for _, c := range []struct {
		name    string
		end     func(g *Group, cancel context.CancelCauseFunc)
		config  Config
		want    error
		onClose error // of the second loop's socket
		took    time.Duration
	}{
		{name: "one is closed", end: func(g *Group, _ context.CancelCauseFunc) {
			l := g.nth(0)
			l.AfterFunc(time.Second, func() { _ = l.Close() })
		}, onClose: ErrClosed, took: time.Second},
		{name: "one is closed before Run", end: func(g *Group, _ context.CancelCauseFunc) {
			_ = g.nth(0).Close()
		}, onClose: ErrClosed},
		{name: "one is stopped", end: func(g *Group, _ context.CancelCauseFunc) {
			l := g.nth(0)
			l.AfterFunc(time.Second, func() { l.Stop(-1) })
		}, onClose: nil, took: time.Second},
		{name: "one is stopped, and another stays for its grace", end: func(g *Group, _ context.CancelCauseFunc) {
			l := g.nth(0)
			l.AfterFunc(time.Second, func() { l.Stop(time.Hour); l.Stop(time.Minute) })
			hold(g.nth(1))
		}, onClose: ErrClosed, took: time.Second + time.Minute},
		{name: "the group is stopped", end: func(g *Group, _ context.CancelCauseFunc) {
			g.nth(1).AfterFunc(time.Second, func() { g.Stop(time.Hour) })
		}, onClose: nil, took: time.Second},
		{name: "the group is stopped without a grace", end: func(g *Group, _ context.CancelCauseFunc) {
			g.nth(1).AfterFunc(time.Second, func() { g.Stop(0) })
		}, onClose: ErrClosed, took: time.Second},
		{name: "the group is closed", end: func(g *Group, _ context.CancelCauseFunc) {
			g.nth(1).AfterFunc(time.Second, func() { _ = g.Close() })
		}, onClose: ErrClosed, took: time.Second},
		{name: "the context", end: func(g *Group, cancel context.CancelCauseFunc) {
			g.nth(0).AfterFunc(time.Second, func() { cancel(cause) })
		}, want: cause, onClose: ErrClosed, took: time.Second},
		{name: "one fails", end: func(g *Group, _ context.CancelCauseFunc) {
			g.nth(0).AfterFunc(time.Second, func() {})
			g.nth(0).AfterFunc(2*time.Second, func() {})
			g.nth(0).AfterFunc(3*time.Second, func() {})
		}, config: Config{Faults: plan(t, "wait#2=EBADF")}, want: syscall.EBADF, onClose: ErrClosed, took: time.Second},
		{name: "Goexit", end: func(g *Group, _ context.CancelCauseFunc) {
			g.nth(0).AfterFunc(time.Second, runtime.Goexit)
		}, want: errGoexit, onClose: ErrClosed, took: time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, net *memsys.Net) {
				cfg := c.config
				cfg.Kernel = NewKernel(net.Backend())
				var heard []error
				setups := 0
				g := newGroup(t, GroupConfig{Loops: 2, Config: cfg, Setup: func(l *Loop) error {
					setups++
					h := UDPHandler{}
					if setups == 2 {
						h.OnClose = func(_ *UDP, err error) { heard = append(heard, err) }
					}
					_, err := l.ListenUDP(loopback4, UDPConfig{}, h)
					return err
				}})
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				c.end(g, cancel)
				start := time.Now()
				err := g.Run(ctx)
				if !errors.Is(err, c.want) || c.want == nil && err != nil || c.want == cause && err != cause {
					t.Errorf("Run: %v, want %v", err, c.want)
				}
				if d := time.Since(start); d != c.took {
					t.Errorf("it took %v, want %v", d, c.took)
				}
				if len(heard) != 1 || heard[0] != c.onClose {
					t.Errorf("OnClose heard %v, want %v", heard, c.onClose)
				}
				if !groupIsDone(g) {
					t.Error("it is not done")
				}
			})
		})
	}
}

// hold has a Stop of the loop wait for its grace.
func hold(l *Loop) {
	for _, s := range l.table.slots {
		u := s.source.(*UDP)
		l.Every(time.Millisecond, u.Pause)
		u.handler.OnDatagram = func(u *UDP, _ *Datagram) { u.Pause() }
		_ = u.Send([]byte("1"), u.LocalAddr())
		_ = u.Send([]byte("2"), u.LocalAddr())
		u.flush()
		u.Pause()
	}
}

// "With StopWhenIdle a loop that has nothing left to do ends without the others."
func TestGroupIdle(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		fired := 0
		g := newGroup(t, GroupConfig{
			Loops: 3, Config: Config{Kernel: NewKernel(net.Backend()), StopWhenIdle: true},
			Setup: func(l *Loop) error {
				fired++
				l.AfterFunc(time.Duration(fired)*time.Second, func() { fired-- })
				return nil
			},
		})
		if err := g.Run(t.Context()); err != nil || fired != 0 {
			t.Errorf("Run: %v, %d timers did not fire", err, fired)
		}
	})
}

// "Where one cannot be made or set up, all are closed, and the OnClose of what was opened has run."
func TestGroupSetupFails(t *testing.T) {
	broken := errors.New("broken")
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		for _, panics := range []bool{false, true} {
			var loops []*Loop
			var heard []error
			make3 := func() (g *Group, err error) {
				defer func() {
					if p := recover(); p != nil {
						err = p.(error)
					}
				}()
				return NewGroup(GroupConfig{Loops: 3, Config: Config{Kernel: k}, Setup: func(l *Loop) error {
					loops = append(loops, l)
					openClosing(t, l, &heard)
					if len(loops) < 2 {
						return nil
					}
					if panics {
						panic(broken)
					}
					return broken
				}})
			}
			g, err := make3()
			if g != nil || !errors.Is(err, broken) {
				t.Errorf("NewGroup: %v", err)
			}
			if len(loops) != 2 || !isDone(loops[0]) || !isDone(loops[1]) {
				t.Errorf("%d loops were set up", len(loops))
			}
			if len(heard) != 2 || heard[0] != ErrClosed {
				t.Errorf("OnClose heard %v", heard)
			}
		}
	})
	if _, err := NewGroup(GroupConfig{Loops: -1}); err == nil {
		t.Error("a negative number of loops")
	}
	if _, err := NewGroup(GroupConfig{Config: Config{MaxShare: 1}}); err == nil {
		t.Error("a Config that makes no sense")
	}
}

func TestGroupClosedBeforeRun(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		var heard []error
		g := newGroup(t, GroupConfig{Loops: 2, Config: Config{Kernel: k}, Setup: func(l *Loop) error {
			openClosing(t, l, &heard)
			return nil
		}})
		if groupIsDone(g) {
			t.Error("done before")
		}
		_, _ = g.Close(), g.Close()
		if !groupIsDone(g) || len(heard) != 0 {
			t.Error("Close has not closed it, or called somebody")
		}
		heard = nil
		g.loops = g.loops[:1] // OnClose of both at once would need a lock
		if err := g.Run(t.Context()); err != nil || len(heard) != 1 || heard[0] != ErrClosed {
			t.Errorf("Run: %v, OnClose heard %v", err, heard)
		}
	})
}

// "Default: GOMAXPROCS." Shutdown waits for a Run that has not begun, and closes when its context is done first.
func TestGroupShutdown(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		g := newGroup(t, GroupConfig{Config: Config{Kernel: NewKernel(net.Backend())}, Setup: func(l *Loop) error {
			_, err := l.ListenUDP(loopback4, UDPConfig{}, UDPHandler{})
			hold(l)
			return err
		}})
		if len(g.loops) != runtime.GOMAXPROCS(0) {
			t.Errorf("%d loops", len(g.loops))
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errTimeUp)
		defer cancel()
		result := make(chan error, 1)
		go func() { result <- g.Shutdown(ctx) }()
		start := time.Now()
		if err := g.Run(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-result; err != errTimeUp || time.Since(start) != time.Second {
			t.Errorf("Shutdown: %v after %v", err, time.Since(start))
		}
	})
}

const groupPanicEnv = "WEIR_TEST_GROUP_PANIC"

// "A callback's panic ends the program, as on any goroutine, with its own stack": in a process of its own.
func TestGroupPanics(t *testing.T) {
	if os.Getenv(groupPanicEnv) != "" {
		g := newGroup(t, GroupConfig{Loops: 1, Setup: func(l *Loop) error {
			l.AfterFunc(0, panicInCallback)
			return nil
		}})
		t.Errorf("Run returned: %v", g.Run(t.Context()))
		os.Exit(0)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestGroupPanics$")
	cmd.Env = append(os.Environ(), groupPanicEnv+"=1")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2 {
		t.Errorf("the program ended with %v:\n%s", err, out)
	}
	for _, want := range []string{"panic: boom", "weir.panicInCallback"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in the output:\n%s", want, out)
		}
	}
}

func panicInCallback() { panic("boom") }
