package weir

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirnet/weir/internal/memsys"
)

// TestConnOnStop: "OnStop is called once, when a Stop of the loop has nothing left to deliver", with all that was read
// before it, "and is about to close this one: what it writes goes out before".
func TestConnOnStop(t *testing.T) {
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	for _, row := range []struct {
		name   string
		do     func(c *Conn) // in OnStop
		heard  string        // from OnStop on
		sent   string        // what comes of it
		reset  bool
		drains bool
	}{
		{name: "nothing", do: func(*Conn) {}, heard: "stop, close <nil>"},
		{name: "Write", do: func(c *Conn) { _, _ = c.Write([]byte("bye")) }, heard: "stop, close <nil>", sent: "bye"},
		{name: "Flush", do: func(c *Conn) { _, _ = c.Write([]byte("bye")); c.Flush() }, heard: "stop, close <nil>", sent: "bye"},
		{name: "Enqueue of much", do: func(c *Conn) { _ = c.Enqueue(large) }, heard: "stop, drain, close <nil>", sent: string(large)},
		{name: "a Write that is refused", do: func(c *Conn) { c.writeRest(large) }, drains: true, heard: "stop, close <nil>", sent: string(large)},
		{name: "CloseWrite", do: func(c *Conn) { _, _ = c.Write([]byte("bye")); _ = c.CloseWrite() }, heard: "stop, close <nil>", sent: "bye"},
		{name: "Close", do: func(c *Conn) { _, _ = c.Write([]byte("bye")); _ = c.Close() }, heard: "stop, close <nil>", sent: "bye"},
		{name: "Reset", do: func(c *Conn) { _ = c.Reset() }, heard: "stop, close <nil>", reset: true},
		{name: "Pause", do: func(c *Conn) { c.Pause() }, heard: "stop, close <nil>"},
		{name: "Pause and Resume", do: func(c *Conn) { c.Pause(); c.Resume() }, heard: "stop, close <nil>"},
		{name: "Again", do: func(c *Conn) { c.Again() }, heard: "stop, close <nil>"},
		{name: "Stop", do: func(c *Conn) { c.Loop().Stop(-1) }, heard: "stop, close <nil>"},
		{name: "SetHandler", do: func(c *Conn) { h := *c.handler; c.SetHandler(h) }, heard: "stop, close <nil>"},
		{name: "SetLane", do: func(c *Conn) { c.SetLane(c.Loop().NewLane()) }, heard: "stop, close <nil>"},
		{name: "Close of the loop", do: func(c *Conn) { _, _ = c.Write([]byte("bye")); _ = c.Loop().Close() }, heard: "stop, close <nil>", sent: "bye"},
	} {
		t.Run(row.name, func(t *testing.T) {
			overSockets(t, func(t *testing.T, k *Kernel, serve func(*testing.T, *Loop, ListenerConfig, ConnHandler) *Listener) {
				l := newLoop(t, Config{Kernel: k})
				var heard []string
				hear := func(what string) { heard = append(heard, what) }
				ln := serve(t, l, ListenerConfig{Conn: ConnConfig{WriteBufferBytes: 50_000}}, ConnHandler{
					OnData: func(c *Conn, b []byte) {
						hear(string(b))
						_, _ = c.Write([]byte("answer, "))
					},
					OnDrain: func(c *Conn) {
						if hear("drain"); c.Data != nil {
							c.writeRest(c.Data.([]byte))
						}
					},
					OnStop: func(c *Conn) {
						hear("stop")
						row.do(c)
					},
					OnClose: func(_ *Conn, err error) { hear(fmt.Sprint("close ", err)) },
				})
				p := newPeer(t, l, ln, 0)
				p.write([]byte("request"))
				p.readUntilOver(l, func() {})
				l.Stop(-1)
				run(t, l)
				p.read()
				if row.drains { // as often as the kernel has it
					heard = slices.DeleteFunc(heard, func(s string) bool { return s == "drain" })
				}
				if got, want := strings.Join(heard, ", "), "request, "+row.heard; got != want {
					t.Errorf("it has heard %q, want %q", got, want)
				}
				if want := "answer, " + row.sent; !row.reset && (string(p.got) != want || !p.over) {
					t.Errorf("%d bytes came, %.20q…, want %d, then %v", len(p.got), p.got, len(want), p.err)
				}
				if row.reset && ln.Name() == "" && p.err == nil {
					t.Error("the peer read an end, not a reset")
				}
			})
		})
	}
}

// writeRest writes what there is room for, and keeps the rest for OnDrain.
func (c *Conn) writeRest(b []byte) {
	n, err := c.Write(b)
	if c.Data = nil; errors.Is(err, ErrWouldBlock) {
		c.Data = b[n:]
	}
}

