package weir

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirnet/weir/internal/memsys"
	"github.com/weirnet/weir/internal/sys"
)

// unixName is a path for a socket of the test.
func unixName(t *testing.T, name string) string { return filepath.Join(t.TempDir(), name) }

// abstractName is a name that nobody else has.
func abstractName(t *testing.T) string {
	if runtime.GOOS != "linux" {
		t.Skip("abstract names are Linux's")
	}
	return fmt.Sprintf("@weir-test-%x", rand.Uint64())
}

func listenGram(t *testing.T, l *Loop, name string, cfg UnixgramConfig, h UnixgramHandler) *Unixgram {
	t.Helper()
	u, err := l.ListenUnixgram(name, cfg, h)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func dialGram(t *testing.T, l *Loop, local, peer string, h UnixgramHandler) *Unixgram {
	t.Helper()
	u, err := l.DialUnixgram(local, peer, UnixgramConfig{}, h)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func sendGram(t *testing.T, u *Unixgram, b, to string) {
	t.Helper()
	if err := u.Send([]byte(b), to); err != nil {
		t.Fatal(err)
	}
}

// Datagrams go there and back between names of both kinds, and tell of whom they come.
func TestUnixgramEcho(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		for name, server := range map[string]string{"path": unixName(t, "s"), "abstract": abstractName(t)} {
			for _, connected := range []bool{true, false} {
				t.Run(fmt.Sprint(name, " connected ", connected), func(t *testing.T) {
					l := newLoop(t, Config{Kernel: k})
					var heard []string
					s := listenGram(t, l, server, UnixgramConfig{MaxDatagramBytes: 8}, UnixgramHandler{
						OnDatagram: func(u *Unixgram, d *UnixDatagram) {
							heard = append(heard, fmt.Sprint(string(d.Payload), " ", d.Truncated))
							if err := u.Send(d.Payload, d.Source); err != nil {
								t.Error(err)
							}
						},
					})
					own := server + "-client"
					var answers []string
					h := UnixgramHandler{OnDatagram: func(_ *Unixgram, d *UnixDatagram) {
						if d.Source != server {
							t.Errorf("it comes from %q", d.Source)
						}
						if answers = append(answers, string(d.Payload)); len(answers) == 3 {
							_ = l.Close()
						}
					}}
					var c *Unixgram
					to := server
					if connected {
						c, to = dialGram(t, l, own, server, h), ""
					} else {
						c = listenGram(t, l, own, UnixgramConfig{}, h)
					}
					for _, b := range []string{"hello", "", "a long one"} {
						sendGram(t, c, b, to)
					}
					if s.LocalName() != server || c.LocalName() != own || connected != (c.RemoteName() == server) {
						t.Errorf("names %q, %q, %q", s.LocalName(), c.LocalName(), c.RemoteName())
					}
					run(t, l)
					if want := []string{"hello false", " false", "a long o true"}; !slices.Equal(heard, want) {
						t.Errorf("the server heard %q", heard)
					}
					if want := []string{"hello", "", "a long o"}; !slices.Equal(answers, want) {
						t.Errorf("the client heard %q", answers)
					}
					if got, want := s.Stats(), (UnixgramStats{Received: 3, ReceivedBytes: 13, Truncated: 1, Sent: 3, SentBytes: 13}); got != want {
						t.Errorf("%+v, want %+v", got, want)
					}
				})
			}
		}
	})
}

// "The descriptor is closed, and its name free, when Close returns."
func TestUnixgramClose(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		for name, own := range map[string]string{"path": unixName(t, "s"), "abstract": abstractName(t)} {
			t.Run(name, func(t *testing.T) {
				l := newLoop(t, Config{Kernel: k})
				var heard []error
				h := UnixgramHandler{OnClose: func(_ *Unixgram, err error) { heard = append(heard, err) }}
				for range 3 {
					u := listenGram(t, l, own, UnixgramConfig{}, h)
					if u.Close() != nil || u.Close() != ErrClosed || u.Send(nil, own) != ErrClosed {
						t.Error("Close")
					}
				}
				listenGram(t, l, own, UnixgramConfig{}, h)
				l.AfterFunc(0, func() { _ = l.Close() })
				run(t, l)
				if want := []error{nil, nil, nil, ErrClosed}; !slices.Equal(heard, want) {
					t.Errorf("OnClose heard %v", heard)
				}
				if err := k.backend.Kernel.UnlinkUnix(own); err != syscall.ENOENT {
					t.Errorf("the path at the end: %v", err)
				}
			})
		}
	})
}

