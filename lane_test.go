package weir

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/weirnet/weir/internal/memsys"
	"github.com/weirnet/weir/internal/sys"
)

// crowd is connections of several listeners that have something to read all the time.
type crowd struct {
	t     *testing.T
	l     *Loop
	k     sys.Kernel
	cost  time.Duration
	conns []*Conn
	fds   []int // of the peers, in that order
	time  []time.Duration
	calls []int
	each  func(c *Conn) // in each OnData, if not nil
}

// openCrowd has n connections come, in the first second, to so many listeners.
func openCrowd(t *testing.T, l *Loop, n, listeners int, cost time.Duration, onOpen func(c *Conn)) *crowd {
	w := &crowd{t: t, l: l, k: l.kernel, cost: cost, time: make([]time.Duration, n), calls: make([]int, n)}
	peers := map[string]int{}
	for range listeners {
		ln := serve(t, l, ListenerConfig{}, ConnHandler{
			OnOpen: func(c *Conn) {
				c.Data = len(w.conns)
				w.conns = append(w.conns, c)
				w.fds = append(w.fds, peers[c.RemoteAddr().String()])
				if onOpen != nil {
					onOpen(c)
				}
			},
			OnData: func(c *Conn, _ []byte) { w.serve(c) },
		})
		for range n / listeners {
			fd := knock(t, w.k, ln.Addr())
			local, err := w.k.LocalAddr(fd)
			if err != nil {
				t.Fatal(err)
			}
			peers[local.String()] = fd
		}
	}
	return w
}

func (w *crowd) serve(c *Conn) {
	i := c.Data.(int)
	time.Sleep(w.cost)
	w.time[i] += w.cost
	w.calls[i]++
	if w.each != nil {
		w.each(c)
	}
	w.ask(i)
}

// ask gives a connection something to read.
func (w *crowd) ask(i int) {
	_, _ = w.k.Write(w.fds[i], &sys.Vector{Bufs: [][]byte{{1}}}, false)
}

// begin makes all busy, and counts from now on.
func (w *crowd) begin() {
	if len(w.conns) != len(w.time) {
		w.t.Fatalf("%d are open", len(w.conns))
	}
	for i := range w.conns {
		w.ask(i)
	}
	w.reset()
}

func (w *crowd) reset() {
	clear(w.time)
	clear(w.calls)
}

// of is the time of those that a test means, and how often the one with the least and the most was called.
func (w *crowd) of(which func(i int) bool) (d time.Duration, least, most int) {
	least = 1 << 30
	for i := range w.conns {
		if which(i) {
			d += w.time[i]
			least, most = min(least, w.calls[i]), max(most, w.calls[i])
		}
	}
	return d, least, most
}

func all(int) bool { return true }

// TestLaneWeighs: a lane "weighs as much under the bound as any other lane": a thousand connections of four listeners, who
// are moved to one lane, have half of the time beside a socket, each of them as much as the others, however they came
// there.
func TestLaneWeighs(t *testing.T) {
	const cost, measured = 50 * time.Microsecond, time.Second
	for _, row := range []struct {
		name    string
		conns   int
		onOpen  func(c *Conn, lane *Lane)
		onData  func(c *Conn, lane *Lane)
		onTimer func(c *Conn, lane *Lane)
	}{
		{name: "in OnOpen", conns: 1000, onOpen: (*Conn).SetLane},
		{name: "few", conns: 4, onOpen: (*Conn).SetLane},
		{name: "from a timer, while they are busy", conns: 200, onTimer: (*Conn).SetLane},
		{name: "in their own visits", conns: 200, onData: (*Conn).SetLane},
		{name: "in their own visits, to and fro", conns: 200, onData: func(c *Conn, lane *Lane) {
			c.SetLane(nil)
			c.SetLane(lane)
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, net *memsys.Net) {
				l := loopIn(t, net, Config{})
				lane := l.NewLane()
				call := func(fn func(*Conn, *Lane)) func(*Conn) {
					return func(c *Conn) {
						if fn != nil {
							fn(c, lane)
						}
					}
				}
				w := openCrowd(t, l, row.conns, 4, cost, call(row.onOpen))
				w.each = call(row.onData)
				l.AfterFunc(time.Second, func() {
					w.begin()
					e := openEndless(t, l, Share(), cost)
					l.AfterFunc(measured, func() { // all have been visited by now
						for _, c := range w.conns {
							call(row.onTimer)(c)
						}
						w.reset()
						e.time = 0
						l.AfterFunc(measured, func() {
							ofConns, least, most := w.of(all)
							if d := ofConns - e.time; d.Abs() > 4*(minShare+cost) {
								t.Errorf("the connections had %v, the socket %v", ofConns, e.time)
							}
							if most-least > 2 {
								t.Errorf("the least had %d turns, the most %d", least, most)
							}
							_ = l.Close()
						})
					})
				})
				run(t, l)
			})
		})
	}
}

