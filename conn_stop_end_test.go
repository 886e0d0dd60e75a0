package weir

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/weirnet/weir/internal/memsys"
)

// TestConnStopEnd: an end that is in the kernel when a Stop begins is told, as the answer may wait for it.
func TestConnStopEnd(t *testing.T) {
	overSockets(t, func(t *testing.T, k *Kernel, serve func(*testing.T, *Loop, ListenerConfig, ConnHandler) *Listener) {
		for _, bound := range []Bound{Share(), Count(3), Unbounded()} {
			l := newLoop(t, Config{Kernel: k})
			ln := serve(t, l, ListenerConfig{Conn: ConnConfig{Bound: bound}}, ConnHandler{OnEnd: func(c *Conn) {
				_, _ = c.Write([]byte("answer"))
				_ = c.Close()
			}})
			p := newPeer(t, l, ln, 0)
			p.write([]byte("request"))
			p.closeWrite()
			l.Stop(-1)
			run(t, l)
			if p.read(); string(p.got) != "answer" || !p.over {
				t.Errorf("%v: the answer is %q, then %v", bound, p.got, p.err)
			}
		}
	})
}

// TestConnStopPausedEnd: a connection that is paused when its end is told is closed when it goes on.
func TestConnStopPausedEnd(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		ln := serve(t, l, ListenerConfig{}, ConnHandler{OnEnd: func(c *Conn) {
			c.Pause()
			l.AfterFunc(time.Millisecond, c.Resume)
		}})
		newPeer(t, l, ln, 0).closeWrite()
		l.Stop(-1)
		run(t, l)
	})
}

// TestConnStopAdopted: a connection that was adopted just before a Stop is served, as any that is there.
func TestConnStopAdopted(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l, other := newLoop(t, Config{Kernel: k}), newLoop(t, Config{Kernel: k})
		ln := serve(t, other, ListenerConfig{}, ConnHandler{})
		p := newPeer(t, other, ln, 0)
		p.write([]byte("request"))
		fd, _, err := other.kernel.Accept(ln.fd)
		if err != nil {
			t.Fatal(err)
		}
		heard := ""
		c, err := l.AdoptConn(fd, ConnConfig{}, ConnHandler{
			OnOpen: func(*Conn) { heard += "open, " },
			OnData: func(c *Conn, b []byte) {
				heard += string(b)
				_, _ = c.Write([]byte("answer"))
			},
		})
		_ = other.kernel.Close(fd)
		if err != nil || c.RemoteAddr() == (netip.AddrPort{}) {
			t.Fatal(c, err)
		}
		l.Stop(-1)
		run(t, l)
		if p.read(); heard != "open, request" || string(p.got) != "answer" || !p.over {
			t.Errorf("it has heard %q and answered %q, then %v", heard, p.got, p.err)
		}
	})
}

// TestConnStopHalting stops a loop of which one connection pauses in each OnData, and another writes to it for ever: what
// had been received is delivered by and by, and no more waited for.
func TestConnStopHalting(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		ln := serve(t, l, ListenerConfig{Conn: ConnConfig{WriteBufferBytes: 1000}}, ConnHandler{OnOpen: func(c *Conn) {
			s := c.Sender()
			go func() {
				for s.WriteContext(context.Background(), make([]byte, 300)) == nil {
				}
			}()
		}})
		dialTo(t, l, ln, ConnConfig{}, ConnHandler{OnData: func(c *Conn, _ []byte) {
			c.Pause()
			l.AfterFunc(100*time.Millisecond, c.Resume)
		}})
		l.AfterFunc(time.Second, func() { l.Stop(-1) })
		began := time.Now()
		l.AfterFunc(time.Minute, func() { _ = l.Close() })
		run(t, l)
		if d := time.Since(began); d > 30*time.Second {
			t.Errorf("stopped after %v", d)
		}
	})
}
