package weir

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirnet/weir/internal/sys"
)

// TestConnConfigOptions: what a configuration says an accepted and a dialled connection have, and their setters change it.
func TestConnConfigOptions(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		cfg := ConnConfig{
			Delay: true, KeepAlive: 61 * time.Second, KeepAliveInterval: 1500 * time.Millisecond, KeepAliveCount: 7,
			UserTimeout: 9 * time.Second, RecvBufferBytes: 50_000, SendBufferBytes: 60_000, NotSentLowAtBytes: 70_000,
			TTL: 33, TrafficClass: 0x28,
		}
		set := map[sys.Option]int{
			sys.NoDelay: 0, sys.KeepAlive: 1, sys.KeepIdle: 61, sys.KeepInterval: 2, sys.KeepCount: 7,
			sys.UserTimeout: 9000, sys.NotSentLowAt: 70_000, sys.TTL: 33, sys.TOS: 0x28,
		}
		later := map[sys.Option]int{
			sys.NoDelay: 1, sys.KeepAlive: 0, sys.KeepIdle: 61, sys.KeepInterval: 2, sys.KeepCount: 7, sys.Linger: 0,
			sys.TOS: 0x50,
		}
		check := func(who string, c *Conn, want map[sys.Option]int) {
			t.Helper()
			for o, v := range want {
				if got, err := l.kernel.GetOption(c.fd, o); got != v || err != nil {
					t.Errorf("%s: option %d is %d, %v; want %d", who, o, got, err, v)
				}
			}
		}
		open := 0
		onOpen := func(who string) func(c *Conn) {
			return func(c *Conn) {
				check(who, c, set)
				for _, err := range []error{
					c.SetNoDelay(true), c.SetKeepAlive(-1, 0, 0), c.SetLinger(0),
					c.SetTrafficClass(0x50), c.SetBuffers(0, 0), c.SetBuffers(40_000, 40_000),
				} {
					if err != nil {
						t.Errorf("%s: %v", who, err)
					}
				}
				check(who, c, later)
				if err := c.SetTrafficClass(256); err == nil || !strings.Contains(err.Error(), "256") {
					t.Errorf("%s: traffic class 256: %v", who, err)
				}
				if err := c.SetLinger(time.Second); !errors.Is(err, syscall.EINVAL) {
					t.Errorf("%s: to linger for a second: %v", who, err)
				}
				if err := c.SetLinger(-1); err != nil {
					t.Error(err)
				}
				if info, err := c.Info(); err != nil || info.SendMSS <= 0 {
					t.Errorf("%s: %+v, %v", who, info, err)
				}
				if open++; open == 2 {
					_ = l.Close()
				}
			}
		}
		ln := serve(t, l, ListenerConfig{Conn: cfg}, ConnHandler{OnOpen: onOpen("accepted")})
		c := dialTo(t, l, ln, cfg, ConnHandler{OnOpen: onOpen("dialled")})
		run(t, l)
		for _, err := range []error{c.SetNoDelay(true), c.SetKeepAlive(1, 1, 1), c.SetLinger(0), c.SetBuffers(1, 1), c.SetTrafficClass(1)} {
			if err != ErrClosed {
				t.Errorf("of a closed connection: %v", err)
			}
		}
		if _, err := c.Info(); err != ErrClosed {
			t.Errorf("of a closed connection: %v", err)
		}
	})
}

// TestConnDefaults: segments are sent at once, and a quiet peer is asked after 15 s.
func TestConnDefaults(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		ln := serve(t, l, ListenerConfig{}, ConnHandler{OnOpen: func(c *Conn) {
			for o, want := range map[sys.Option]int{
				sys.NoDelay: 1, sys.KeepAlive: 1, sys.KeepIdle: 15, sys.KeepInterval: 15, sys.KeepCount: 9,
			} {
				if got, err := l.kernel.GetOption(c.fd, o); got != want || err != nil {
					t.Errorf("option %d is %d, %v; want %d", o, got, err, want)
				}
			}
			_ = l.Close()
		}})
		newPeer(t, l, ln, 0)
		run(t, l)
	})
}

// TestConnOptionsUnix: "EOPNOTSUPP or ENOPROTOOPT for a unix connection", and the names of its ends.
func TestConnOptionsUnix(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		var ln *Listener
		ln = serveUnix(t, l, ListenerConfig{}, ConnHandler{OnOpen: func(c *Conn) {
			_, info := c.Info()
			for name, err := range map[string]error{
				"NoDelay": c.SetNoDelay(true), "KeepAlive": c.SetKeepAlive(time.Second, 0, 0), "Info": info,
			} {
				if _, ok := errors.AsType[*OpError](err); !ok || !errors.Is(err, syscall.EOPNOTSUPP) && !errors.Is(err, syscall.ENOPROTOOPT) {
					t.Errorf("%s: %v", name, err)
				}
			}
			if c.LocalName() != ln.Name() || c.RemoteName() != "" || c.LocalAddr().IsValid() || c.RemoteAddr().IsValid() {
				t.Errorf("it is %q and the peer %q", c.LocalName(), c.RemoteName())
			}
			if c.name() != "unix "+ln.Name() || c.Loop() != l || c.Listener() != ln {
				t.Errorf("it is %s", c.name())
			}
		}})
		dialTo(t, l, ln, ConnConfig{}, ConnHandler{OnOpen: func(c *Conn) {
			if c.RemoteName() != ln.Name() || c.LocalName() != "" || c.Listener() != nil {
				t.Errorf("it is %q and the peer %q", c.LocalName(), c.RemoteName())
			}
			l.AfterFunc(time.Millisecond, func() { _ = l.Close() })
		}})
		run(t, l)
	})
}

// TestConnConfigErrors: what makes no sense is refused with the name of the field.
func TestConnConfigErrors(t *testing.T) {
	for field, cfg := range map[string]ConnConfig{
		"WriteBufferBytes":  {WriteBufferBytes: -1},
		"MaxFiles":          {MaxFiles: 254},
		"KeepAliveCount":    {KeepAliveCount: -1},
		"RecvBufferBytes":   {RecvBufferBytes: -1},
		"SendBufferBytes":   {SendBufferBytes: -1},
		"NotSentLowAtBytes": {NotSentLowAtBytes: -1},
		"TTL":               {TTL: 256},
		"TrafficClass":      {TrafficClass: -1},
		"Count(-3)":         {Bound: Count(-3)},
	} {
		if _, err := cfg.resolve(Share()); !strings.Contains(fmt.Sprint(err), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	limits, err := ConnConfig{CloseTimeout: -1, DialTimeout: -1, IdleTimeout: -1}.resolve(Share())
	if err != nil || limits.closeTimeout != 0 || limits.dialTimeout != 0 || limits.idle != 0 {
		t.Errorf("negative: %+v, %v", limits, err)
	}
}
