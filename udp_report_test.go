package weir

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/weirnet/weir/internal/memsys"
)

// deadPort is an address at which nobody listens: one that was bound a moment ago.
func deadPort(t *testing.T, l *Loop, ip string) netip.AddrPort {
	t.Helper()
	u := mustListen(t, l, netip.AddrPortFrom(netip.MustParseAddr(ip), 0), UDPConfig{}, UDPHandler{})
	addr := u.LocalAddr()
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
	return addr
}

// icmpErrors collects what OnError hears.
type icmpErrors struct {
	t     *testing.T
	count map[netip.AddrPort]int
	calls int
}

func (c *icmpErrors) onError(_ *UDP, err error) {
	var e *ICMPError
	if !errors.As(err, &e) {
		c.t.Errorf("OnError(%v), want an ICMPError", err)
		return
	}
	if e.Errno != syscall.ECONNREFUSED || !errors.Is(err, syscall.ECONNREFUSED) || e.Offender != e.Peer.Addr() || e.MTU != 0 {
		c.t.Errorf("OnError(%+v)", *e)
	}
	if c.count == nil {
		c.count = map[netip.AddrPort]int{}
	}
	c.count[e.Peer] += e.Count
	c.calls++
}

// TestUDPReports holds "also of a socket without a peer", of each family, and that reports are folded.
func TestUDPReports(t *testing.T) {
	for _, row := range []struct{ name, local, dead string }{
		{"IPv4", "127.0.0.1:0", "127.0.0.1"},
		{"IPv6", "[::1]:0", "::1"},
		{"IPv4 peer of both", "[::]:0", "127.0.0.1"},
		{"IPv6 peer of both", "[::]:0", "::1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				l := newLoop(t, Config{Kernel: k, NoGSO: true}) // a train has one report
				if row.local[0] == '[' {
					needIPv6(t, l)
				}
				a, b := deadPort(t, l, row.dead), deadPort(t, l, row.dead)
				heard := icmpErrors{t: t}
				u := mustListen(t, l, netip.MustParseAddrPort(row.local), UDPConfig{Reports: true}, UDPHandler{
					OnError: func(u *UDP, err error) {
						if heard.onError(u, err); heard.count[a] == 3 && heard.count[b] == 1 {
							_ = l.Close()
						}
					}})
				for _, to := range []netip.AddrPort{a, b, a, a} {
					mustSend(t, u, "x", to)
				}
				run(t, l)
				if heard.calls > 4 || len(heard.count) != 2 {
					t.Errorf("%d calls for %v", heard.calls, heard.count)
				}
				if s := u.Stats(); s.Sent != 4 || s.SendLost != 0 || s.Reports != 4 {
					t.Errorf("sent %d, lost %d, reports %d; want 4, 0, 4", s.Sent, s.SendLost, s.Reports)
				}
			})
		})
	}
}

// TestUDPReportsOfOthers: a dead peer costs no live one a datagram, in one batch or one after the other.
func TestUDPReportsOfOthers(t *testing.T) {
	for _, reports := range []bool{true, false} {
		for _, deadAt := range []int{0, 1, 5} {
			t.Run(fmt.Sprintf("reports %v, dead at %d", reports, deadAt), func(t *testing.T) {
				onEachKernel(t, func(t *testing.T, k *Kernel) {
					l := newLoop(t, Config{Kernel: k})
					dead := deadPort(t, l, "127.0.0.1")
					heard := icmpErrors{t: t}
					got := 0
					live := listen(t, l, Bound{}, func(*UDP, *Datagram) { got++ })
					u := mustListen(t, l, loopback4, UDPConfig{Reports: reports}, UDPHandler{OnError: heard.onError})
					for i := range 11 {
						to := live.LocalAddr()
						if i == deadAt {
							to = dead
						}
						mustSend(t, u, fmt.Sprint(i), to)
					}
					later(l, func() {
						mustSend(t, u, "first after the report", live.LocalAddr())
						later(l, func() { _ = l.Close() })
					})
					run(t, l)
					if got != 11 {
						t.Errorf("the live peer got %d datagrams, want 11", got)
					}
					want := 0
					if reports {
						want = 1
					}
					if heard.calls != want || heard.count[dead] != want {
						t.Errorf("%d reports, %v; want %d of the dead peer", heard.calls, heard.count, want)
					}
				})
			})
		}
	}
}

// later runs fn when what was sent has arrived: when nothing has moved for 20 ms, and the loop has looked since.
func later(l *Loop, fn func()) {
	moved := func() uint64 {
		s := l.Stats().UDP
		return s.Received + s.Injected + s.Sent + s.SendLost + s.Reports + s.ReceiveErrors + uint64(s.Undelivered+s.Queued)
	}
	before := moved()
	look := func() {
		if moved() != before {
			later(l, fn)
			return
		}
		fn()
	}
	// Where the machine stood still, the timer is due before what has arrived meanwhile was seen.
	l.AfterFunc(20*time.Millisecond, func() { l.NextTurn(func() { l.NextTurn(look) }) })
}