// "Replace takes over the path of a socket that nobody has open any more": and of no other.
func TestUnixgramReplace(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		raw := k.backend.Kernel
		stale, live, other := unixName(t, "stale"), unixName(t, "live"), unixName(t, "other")
		leave := func(name string, kind sys.Kind) (fd int) {
			fd, err := raw.Socket(sys.UnixFamily, kind)
			if err == nil {
				err = raw.BindUnix(fd, name)
			}
			if err != nil {
				t.Fatal(err)
			}
			return fd
		}
		_ = raw.Close(leave(stale, sys.Unixgram))
		for _, fd := range []int{leave(live, sys.Unixgram), leave(other, sys.UnixStream)} {
			t.Cleanup(func() { _ = raw.Close(fd) })
		}
		l := newLoop(t, Config{Kernel: k})
		for _, c := range []struct {
			name    string
			replace bool
			want    error
		}{{stale, false, syscall.EADDRINUSE}, {live, true, syscall.EADDRINUSE}, {other, true, syscall.EADDRINUSE}, {stale, true, nil}} {
			u, err := l.ListenUnixgram(c.name, UnixgramConfig{Replace: c.replace}, UnixgramHandler{})
			if !errors.Is(err, c.want) {
				t.Errorf("%s, Replace %v: %v, want %v", filepath.Base(c.name), c.replace, err, c.want)
			}
			if err == nil {
				sendGram(t, u, "x", c.name)
				sendGram(t, u, "x", live)
			}
		}
	})
}

// What cannot be is said at once, with the names, and leaves nothing behind.
func TestUnixgramErrors(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		own, nobody := unixName(t, "own"), unixName(t, "nobody")
		free := unixName(t, "free")
		l := newLoop(t, Config{Kernel: k})
		u := listenGram(t, l, own, UnixgramConfig{}, UnixgramHandler{})
		connected := dialGram(t, l, free, own, UnixgramHandler{})
		big := make([]byte, 1<<24)
		dial := func(local, peer string) func() error {
			return func() error { _, err := l.DialUnixgram(local, peer, UnixgramConfig{}, UnixgramHandler{}); return err }
		}
		listen := func(name string, cfg UnixgramConfig) func() error {
			return func() error { _, err := l.ListenUnixgram(name, cfg, UnixgramHandler{}); return err }
		}
		for _, c := range []struct {
			name string
			do   func() error
			want error
			text string
		}{
			{"listen at a name that is there", listen(own, UnixgramConfig{}), syscall.EADDRINUSE, "weir: listen unixgram " + own + ": bind: "},
			{"listen without a name", listen("", UnixgramConfig{}), syscall.EINVAL, "weir: listen unixgram: bind: "},
			{"a negative size", listen(nobody, UnixgramConfig{MaxDatagramBytes: -1}), nil, "weir: listen unixgram " + nobody + ": UnixgramConfig."},
			{"a count of zero", listen(nobody, UnixgramConfig{Bound: Count(0)}), nil, "weir: listen unixgram "},
			{"dial nobody", dial("", nobody), syscall.ENOENT, "weir: dial unixgram " + nobody + ": connect: "},
			{"dial nobody from a name", dial(nobody+"2", nobody), syscall.ENOENT, "weir: dial unixgram " + nobody + "2->" + nobody + ": connect: "},
			{"dial no name", dial(nobody+"2", ""), syscall.EDESTADDRREQ, "weir: dial unixgram " + nobody + "2: connect: "},
			{"dial who hears another", dial("", free), syscall.EPERM, "weir: dial unixgram " + free + ": connect: "},
			{"send to nobody", func() error { return u.Send(nil, nobody) }, syscall.ENOENT, "weir: send unixgram " + own + "->" + nobody + ": "},
			{"send to no name", func() error { return u.Send(nil, "") }, syscall.ENOTCONN, "weir: send unixgram " + own + ": "},
			{"send too much", func() error { return connected.Send(big, "") }, syscall.EMSGSIZE, "weir: send unixgram " + free + "->" + own + ": "},
		} {
			err := c.do()
			var op *OpError
			if !errors.As(err, &op) || c.want != nil && !errors.Is(err, c.want) || !strings.HasPrefix(err.Error(), c.text) {
				t.Errorf("%s: %v, want %v, and %q", c.name, err, c.want, c.text)
			}
		}
		if n := l.table.len(); n != 2 {
			t.Errorf("%d sockets on the loop", n)
		}
		if err := k.backend.Kernel.UnlinkUnix(nobody + "2"); err != syscall.ENOENT {
			t.Errorf("the path of a socket that was not opened: %v", err)
		}
		if s := u.Stats(); s.Errors != 2 || s.Sent != 0 {
			t.Errorf("%+v", s)
		}
		_ = u.Close()
		if err := connected.Send(nil, ""); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("to a peer that is closed: %v", err)
		}
		_ = l.Close()
		if err := listen(nobody, UnixgramConfig{})(); !errors.Is(err, ErrClosed) {
			t.Errorf("after the end: %v", err)
		}
	})
}