// TestLanesOfAListener: "for what a program wants to weigh together": what is moved out of a listener's lane takes nothing
// from what stays, a task that is a source of the lane has its part in it, and nil moves back.
func TestLanesOfAListener(t *testing.T) {
	const cost, measured = 50 * time.Microsecond, time.Second
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		lane := l.NewLane()
		moved := func(i int) bool { return i >= 3 }
		w := openCrowd(t, l, 103, 1, cost, nil)
		var ofTask time.Duration
		l.AfterFunc(time.Second, func() {
			w.begin()
			for i, c := range w.conns {
				if moved(i) {
					c.SetLane(lane)
				}
			}
			lane.Work(func() bool {
				time.Sleep(cost)
				ofTask += cost
				return true
			})
			l.AfterFunc(measured, func() {
				ofMoved, least, most := w.of(moved)
				ofOthers, _, _ := w.of(func(i int) bool { return !moved(i) })
				if d := ofMoved + ofTask - ofOthers; d.Abs() > 4*(minShare+cost) {
					t.Errorf("the lane had %v, the listener's %v", ofMoved+ofTask, ofOthers)
				}
				if d := ofTask - ofMoved/100; most-least > 2 || d.Abs() > 4*(minShare+cost) {
					t.Errorf("the least had %d turns, the most %d; the task %v of %v", least, most, ofTask, ofMoved)
				}
				for _, c := range w.conns {
					c.SetLane(nil)
				}
				w.reset()
				ofTask = 0
			})
			l.AfterFunc(2*measured, func() {
				ofConns, least, most := w.of(all)
				if d := ofConns - ofTask; d.Abs() > 4*(minShare+cost) || most-least > 2 {
					t.Errorf("moved back, they had %v, from %d to %d turns; the task alone %v", ofConns, least, most, ofTask)
				}
				_ = l.Close()
			})
		})
		run(t, l)
	})
}

// TestSetLaneAtEachVisit: a connection that moves on and on, to lanes that are new, does not have all visits of a round.
func TestSetLaneAtEachVisit(t *testing.T) {
	const cost = 50 * time.Microsecond
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		w := openCrowd(t, l, 1, 1, cost, nil)
		w.each = func(c *Conn) { c.SetLane(l.NewLane()) }
		l.AfterFunc(time.Second, func() {
			w.begin()
			e := openEndless(t, l, Share(), cost)
			l.AfterFunc(time.Second, func() {
				if d := w.time[0] - e.time; d.Abs() > 4*(minShare+cost) {
					t.Errorf("it had %v, a socket %v", w.time[0], e.time)
				}
				_ = l.Close()
			})
		})
		run(t, l)
	})
}

// TestSetLane moves a connection wherever it can be, from and to lanes of all kinds: it reads all that was sent, in order,
// and the end.
func TestSetLane(t *testing.T) {
	const size = 300_000
	for _, row := range []struct {
		name string
		cfg  ConnConfig
		open func(c *Conn, move func()) // in OnOpen
		data func(c *Conn, move func()) // in each OnData
	}{
		{name: "in OnOpen", open: func(_ *Conn, move func()) { move() }},
		{name: "in each visit", data: func(_ *Conn, move func()) { move() }},
		{name: "in each visit, often", data: func(_ *Conn, move func()) { move(); move(); move() }},
		{name: "from timers", open: func(c *Conn, move func()) { c.Loop().Every(100*time.Microsecond, move) }},
		{name: "from a post at each visit", data: func(c *Conn, move func()) { _ = c.Loop().Post(move) }},
		{name: "in the next turn, while it is paused", data: func(c *Conn, move func()) {
			c.Pause()
			c.Loop().NextTurn(func() { move(); c.Resume(); move() })
		}},
		{name: "while it is read again", data: func(c *Conn, move func()) {
			c.Loop().becameReady(c.source)
			move()
			c.Loop().NextTurn(func() { c.Loop().becameReady(c.source); move() })
		}},
		{name: "unbounded", cfg: ConnConfig{Bound: Unbounded()}, data: func(_ *Conn, move func()) { move() }},
		{name: "counted", cfg: ConnConfig{Bound: Count(1)}, data: func(_ *Conn, move func()) { move() }},
	} {
		for _, dialled := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, dialled %v", row.name, dialled), func(t *testing.T) {
				overSockets(t, func(t *testing.T, k *Kernel, serve func(*testing.T, *Loop, ListenerConfig, ConnHandler) *Listener) {
					l := newLoop(t, Config{Kernel: k})
					lanes := []*Lane{l.NewLane(), nil, l.NewLane()}
					moves, got := 0, 0
					var c *Conn
					move := func() {
						c.SetLane(lanes[moves%len(lanes)])
						moves++
						checkLane(t, c, lanes[(moves-1)%len(lanes)])
					}
					reader := ConnHandler{
						OnOpen: func(conn *Conn) {
							if c = conn; row.open != nil {
								row.open(c, move)
							}
						},
						OnData: func(c *Conn, b []byte) {
							if !bytes.Equal(b, stretch(got, len(b))) {
								t.Errorf("from byte %d on they are others", got)
							}
							got += len(b)
							if row.data != nil {
								row.data(c, move)
							}
						},
						OnEnd: func(c *Conn) { move(); _ = c.Close() },
						OnClose: func(*Conn, error) {
							move()
							_ = l.Close()
						},
					}
					writer := ConnHandler{OnOpen: func(c *Conn) {
						rest := stretch(0, size)
						var tick *Timer
						tick = l.Every(200*time.Microsecond, func() { // so that it is idle now and then, too
							n, _ := c.Write(rest[:min(len(rest), 20_011)])
							if rest = rest[n:]; len(rest) == 0 {
								tick.Stop()
								_ = c.CloseWrite()
							}
						})
					}}
					if !dialled {
						reader, writer = writer, reader
					}
					ln := serve(t, l, ListenerConfig{Conn: row.cfg}, writer)
					dialTo(t, l, ln, row.cfg, reader)
					run(t, l)
					if got != size || moves < 3 {
						t.Errorf("%d bytes came, %d moves", got, moves)
					}
				})
			})
		}
	}
}