// TestUDPReportsBesideData: 64 reports and 16 datagrams a turn, for 64 turns. Reports take room from
// datagrams until they are taken out of the error queue. Under Share, on a clock that the handler alone moves, no turn
// is longer than a share and what goes with it.
func TestUDPReportsBesideData(t *testing.T) {
	t.Run("share", func(t *testing.T) {
		inBubble(t, func(t *testing.T, net *memsys.Net) {
			l := reportsBesideData(t, NewKernel(net.Backend()), Share(), func() { time.Sleep(time.Microsecond) })
			s := l.Stats()
			if longest := s.TurnLength.Quantile(1); longest > 2*minShare {
				t.Errorf("a turn took %v", longest)
			}
		})
	})
	t.Run("count:32", func(t *testing.T) {
		onEachKernel(t, func(t *testing.T, k *Kernel) { reportsBesideData(t, k, Count(32), func() {}) })
	})
}

func reportsBesideData(t *testing.T, k *Kernel, bound Bound, handle func()) *Loop {
	const turns, reports, datagrams = 64, 64, 16
	l := newLoop(t, Config{Kernel: k, NoGSO: true})
	dead := deadPort(t, l, "127.0.0.1")
	heard := icmpErrors{t: t}
	got := 0
	u := mustListen(t, l, loopback4, UDPConfig{Bound: bound, Reports: true}, UDPHandler{
		OnDatagram: func(*UDP, *Datagram) { got++; handle() },
		OnError:    heard.onError,
	})
	from := listen(t, l, Bound{}, nil)
	turn := 0
	var next func()
	next = func() {
		if turn++; turn > turns {
			later(l, func() { _ = l.Close() })
			return
		}
		for range reports {
			mustSend(t, u, "x", dead)
		}
		u.flush()
		sendNow(t, from, u.LocalAddr(), datagrams)
		l.NextTurn(next)
	}
	l.NextTurn(next)
	run(t, l)
	s := u.Stats()
	if got != turns*datagrams || s.KernelDropped != 0 {
		t.Errorf("got %d of %d datagrams, %d dropped", got, turns*datagrams, s.KernelDropped)
	}
	if heard.count[dead] == 0 || s.Reports != turns*reports || s.ReportsDropped != 0 {
		t.Errorf("told of %d reports; %d taken, %d dropped, of %d", heard.count[dead], s.Reports, s.ReportsDropped, turns*reports)
	}
	return l
}

// TestUDPReportEcho: a handler that answers each report by another datagram for the dead peer feeds itself, but
// starves nobody: a timer of 20 ms keeps its time.
func TestUDPReportEcho(t *testing.T) {
	const cost = 100 * time.Microsecond
	reportEcho := func(t *testing.T, k *Kernel, handle func()) *Loop {
		l := newLoop(t, Config{Kernel: k})
		dead := deadPort(t, l, "127.0.0.1")
		reports, fired := 0, 0
		u := mustListen(t, l, loopback4, UDPConfig{Reports: true}, UDPHandler{OnError: func(u *UDP, err error) {
			reports++
			handle()
			if fired < 5 { // else the loop is closed, and tells of what it had before
				mustSend(t, u, "again", dead)
			}
		}})
		mustSend(t, u, "x", dead)
		l.Every(20*time.Millisecond, func() {
			if fired++; fired == 5 {
				_ = l.Close()
			}
		})
		run(t, l)
		if reports < 5 {
			t.Errorf("%d reports", reports)
		}
		return l
	}
	t.Run("memory", func(t *testing.T) {
		inBubble(t, func(t *testing.T, net *memsys.Net) {
			l := reportEcho(t, NewKernel(net.Backend()), func() { time.Sleep(cost) })
			s := l.Stats()
			if lag := s.TimerLag.Quantile(1); lag > 2*cost {
				t.Errorf("the timer came up to %v late, want two callbacks at most", lag)
			}
		})
	})
	t.Run("kernel", func(t *testing.T) { reportEcho(t, realKernel(t), func() {}) })
}

// TestUDPReportsUnheard: without OnError nothing is closed, nothing spins, and the counters tell.
func TestUDPReportsUnheard(t *testing.T) {
	for _, paused := range []bool{false, true} {
		t.Run(fmt.Sprintf("paused %v", paused), func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				l := newLoop(t, Config{Kernel: k, NoGSO: true})
				dead := deadPort(t, l, "127.0.0.1")
				u := mustListen(t, l, loopback4, UDPConfig{Reports: true}, UDPHandler{})
				if paused {
					u.Pause()
				}
				for range 5 {
					mustSend(t, u, "x", dead)
				}
				var before uint64
				later(l, func() {
					before = l.Turn()
					l.AfterFunc(50*time.Millisecond, func() { _ = l.Close() })
				})
				run(t, l)
				if s := u.Stats(); s.Reports != 5 {
					t.Errorf("%d reports, want 5", s.Reports)
				}
				if turns := l.Turn() - before; turns > 3 {
					t.Errorf("%d turns while nothing happened", turns)
				}
			})
		})
	}
}