// "a receiver that does not keep up makes Send answer ErrWouldBlock": nothing is lost, and OnDrain comes when there is
// room, without turns meanwhile where the poller tells.
func TestUnixgramDrains(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		for _, connected := range []bool{true, false} {
			t.Run(fmt.Sprint("connected ", connected), func(t *testing.T) {
				const n = 1000
				name := unixName(t, "s")
				l := newLoop(t, Config{Kernel: k})
				next, sent, drains := 0, 0, 0
				s := listenGram(t, l, name, UnixgramConfig{}, UnixgramHandler{OnDatagram: func(u *Unixgram, d *UnixDatagram) {
					if string(d.Payload) != fmt.Sprint(next) {
						t.Errorf("%q where %d was due", d.Payload, next)
					}
					if next++; next == n {
						_ = l.Close()
					}
				}})
				to := name
				send := func(u *Unixgram) {
					for ; sent < n; sent++ {
						if err := u.Send(fmt.Append(nil, sent), to); err != nil {
							if err != ErrWouldBlock {
								t.Error(err)
							}
							return
						}
					}
				}
				h := UnixgramHandler{OnDrain: func(u *Unixgram) { drains++; send(u) }}
				var c *Unixgram
				if connected {
					to = ""
					c = dialGram(t, l, "", name, h)
				} else {
					c = listenGram(t, l, name+"c", UnixgramConfig{}, h)
				}
				s.Pause()
				send(c)
				if sent == 0 || sent == n {
					t.Errorf("%d were sent to who does not read", sent)
				}
				l.AfterFunc(40*time.Millisecond, func() {
					if turns := l.Turn(); turns > 20 {
						t.Errorf("%d turns while nothing could happen", turns)
					}
					if connected && drains > 0 {
						t.Error("OnDrain before there was room")
					}
					s.Resume()
				})
				run(t, l)
				if st := c.Stats(); st.Sent != n || st.Refused == 0 || drains == 0 || next != n {
					t.Errorf("%+v, %d drains, %d received", st, drains, next)
				}
			})
		}
	})
}

// "OnDrain comes for another try: after a millisecond, and after longer and longer, up to 50 ms".
func TestUnixgramRetries(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{})
		s := listenGram(t, l, "/s", UnixgramConfig{}, UnixgramHandler{})
		s.Pause()
		last := time.Now()
		var waits []time.Duration
		try := func(u *Unixgram) {
			for u.Send([]byte("x"), "/s") == nil {
			}
		}
		u := listenGram(t, l, "/c", UnixgramConfig{}, UnixgramHandler{OnDrain: func(u *Unixgram) {
			waits = append(waits, time.Since(last))
			last = time.Now()
			if len(waits) == 9 {
				s.Resume()
				l.AfterFunc(time.Millisecond, func() { last = time.Now(); s.Pause(); try(u) })
				return
			}
			if len(waits) < 11 {
				try(u)
			}
		}})
		try(u)
		runFor(t, l, 10*time.Second)
		var want []time.Duration
		for _, ms := range []int{1, 2, 4, 8, 16, 32, 50, 50, 50, 1, 2} {
			want = append(want, time.Duration(ms)*time.Millisecond)
		}
		if !slices.Equal(waits, want) {
			t.Errorf("OnDrain after %v, want %v", waits, want)
		}
	})
}

// A poller that says that there is room where there is none is not believed for ever.
func TestUnixgramNoSpin(t *testing.T) {
	inBubble(t, func(t *testing.T, net *memsys.Net) {
		l := loopIn(t, net, Config{Faults: plan(t, "send=EAGAIN")})
		listenGram(t, l, "/s", UnixgramConfig{}, UnixgramHandler{})
		drains := 0
		u := dialGram(t, l, "", "/s", UnixgramHandler{OnDrain: func(u *Unixgram) { drains++; _ = u.Send(nil, "") }})
		_ = u.Send(nil, "")
		runFor(t, l, time.Second)
		if drains < 20 || drains > 40 || l.Turn() > 100 {
			t.Errorf("%d times OnDrain in %d turns", drains, l.Turn())
		}
	})
}

