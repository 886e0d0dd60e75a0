package weir

import (
	"syscall"
	"testing"
	"time"

	"github.com/weirnet/weir/internal/memsys"
)

// openBreaking makes a loop on which every callback of a listener is called, and the list of what is told at the end.
func openBreaking(t *testing.T, net *memsys.Net, b *breaking) (l *Loop, ln *Listener, heard *[]error) {
	t.Helper()
	l = loopIn(t, net, Config{Faults: plan(t, "accept#3=ECONNABORTED")})
	heard = new([]error)
	ln, err := l.ListenTCP(loopback4, ListenerConfig{}, ListenerHandler{
		Conn: ConnHandler{
			OnOpen:  func(*Conn) { b.call("OnOpen") },
			OnClose: func(_ *Conn, err error) { *heard = append(*heard, err) },
		},
		OnError: func(*Listener, error) { b.call("OnError") },
		OnClose: func(_ *Listener, err error) { *heard = append(*heard, err); b.call("OnClose") },
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		knock(t, net.Backend().Kernel, ln.Addr())
	}
	l.AfterFunc(time.Second, func() { _ = ln.Close() })
	l.AfterFunc(2*time.Second, func() { _ = l.Close() })
	return l, ln, heard
}

// TestListenerCallbackPanics: a panic passes through, everything is closed, and each OnClose has run once.
func TestListenerCallbackPanics(t *testing.T) {
	for _, kind := range []string{"OnOpen", "OnError", "OnClose"} {
		t.Run(kind, func(t *testing.T) {
			inBubble(t, func(t *testing.T, net *memsys.Net) {
				b := &breaking{kind: kind, goes: func() { panic(kind) }}
				l, _, heard := openBreaking(t, net, b)
				func() {
					defer func() {
						if p := recover(); p != kind {
							t.Errorf("recovered %v", p)
						}
					}()
					_ = l.Run(t.Context())
				}()
				if want := 1 + int(l.Stats().Streams.Accepted); len(*heard) != want {
					t.Errorf("%d calls of OnClose, want %d: %v", len(*heard), want, *heard)
				}
				if s := l.Stats().Streams; s.Open != 0 || l.table.len() != 0 || s.Accepted == 0 {
					t.Errorf("%d connections and %d sources are left", s.Open, l.table.len())
				}
			})
		})
	}
}

// TestListenerCallbackCloses: a Close of the listener, the connection or the loop in each callback.
func TestListenerCallbackCloses(t *testing.T) {
	for _, kind := range []string{"OnOpen", "OnError", "OnClose"} {
		for _, what := range []string{"listener", "loop", "stop", "stop of the loop"} {
			t.Run(kind+" "+what, func(t *testing.T) {
				inBubble(t, func(t *testing.T, net *memsys.Net) {
					var l *Loop
					var ln *Listener
					b := &breaking{kind: kind}
					b.goes = func() {
						switch what {
						case "listener":
							_ = ln.Close()
						case "loop":
							_ = l.Close()
						case "stop":
							ln.Stop()
						default:
							l.Stop(-1)
						}
					}
					var heard *[]error
					l, ln, heard = openBreaking(t, net, b)
					run(t, l)
					s := l.Stats().Streams
					if want := 1 + int(s.Accepted); len(*heard) != want {
						t.Errorf("%d calls of OnClose, want %d: %v", len(*heard), want, *heard)
					}
					if s.Open != 0 || l.table.len() != 0 {
						t.Errorf("%d connections and %d sources are left", s.Open, l.table.len())
					}
					if all := what == "stop" || what == "stop of the loop" || kind == "OnClose"; all && s.Accepted != 4 {
						t.Errorf("%d were accepted", s.Accepted)
					}
				})
			})
		}
	}
}

// TestListenerConnCloses: a connection that is closed, or reset, in OnOpen leaves room for the next.
func TestListenerConnCloses(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		opened, closed := 0, 0
		ln := serve(t, l, ListenerConfig{MaxConns: 1}, ConnHandler{
			OnOpen: func(c *Conn) {
				if opened++; opened%2 == 0 {
					_ = c.Reset()
				} else {
					_ = c.Close()
				}
			},
			OnClose: func(_ *Conn, err error) {
				if closed++; err != nil {
					t.Error(err)
				}
				if closed == 6 {
					_ = l.Close()
				}
			},
		})
		var fds []int
		for range 6 {
			fds = append(fds, knock(t, k.backend.Kernel, ln.Addr()))
		}
		run(t, l)
		if opened != 6 || ln.Conns() != 0 {
			t.Errorf("%d opened, %d are open", opened, ln.Conns())
		}
		var b [1]byte
		if n, err := k.backend.Kernel.Read(fds[0], b[:]); n != 0 || err != nil {
			t.Errorf("after Close the client reads %d, %v", n, err)
		}
		if _, err := k.backend.Kernel.Read(fds[1], b[:]); err != syscall.ECONNRESET {
			t.Errorf("after Reset the client reads %v", err)
		}
	})
}
