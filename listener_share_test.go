package weir

import (
	"testing"
	"time"

	"github.com/weirnet/weir/internal/memsys"
	"github.com/weirnet/weir/internal/sys"
)

// TestListenerCount: "exact: at most n a turn".
func TestListenerCount(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		const n, clients = 3, 10
		l := loopIn(t, net, Config{})
		perTurn := map[uint64]int{}
		ln := serve(t, l, ListenerConfig{Conn: ConnConfig{Bound: Count(n)}}, ConnHandler{OnOpen: func(*Conn) { perTurn[l.Turn()]++ }})
		for range clients {
			knock(t, net.Backend().Kernel, ln.Addr())
		}
		runFor(t, l, time.Second)
		sum := 0
		for turn, got := range perTurn {
			if sum += got; got > n {
				t.Errorf("turn %d accepted %d", turn, got)
			}
		}
		if sum != clients || len(perTurn) != (clients+n-1)/n {
			t.Errorf("%d accepted in %d turns", sum, len(perTurn))
		}
	})
}

// TestAcceptStorm has a thousand clients come at once whose OnOpen costs: neither a timer, nor an established connection
// of the listener, nor another socket waits longer than the bound says.
func TestAcceptStorm(t *testing.T) {
	const clients, cost, period = 1000, 500 * time.Microsecond, 20*time.Millisecond + 300*time.Microsecond
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		storm, opened := false, 0
		ln := serve(t, l, ListenerConfig{}, ConnHandler{
			OnOpen: func(*Conn) {
				if opened++; storm {
					time.Sleep(cost)
				}
			},
			OnData: func(c *Conn, b []byte) { _, _ = c.Write(b) },
		})
		// Each waits for its echo before it asks again, so that there is always one on its way.
		k := net.Backend().Kernel
		asked := map[string]time.Time{}
		worst := map[string]time.Duration{}
		note := func(who string) {
			worst[who] = max(worst[who], time.Since(asked[who]))
			asked[who] = time.Now()
		}
		c := dialTo(t, l, ln, ConnConfig{Bound: Unbounded()}, ConnHandler{OnData: func(c *Conn, b []byte) {
			note("connection")
			l.AfterFunc(time.Millisecond, func() { asked["connection"] = time.Now(); _, _ = c.Write(b) })
		}})
		u := listen(t, l, Bound{}, func(u *UDP, d *Datagram) {
			note("socket")
			l.AfterFunc(time.Millisecond, func() { asked["socket"] = time.Now(); _ = u.Send(d.Payload, u.LocalAddr()) })
		})
		l.AfterFunc(time.Second, func() {
			storm = true
			for range clients {
				knock(t, k, ln.Addr())
			}
			asked["connection"], asked["socket"], asked["timer"] = time.Now(), time.Now(), time.Now()
			_, _ = c.Write([]byte{1})
			_ = u.Send([]byte{1}, u.LocalAddr())
			due := time.Now().Add(period)
			l.Every(period, func() {
				worst["timer"] = max(worst["timer"], time.Since(due))
				due = due.Add(period)
			})
		})
		l.AfterFunc(time.Second+clients*cost, func() {
			if opened < clients*9/10 {
				t.Errorf("the storm was not one: %d accepted", opened)
			}
			_ = l.Close()
		})
		run(t, l)
		for who, most := range map[string]time.Duration{
			"timer":      minShare + cost,
			"connection": 3 * (minShare + cost), // its lane pays for the storm
			"socket":     minShare + cost,
		} {
			if t.Logf("%s: %v", who, worst[who]); worst[who] > most || who != "timer" && worst[who] == 0 {
				t.Errorf("%s: waited %v, want %v at most", who, worst[who], most)
			}
		}
	})
}

// TestLanes: "together they weigh as much as any other source": a socket has half of the time beside a listener with
// connections that are always busy, however many they are.
func TestLanes(t *testing.T) {
	for _, conns := range []int{1, 10, 1000} {
		inBubble(t, func(t *testing.T, net *memsys.Net) {
			const cost = 50 * time.Microsecond
			l := loopIn(t, net, Config{})
			var ofConns time.Duration
			calls := map[*Conn]int{}
			k := net.Backend().Kernel
			one := &sys.Vector{Bufs: [][]byte{{1}}}
			peers := map[*Conn]int{}
			ln := serve(t, l, ListenerConfig{}, ConnHandler{OnData: func(c *Conn, b []byte) {
				time.Sleep(cost)
				ofConns += cost
				calls[c]++
				_, _ = k.Write(peers[c], one, false)
			}})
			var fds []int
			for range conns {
				fds = append(fds, knock(t, k, ln.Addr()))
			}
			opened := 0
			ln.handler.Conn.OnOpen = func(c *Conn) {
				for _, fd := range fds {
					if local, _ := k.LocalAddr(fd); local == c.RemoteAddr() {
						peers[c] = fd
					}
				}
				opened++
			}
			l.AfterFunc(time.Second, func() {
				if opened != conns {
					t.Fatalf("%d are open", opened)
				}
				for _, fd := range fds {
					_, _ = k.Write(fd, one, false)
				}
				e := openEndless(t, l, Share(), cost)
				l.AfterFunc(time.Second, func() {
					if d := ofConns - e.time; max(d, -d) > 4*(minShare+cost) {
						t.Errorf("%d connections had %v, the socket %v", conns, ofConns, e.time)
					}
					least, most := 1<<30, 0
					for _, n := range calls {
						least, most = min(least, n), max(most, n)
					}
					if len(calls) != conns || most-least > 2 {
						t.Errorf("of %d connections %d had a turn, the least %d, the most %d", conns, len(calls), least, most)
					}
					_ = l.Close()
				})
			})
			run(t, l)
		})
	}
}