// An error of a receive is told, within a limit, and one that stays does not keep the loop busy.
func TestUnixgramReceiveErrors(t *testing.T) {
	for _, c := range []struct {
		plan      string
		told      int
		delivered int
		turns     uint64
	}{
		{"recv#1=ECONNRESET", 1, 1, 20},
		{"recv#1x30=ECONNRESET", 30, 1, 60},
		{"recv=EIO", 25, 0, 80},
	} {
		t.Run(c.plan, func(t *testing.T) {
			inBubble(t, func(t *testing.T, net *memsys.Net) {
				l := loopIn(t, net, Config{Faults: plan(t, c.plan)})
				delivered, told := 0, 0
				u := listenGram(t, l, "/s", UnixgramConfig{}, UnixgramHandler{
					OnDatagram: func(*Unixgram, *UnixDatagram) { delivered++ },
					OnError: func(u *Unixgram, err error) {
						var op *OpError
						if told++; !errors.As(err, &op) || op.Op != "receive" || op.SourceName != "/s" {
							t.Errorf("OnError: %v", err)
						}
					},
				})
				sendGram(t, u, "x", "/s")
				runFor(t, l, 20*time.Second)
				if delivered != c.delivered || told < min(c.told, 16) || told > c.told+20 || l.Turn() > c.turns {
					t.Errorf("%d delivered, %d errors told, %d turns", delivered, told, l.Turn())
				}
				if u.Stats().Errors < uint64(told) {
					t.Errorf("%+v", u.Stats())
				}
			})
		})
	}
}

// A descriptor that is gone ends the socket.
func TestUnixgramDies(t *testing.T) {
	for _, p := range []string{"recv#1=EBADF", "send#2=ENOTSOCK", "modify#1=ENOMEM"} {
		t.Run(p, func(t *testing.T) {
			inBubble(t, func(t *testing.T, net *memsys.Net) {
				l := loopIn(t, net, Config{Faults: plan(t, p)})
				var heard []error
				u := listenGram(t, l, "/s", UnixgramConfig{}, UnixgramHandler{
					OnDatagram: func(u *Unixgram, d *UnixDatagram) { _ = u.Send(nil, "/s"); u.Pause() },
					OnClose:    func(_ *Unixgram, err error) { heard = append(heard, err) },
				})
				sendGram(t, u, "x", "/s")
				runFor(t, l, time.Second)
				var op *OpError
				if len(heard) != 1 || !errors.As(heard[0], &op) {
					t.Errorf("OnClose heard %v", heard)
				}
			})
		})
	}
}

// A Stop delivers what is queued, also to one that is paused, and ends a sender that waits.
func TestUnixgramStops(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		name := unixName(t, "s")
		l := newLoop(t, Config{Kernel: k})
		var heard []error
		onClose := func(_ *Unixgram, err error) { heard = append(heard, err) }
		got, sent := 0, 0
		s := listenGram(t, l, name, UnixgramConfig{}, UnixgramHandler{
			OnDatagram: func(*Unixgram, *UnixDatagram) { got++ }, OnClose: onClose,
		})
		s.Pause()
		c := dialGram(t, l, "", name, UnixgramHandler{OnDrain: func(*Unixgram) {}, OnClose: onClose})
		for c.Send([]byte("x"), "") == nil {
			sent++
		}
		l.AfterFunc(time.Millisecond, func() { l.Stop(-1) })
		run(t, l)
		if got != sent || sent == 0 || !slices.Equal(heard, []error{nil, nil}) {
			t.Errorf("%d of %d delivered, OnClose heard %v", got, sent, heard)
		}
	})
}

// One that sends to itself without an end is bounded like any other, and by Count exactly; paused in a callback, it
// stops at once.
func TestUnixgramBound(t *testing.T) {
	for _, bound := range []Bound{Share(), Count(3)} {
		t.Run(bound.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, net *memsys.Net) {
				const cost = 10 * time.Microsecond
				l := loopIn(t, net, Config{})
				e := openEndless(t, l, Share(), cost)
				calls, inTurn, turn, most := 0, 0, uint64(0), 0
				u := listenGram(t, l, "/s", UnixgramConfig{Bound: bound}, UnixgramHandler{OnDatagram: func(u *Unixgram, d *UnixDatagram) {
					time.Sleep(cost)
					if calls++; l.Turn() != turn {
						inTurn, turn = 0, l.Turn()
					}
					inTurn++
					most = max(most, inTurn)
					_ = u.Send(d.Payload, "/s")
				}})
				for range 5 {
					sendGram(t, u, "x", "/s")
				}
				l.AfterFunc(50*time.Millisecond, func() {
					u.Pause()
					before := calls
					l.AfterFunc(time.Millisecond, func() {
						if calls != before {
							t.Errorf("%d calls while it was paused", calls-before)
						}
						u.Resume()
					})
				})
				runFor(t, l, 100*time.Millisecond)
				if bound == Count(3) {
					if most > 3*int(minShare/cost) { // rounds in a turn
						t.Errorf("%d datagrams in a turn", most)
					}
				} else if part := float64(calls) / float64(calls+e.calls); part < 0.4 || part > 0.6 {
					t.Errorf("it has had %.2f of the calls: %d, and the other %d", part, calls, e.calls)
				}
				if calls < 100 || e.calls < 100 {
					t.Errorf("%d and %d calls", calls, e.calls)
				}
			})
		})
	}
}