// checkLane sees where a connection stands after SetLane.
func checkLane(t *testing.T, c *Conn, lane *Lane) {
	t.Helper()
	got := c.source.Lane()
	want := c.firstLane()
	if lane != nil {
		want = &lane.lane
	}
	switch {
	case c.state == connClosed:
		return
	case c.limits.bound.exempt():
		if got == want {
			t.Errorf("a connection under %v was moved", c.limits.bound)
		}
	case got != want:
		t.Errorf("it is in another lane")
	}
}

// TestSetLaneKeepsReady: a connection that has to be visited, which the poller does not tell of, is visited after a move:
// for Again, and for a Stop, which waits for the visit.
func TestSetLaneKeepsReady(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		lane := l.NewLane()
		agains, stops := 0, 0
		h := ConnHandler{
			OnOpen: func(c *Conn) {
				l.AfterFunc(time.Millisecond, func() { c.Again(); c.SetLane(lane) })
				l.AfterFunc(20*time.Millisecond, func() { c.Pause(); c.Again(); c.SetLane(nil); c.Resume(); c.SetLane(lane) })
			},
			OnData: func(_ *Conn, b []byte) {
				if agains++; len(b) > 0 {
					t.Error("bytes")
				}
			},
			OnStop: func(*Conn) { stops++ },
		}
		ln := serve(t, l, ListenerConfig{}, h)
		dialTo(t, l, ln, ConnConfig{}, h)
		l.AfterFunc(100*time.Millisecond, func() {
			l.Stop(-1)
			l.AfterFunc(0, func() { // in a turn that has begun with the Stop
				for _, c := range l.conns() {
					if !c.delivering {
						t.Error("the Stop does not wait for it")
					}
					c.SetLane(nil)
				}
			})
		})
		run(t, l)
		if agains != 4 || stops != 2 {
			t.Errorf("%d calls for Again, %d of OnStop", agains, stops)
		}
	})
}

// TestSetLaneWaits: a ready connection that is moved has waited since before.
func TestSetLaneWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		l.AfterFunc(time.Second, func() { _ = l.Close() })
		ln := serve(t, l, ListenerConfig{}, ConnHandler{OnOpen: func(c *Conn) {
			l.AfterFunc(time.Millisecond, func() {
				c.Again()
				time.Sleep(time.Millisecond)
			})
			l.AfterFunc(time.Millisecond, func() { c.SetLane(l.NewLane()) }) // in the same turn
		}})
		knock(t, l.kernel, ln.Addr())
		run(t, l)
		if s := l.Stats(); s.VisitWait.Sum() != time.Millisecond {
			t.Errorf("sources have waited %v", s.VisitWait.Sum())
		}
	})
}