// TestUDPReportWithoutEntry: a report that finds the receive buffer full leaves an error and no entry in the error
// queue. It is read once, and nothing spins.
func TestUDPReportWithoutEntry(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k, NoGSO: true})
		dead := deadPort(t, l, "127.0.0.1")
		var told []error
		got := 0
		u := mustListen(t, l, loopback4, UDPConfig{Reports: true, RecvBufferBytes: 4096}, UDPHandler{
			OnDatagram: func(*UDP, *Datagram) { got++ },
			OnError:    func(_ *UDP, err error) { told = append(told, err) },
		})
		u.Pause()
		sendNow(t, listen(t, l, Bound{}, nil), u.LocalAddr(), 100)
		mustSend(t, u, "x", dead)
		var before uint64
		later(l, func() {
			before = l.Turn()
			l.AfterFunc(50*time.Millisecond, func() {
				if turns := l.Turn() - before; turns > 3 {
					t.Errorf("%d turns while nothing happened", turns)
				}
				u.Resume()
				later(l, func() { _ = l.Close() })
			})
		})
		run(t, l)
		s := u.Stats()
		if len(told) != 1 || !errors.Is(told[0], syscall.ECONNREFUSED) || s.Reports != 0 {
			t.Errorf("told of %v; %d reports, want an error without a report", told, s.Reports)
		}
		if got == 0 || uint64(got)+s.KernelDropped != 100 {
			t.Errorf("got %d, dropped %d of 100", got, s.KernelDropped)
		}
	})
}

// TestReportTable holds the limit of kinds that wait, and folding.
func TestReportTable(t *testing.T) {
	t.Parallel()
	var table reportTable
	kind := func(i int) ICMPError {
		errno := syscall.ECONNREFUSED
		if i%2 == 1 {
			errno = syscall.EHOSTUNREACH
		}
		return ICMPError{Peer: netip.AddrPortFrom(netip.IPv6Loopback(), uint16(i/2+1)), Errno: errno, Count: 1}
	}
	for round := range 3 {
		for i := range maxReported {
			if !table.fold(kind(i)) {
				t.Errorf("round %d: no room for kind %d", round, i)
			}
		}
	}
	if table.fold(kind(maxReported)) {
		t.Error("there is room for one kind more")
	}
	for i := range maxReported {
		want := kind(i)
		want.Count = 3
		if got := table.waiting.pop(); *got != want {
			t.Errorf("kind %d: %+v, want %+v", i, *got, want)
		}
	}
	if !table.fold(kind(maxReported)) {
		t.Error("once told, there is no room")
	}
}

// TestUDPClientVanishes: a client that closes before its reply comes costs the server nothing but that reply: it goes
// on for others, whether it asks for reports and hears of errors or not.
func TestUDPClientVanishes(t *testing.T) {
	for _, reports := range []bool{false, true} {
		for _, heard := range []bool{false, true} {
			t.Run(fmt.Sprintf("reports %v, heard %v", reports, heard), func(t *testing.T) {
				onEachKernel(t, func(t *testing.T, k *Kernel) {
					l := newLoop(t, Config{Kernel: k})
					told := 0
					h := UDPHandler{
						OnDatagram: func(u *UDP, d *Datagram) { _ = u.Reply(d, d.Payload) },
						OnClose: func(_ *UDP, err error) {
							if err != ErrClosed {
								t.Errorf("closed: %v", err)
							}
						},
					}
					if heard {
						h.OnError = func(_ *UDP, err error) {
							if told++; !errors.Is(err, syscall.ECONNREFUSED) {
								t.Errorf("told of %v", err)
							}
						}
					}
					server := mustListen(t, l, loopback4, UDPConfig{Reports: reports}, h)
					const clients = 5
					for range clients {
						c := mustDial(t, l, netip.AddrPort{}, server.LocalAddr(), UDPConfig{}, UDPHandler{})
						mustSend(t, c, "ping", netip.AddrPort{})
						if err := c.Close(); err != nil {
							t.Fatal(err)
						}
					}
					got := 0
					c := mustDial(t, l, netip.AddrPort{}, server.LocalAddr(), UDPConfig{}, UDPHandler{OnDatagram: func(*UDP, *Datagram) { got++ }})
					for range 3 {
						mustSend(t, c, "ping", netip.AddrPort{})
					}
					later(l, func() { _ = l.Close() })
					run(t, l)
					if got != 3 || (told > 0) != (reports && heard) {
						t.Errorf("got %d replies of 3, told of %d errors", got, told)
					}
				})
			})
		}
	}
}
