package weir

import (
	"testing"

	"github.com/weirnet/weir/internal/sys"
)

// ask connects n clients that no loop has, and sends a byte from each.
func ask(t *testing.T, k sys.Kernel, ln *Listener, n int) (fds []int) {
	t.Helper()
	for i := range n {
		fd := knock(t, k, ln.Addr())
		fds = append(fds, fd)
		if _, err := k.Write(fd, &sys.Vector{Bufs: [][]byte{{byte(i)}}}, false); err != nil {
			t.Fatal(err)
		}
	}
	return fds
}

// answered fails the test unless each client has its byte back, and then the end.
func answered(t *testing.T, k sys.Kernel, fds []int) {
	t.Helper()
	for i, fd := range fds {
		var b [2]byte
		if n, err := k.Read(fd, b[:]); n != 1 || err != nil || b[0] != byte(i) {
			t.Errorf("client %d reads %d, %v", i, n, err)
		} else if n, err := k.Read(fd, b[:]); n != 0 || err != nil {
			t.Errorf("client %d reads %d, %v behind its answer", i, n, err)
		}
	}
}

// TestListenerStop: who is in the backlog when a Stop begins is accepted, and served, whatever held the listener back.
func TestListenerStop(t *testing.T) {
	const clients = 50
	echo := ConnHandler{OnData: func(c *Conn, b []byte) { _, _ = c.Write(b) }}
	for _, cfg := range []struct {
		name string
		ListenerConfig
		pause bool
	}{
		{name: "plain"},
		{name: "paused", pause: true},
		{name: "full", ListenerConfig: ListenerConfig{MaxConns: 2}},
		{name: "count", ListenerConfig: ListenerConfig{Conn: ConnConfig{Bound: Count(3)}}},
		{name: "unbounded", ListenerConfig: ListenerConfig{Conn: ConnConfig{Bound: Unbounded()}}},
	} {
		t.Run(cfg.name, func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				t.Run("loop", func(t *testing.T) {
					l := newLoop(t, Config{Kernel: k})
					ln := serve(t, l, cfg.ListenerConfig, echo)
					if cfg.pause {
						ln.Pause()
					}
					fds := ask(t, k.backend.Kernel, ln, clients)
					l.Stop(-1)
					run(t, l)
					answered(t, k.backend.Kernel, fds)
				})
				t.Run("listener", func(t *testing.T) {
					l := newLoop(t, Config{Kernel: k, StopWhenIdle: true})
					ln := serve(t, l, cfg.ListenerConfig, ConnHandler{OnData: func(c *Conn, b []byte) {
						_, _ = c.Write(b)
						_ = c.Close()
					}})
					if cfg.pause {
						ln.Pause()
					}
					fds := ask(t, k.backend.Kernel, ln, clients)
					l.AfterFunc(0, ln.Stop)
					run(t, l)
					answered(t, k.backend.Kernel, fds)
				})
			})
		})
	}
}

// TestListenerStopFails: a Stop ends, and accepts whom it can, also when accepting fails.
func TestListenerStopFails(t *testing.T) {
	const clients = 10
	for _, row := range []struct {
		faults string
		all    bool // are accepted, or refused
	}{
		{"accept#2x3=EMFILE", true},
		{"accept#2x3=ENOMEM", true},
		{"accept#2x10=ECONNABORTED", true},
		{"accept*=EMFILE", false},
		{"accept*=ENOBUFS", false},
		{"accept*=EPROTO", false},
		{"accept#2*=EBADF", false},
	} {
		t.Run(row.faults, func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				l := newLoop(t, Config{Kernel: k, Faults: plan(t, row.faults)})
				ln := serve(t, l, ListenerConfig{}, ConnHandler{})
				ask(t, k.backend.Kernel, ln, clients)
				l.Stop(-1)
				run(t, l)
				if s := l.Stats().Streams; row.all != (s.Accepted+s.AcceptRefused == clients) {
					t.Errorf("%d accepted, %d refused", s.Accepted, s.AcceptRefused)
				}
			})
		})
	}
}