// TestSetLaneOfAClosed: nothing happens to one that is closed, or to its lanes.
func TestSetLaneOfAClosed(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		calls := 0
		move := func(c *Conn) {
			before := c.source
			c.SetLane(l.NewLane())
			if c.source != before {
				t.Error("it was moved")
			}
			c.SetLane(nil)
			if l.ring.Ready(c.source) {
				t.Error("it comes into the ring")
			}
		}
		ln := serve(t, l, ListenerConfig{}, ConnHandler{
			OnData: func(c *Conn, _ []byte) {
				calls++
				c.SetLane(l.NewLane())
				_ = c.Reset() // in the visit in which it was moved
				move(c)
			},
			OnClose: func(c *Conn, _ error) {
				calls++
				move(c)
				_ = l.Close()
			},
		})
		newPeer(t, l, ln, 0).write([]byte("xyz"))
		run(t, l)
		if calls != 2 {
			t.Errorf("%d calls", calls)
		}
	})
}

// TestSetLaneOfADial: one that is not there yet is moved, too, and one that is closing reads on to its end.
func TestSetLaneOfADial(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		lane := l.NewLane()
		ln := serve(t, l, ListenerConfig{}, ConnHandler{OnOpen: func(c *Conn) { _, _ = c.Write([]byte("unread")) }})
		opened := false
		c := dialTo(t, l, ln, ConnConfig{}, ConnHandler{
			OnOpen: func(c *Conn) {
				opened = true
				checkLane(t, c, lane)
				c.Pause()
				l.AfterFunc(20*time.Millisecond, func() {
					_ = c.Close() // waits for the peer, as something was not read
					if c.state != connClosing || !c.discard {
						t.Errorf("state %d", c.state)
					}
					c.SetLane(nil)
					checkLane(t, c, nil)
				})
			},
			OnClose: func(_ *Conn, err error) {
				if err != nil {
					t.Error(err)
				}
				_ = l.Close()
			},
		})
		c.SetLane(lane)
		checkLane(t, c, lane)
		run(t, l)
		if !opened {
			t.Error("it never came")
		}
	})
}

// "It panics if the lane is another loop's."
func TestSetLaneOfAnotherLoop(t *testing.T) {
	k := NewKernel(memsys.New().Backend())
	l, other := newLoop(t, Config{Kernel: k}), newLoop(t, Config{Kernel: k})
	for _, bound := range []Bound{Share(), Unbounded()} {
		c := dialTo(t, l, serve(t, l, ListenerConfig{}, ConnHandler{}), ConnConfig{Bound: bound}, ConnHandler{})
		before := c.source
		if value, _ := recovered(func() { c.SetLane(other.NewLane()) }); value == nil || c.source != before {
			t.Errorf("under %v it panics with %v", bound, value)
		}
	}
	if value, _ := recovered(func() { l.NewLane().Work(nil) }); value == nil {
		t.Error("Work of nil does not panic")
	}
}

// TestSetLaneAllocates: a move costs a source.
func TestSetLaneAllocates(t *testing.T) {
	l := newLoop(t, Config{Kernel: NewKernel(memsys.New().Backend())})
	c := dialTo(t, l, serve(t, l, ListenerConfig{}, ConnHandler{}), ConnConfig{}, ConnHandler{})
	lanes := [2]*Lane{l.NewLane(), l.NewLane()}
	n := 0
	if got := testing.AllocsPerRun(100, func() { n++; c.SetLane(lanes[n%2]) }); got > 1 {
		t.Errorf("%v allocations a move", got)
	}
	if got := testing.AllocsPerRun(100, func() { c.SetLane(lanes[n%2]) }); got > 0 {
		t.Errorf("%v allocations to stay", got)
	}
}

// TestLocal: "made by a call of make when there is nothing yet", once for a key and a loop.
func TestLocal(t *testing.T) {
	type key struct{ n int }
	k := NewKernel(memsys.New().Backend())
	made := 0
	var l *Loop
	get := func(n int) any {
		return l.Local(key{n}, func() any {
			made++
			if n == 0 {
				l.Local(key{100}, func() any { return "inner" }) // one may be made of another
			}
			return fmt.Sprint("value ", made)
		})
	}
	loops := []*Loop{newLoop(t, Config{Kernel: k}), newLoop(t, Config{Kernel: k})}
	for i, want := range []string{"value 1", "value 2", "value 3", "value 4"} {
		l = loops[i/2]
		for range 3 {
			if got := get(i % 2); got != want {
				t.Errorf("loop %d, key %d: %v, want %v", i/2, i%2, got, want)
			}
		}
		if l.Local(100, func() any { return "of another type" }) != "of another type" || l.Local(key{100}, nil) != "inner" {
			t.Error("keys are taken for each other")
		}
	}
	made = 0
	for range 2 {
		if l.Local("nil", func() any { made++; return nil }) != nil || made != 1 {
			t.Errorf("nil was made %d times", made)
		}
	}
	if value, _ := recovered(func() { l.Local("broken", func() any { panic("broken") }) }); value != "broken" {
		t.Errorf("recovered %v", value)
	}
	if l.Local("broken", func() any { return "mended" }) != "mended" {
		t.Error("what was not made is kept")
	}
}