// TestConnOnStopAfterAll: no OnStop is called before all connections have delivered, and had the OnDrain that they are
// owed; what one writes on another then arrives as long as that is open.
func TestConnOnStopAfterAll(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		const conns, size = 5, 400_000
		l := newLoop(t, Config{Kernel: k})
		var heard []string
		open := 0
		ln := serve(t, l, ListenerConfig{Conn: ConnConfig{WriteBufferBytes: 10_000}}, ConnHandler{
			OnOpen: func(c *Conn) {
				c.Pause()
				if open++; open == conns {
					l.AfterFunc(10*time.Millisecond, func() {
						for _, c := range l.conns() {
							c.writeRest(stretch(0, size))
						}
						l.Stop(-1)
					})
				}
			},
			OnDrain: func(c *Conn) {
				heard = append(heard, "drain")
				if rest, _ := c.Data.([]byte); rest != nil {
					c.writeRest(rest)
				}
			},
			OnData: func(c *Conn, _ []byte) {
				heard = append(heard, "data")
			},
			OnStop: func(c *Conn) {
				if c.refused || c.Data != nil {
					t.Error("OnStop before OnDrain")
				}
				_, _ = c.Write([]byte("bye"))
				heard = append(heard, "stop")
			},
		})
		var peers []*peer
		for i := range conns {
			peers = append(peers, newPeer(t, l, ln, 0))
			peers[i].write(make([]byte, 1+i*100_000))
			peers[i].readUntilOver(l, peers[i].close)
		}
		run(t, l)
		if first := slices.Index(heard, "stop"); first < 0 || slices.Contains(heard[first:], "data") {
			t.Errorf("calls: %v", heard)
		}
		want := append(stretch(0, size), "bye"...)
		for i, p := range peers {
			if p.fd >= 0 {
				p.read()
			}
			if !bytes.Equal(p.got, want) || !p.over {
				t.Errorf("peer %d has %d bytes, then %v", i, len(p.got), p.err)
			}
		}
	})
}

// conns are those of the loop.
func (l *Loop) conns() (all []*Conn) {
	for _, s := range l.table.slots {
		if c, ok := s.source.(*Conn); ok {
			all = append(all, c)
		}
	}
	return all
}

// TestConnOnStopSender: what it writes goes out "behind all that was written before, by the Sender, too", and what others
// write later is refused.
func TestConnOnStopSender(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		const size = 1 << 20
		taken := 0
		var late error
		ln := serve(t, l, ListenerConfig{Conn: ConnConfig{WriteBufferBytes: 64 << 10}}, ConnHandler{
			OnOpen: func(c *Conn) {
				_ = c.Enqueue(stretch(0, size)) // the Sender has to wait behind it
				n, err := c.Sender().Write(stretch(size, size))
				if taken = n; err != nil {
					t.Error(err)
				}
				l.Stop(-1)
			},
			OnStop: func(c *Conn) {
				c.writeRest([]byte("bye"))
				_, late = c.Sender().Write([]byte("late"))
			},
			OnDrain: func(c *Conn) {
				if rest, _ := c.Data.([]byte); rest != nil {
					c.writeRest(rest)
				}
			},
		})
		p := newPeer(t, l, ln, 0)
		p.readUntilOver(l, func() {})
		run(t, l)
		if p.read(); !bytes.Equal(p.got, append(stretch(0, size+taken), "bye"...)) || taken != size || late != ErrClosed {
			t.Errorf("%d bytes came of %d; the end is %q; the Sender answers %v", len(p.got), size+taken, p.got[max(len(p.got)-10, 0):], late)
		}
	})
}

// TestConnOnStopIsTheEnd: nobody can write behind a farewell, however long the end of the turn takes, and whoever is
// accepted meanwhile.
func TestConnOnStopIsTheEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		var told []*Conn
		tries := 0
		h := ConnHandler{
			OnOpen: func(c *Conn) {
				time.Sleep(3 * time.Millisecond)
				for _, other := range told {
					tries++
					if _, err := other.Write([]byte("late")); err != ErrClosed {
						t.Errorf("Write answers %v", err)
					}
				}
			},
			OnEnd: func(*Conn) { time.Sleep(time.Millisecond) },
			OnStop: func(c *Conn) {
				told = append(told, c)
				_, _ = c.Write([]byte("bye"))
				time.Sleep(3 * time.Millisecond)
			},
		}
		ln := serve(t, l, ListenerConfig{}, h)
		var peers []*peer
		for range 5 {
			p := newPeer(t, l, ln, 0)
			p.closeWrite()
			peers = append(peers, p)
		}
		l.Stop(-1)
		run(t, l)
		for i, p := range peers {
			if p.read(); string(p.got) != "bye" || !p.over {
				t.Errorf("peer %d has read %q, then %v", i, p.got, p.err)
			}
		}
		if len(told) != len(peers) || tries == 0 {
			t.Errorf("%d were told; %d tries to write", len(told), tries)
		}
	})
}