// TestListenerStopAlone: a Stop ends where nobody waits and the accept that would tell fails, of which the poller knows
// nothing.
func TestListenerStopAlone(t *testing.T) {
	for _, faults := range []string{"accept#1=ENOMEM", "accept#1x8=ECONNABORTED", "socket#2*=EMFILE; accept#1=EMFILE"} {
		t.Run(faults, func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				l := newLoop(t, Config{Kernel: k, Faults: plan(t, faults)})
				serve(t, l, ListenerConfig{}, ConnHandler{})
				l.Stop(-1)
				run(t, l)
			})
		})
	}
}

// TestListenerStopFull: without a descriptor those who wait are told an end, all of them.
func TestListenerStopFull(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k, Faults: plan(t, "accept#1=EMFILE; accept#3=EMFILE; accept#5=EMFILE; accept#7=EMFILE")})
		ln := serve(t, l, ListenerConfig{}, ConnHandler{})
		var fds []int
		for range 4 {
			fds = append(fds, knock(t, k.backend.Kernel, ln.Addr()))
		}
		l.Stop(-1)
		run(t, l)
		for _, fd := range fds {
			readsEnd(t, k.backend.Kernel, fd)
		}
	})
}

// TestListenerStopPaused: who is paused while it is stopping is stopped all the same.
func TestListenerStopPaused(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		ln := serve(t, l, ListenerConfig{}, ConnHandler{OnOpen: func(c *Conn) { c.Listener().Pause() }})
		ask(t, k.backend.Kernel, ln, 5)
		l.Stop(-1)
		run(t, l)
		if s := l.Stats().Streams; s.Accepted != 5 {
			t.Errorf("%d accepted", s.Accepted)
		}
	})
}

// TestGroupStopServes has two loops at a port.
func TestGroupStopServes(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		const clients = 40
		var lns []*Listener
		g, err := NewGroup(GroupConfig{Loops: 2, Config: Config{Kernel: k}, Setup: func(l *Loop) error {
			at := loopback4
			if len(lns) > 0 {
				at = lns[0].Addr()
			}
			ln, err := l.ListenTCP(at, ListenerConfig{ReusePort: true}, ListenerHandler{Conn: ConnHandler{
				OnData: func(c *Conn, b []byte) { _, _ = c.Write(b) },
			}})
			lns = append(lns, ln)
			return err
		}})
		if err != nil {
			t.Fatal(err)
		}
		fds := ask(t, k.backend.Kernel, lns[0], clients)
		g.Stop(-1)
		if err := g.Run(t.Context()); err != nil {
			t.Error(err)
		}
		answered(t, k.backend.Kernel, fds)
		var each [2]uint64
		for i, l := range g.Loops() {
			each[i] = l.Stats().Streams.Accepted
		}
		if each[0] == 0 || each[1] == 0 || each[0]+each[1] != clients {
			t.Errorf("they accepted %v", each)
		}
	})
}

// TestListenerStopEnds: "when all who wait in its backlog are accepted", and those who come after that moment do not keep
// a Stop from its end.
func TestListenerStopEnds(t *testing.T) {
	const backlog = 4
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		accepted := 0
		var ln *Listener
		ln = serve(t, l, ListenerConfig{Backlog: backlog}, ConnHandler{OnOpen: func(c *Conn) {
			if accepted++; accepted == 100 {
				t.Error("it goes on for ever")
				_ = l.Close()
			}
			if ln.fd >= 0 {
				knock(t, l.kernel, ln.Addr())
			}
		}})
		ask(t, l.kernel, ln, backlog)
		l.Stop(-1)
		run(t, l)
		if accepted < backlog {
			t.Errorf("%d are accepted of %d who waited", accepted, backlog)
		}
	})
}

// TestListenerStopTwice: a Stop of the listener takes nothing back of the loop's, which stops its connections, too.
func TestListenerStopTwice(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		var ln *Listener
		ln = serve(t, l, ListenerConfig{}, ConnHandler{OnOpen: func(*Conn) { ln.Stop() }})
		ask(t, l.kernel, ln, 3)
		l.Stop(-1)
		run(t, l)
	})
}