// "It is not called where a connection ends in another way, as by Close, by its peer, or because the grace is over."
func TestConnOnStopNot(t *testing.T) {
	for _, row := range []struct {
		name string
		h    ConnHandler
		peer func(p *peer) // what it does before
		stop func(l *Loop)
		want error // of OnClose
	}{
		{name: "Loop.Close", stop: func(l *Loop) { _ = l.Close() }, want: ErrClosed},
		{name: "Stop without grace", stop: func(l *Loop) { l.Stop(0) }, want: ErrClosed},
		{name: "closed in its last OnData", h: ConnHandler{OnData: func(c *Conn, _ []byte) { _ = c.Close() }}},
		{name: "closed by its peer", peer: func(p *peer) { p.closeWrite() }},
		{name: "its end is answered", h: ConnHandler{OnEnd: func(c *Conn) { _ = c.Close() }}, peer: func(p *peer) { p.closeWrite() }},
		{name: "the grace is over", h: ConnHandler{OnData: func(c *Conn, _ []byte) { c.Pause() }}, want: ErrClosed},
	} {
		t.Run(row.name, func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				l := newLoop(t, Config{Kernel: k})
				closes := 0
				h := row.h
				h.OnOpen = func(*Conn) {
					if row.stop != nil {
						row.stop(l)
					}
				}
				h.OnStop = func(*Conn) { t.Error("OnStop") }
				h.OnClose = func(_ *Conn, err error) {
					if closes++; err != row.want {
						t.Errorf("OnClose has %v, want %v", err, row.want)
					}
				}
				p := newPeer(t, l, serve(t, l, ListenerConfig{}, h), 0)
				p.write([]byte("request"))
				if row.peer != nil {
					row.peer(p)
				}
				if row.stop == nil {
					l.Stop(30 * time.Millisecond)
				}
				run(t, l)
				if closes != 1 {
					t.Errorf("%d calls of OnClose", closes)
				}
			})
		})
	}
}

// TestConnOnStopOthers: a connection that was dialled is told, one that is still on its way is not; one whose peer has
// ended is told, and can still write; and one that is broken is told, too, but its Write says so.
func TestConnOnStopOthers(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		heard := map[string]int{}
		told := func(who string) ConnHandler {
			return ConnHandler{
				OnEnd: func(*Conn) {},
				OnStop: func(c *Conn) {
					heard[who]++
					_, _ = c.Write([]byte("bye"))
				},
			}
		}
		dialTo(t, l, fullListener(t, newLoop(t, Config{Kernel: k})), ConnConfig{}, told("on its way"))
		ln := serve(t, l, ListenerConfig{}, told("accepted"))
		dialTo(t, l, ln, ConnConfig{}, told("dialled"))
		p := newPeer(t, l, ln, 0)
		p.closeWrite()
		l.AfterFunc(20*time.Millisecond, func() { l.Stop(-1) })
		run(t, l)
		if p.read(); string(p.got) != "bye" || !p.over {
			t.Errorf("the peer that has ended reads %q, then %v", p.got, p.err)
		}
		if heard["dialled"] != 1 || heard["accepted"] != 2 || heard["on its way"] != 0 {
			t.Errorf("told: %v", heard)
		}
	})
}

// TestConnOnStopPanics: a panic in OnStop passes through, is the only call on that connection, and costs the others their
// OnStop, not their OnClose.
func TestConnOnStopPanics(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		stops := map[*Conn]int{}
		closes := map[*Conn]error{}
		ln := serve(t, l, ListenerConfig{}, ConnHandler{
			OnStop: func(c *Conn) {
				if stops[c]++; len(stops) == 2 {
					panic("broken")
				}
			},
			OnClose: func(c *Conn, err error) { closes[c] = err },
		})
		for range 4 {
			newPeer(t, l, ln, 0)
		}
		l.AfterFunc(20*time.Millisecond, func() { l.Stop(-1) }) // when all are open
		if value, _ := recovered(func() { _ = l.Run(t.Context()) }); value != "broken" {
			t.Errorf("recovered %v", value)
		}
		if len(stops) != 2 || len(closes) != 4 || l.table.len() != 0 {
			t.Errorf("%d were told, %d heard OnClose, %d are left", len(stops), len(closes), l.table.len())
		}
		hard := 0
		for c, err := range closes {
			if stops[c] > 1 {
				t.Errorf("OnStop came %d times", stops[c])
			}
			if err == ErrClosed {
				hard++
			}
		}
		if hard != 3 {
			t.Errorf("%d were closed by the panic, want 3: %v", hard, closes)
		}
	})
}

// TestConnOnStopReplaced: the handler that the connection has then is asked.
func TestConnOnStopReplaced(t *testing.T) {
	for _, to := range []string{"another", "none"} {
		inBubble(t, func(t *testing.T, net *memsys.Net) {
			l := loopIn(t, net, Config{})
			heard := ""
			ln := serve(t, l, ListenerConfig{}, ConnHandler{
				OnData: func(c *Conn, _ []byte) {
					h := ConnHandler{OnStop: func(*Conn) { heard += "new " }, OnClose: func(*Conn, error) { heard += "close" }}
					if to == "none" {
						h.OnStop = nil
					}
					c.SetHandler(h)
				},
				OnStop: func(*Conn) { heard += "old " },
			})
			newPeer(t, l, ln, 0).write([]byte("x"))
			l.Stop(-1)
			run(t, l)
			if want := map[string]string{"another": "new close", "none": "close"}[to]; heard != want {
				t.Errorf("with %s it has heard %q, want %q", to, heard, want)
			}
		})
	}
}
