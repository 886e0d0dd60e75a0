package weir

import (
	"net/netip"
	"slices"
	"syscall"
	"testing"

	"github.com/weirnet/weir/internal/sys"
)

// turnCounts counts events by the turn in which they came.
type turnCounts struct {
	loop  *Loop
	turn  uint64
	total int
	list  []int
}

func (c *turnCounts) add() {
	if c.turn != c.loop.Turn() || len(c.list) == 0 {
		c.turn = c.loop.Turn()
		c.list = append(c.list, 0)
	}
	c.list[len(c.list)-1]++
	c.total++
}

// TestOriginal holds the numbers of datagrams per turn that event loops show which count to 32, and what
// a loop without a bound shows.
func TestOriginal(t *testing.T) {
	rows := []struct {
		name  string
		bound Bound
		// setup opens sockets whose datagrams call count, and returns how many there will be.
		setup func(t *testing.T, l *Loop, bound Bound, count func()) (total int)
		want  []int // nil: at most 32 each
	}{
		{"a backlog of 100 on one socket", Count(32), oneBacklog, []int{32, 32, 32, 4}},
		{"the first of 7 sends 100 more to its own socket", Count(32), selfSender, []int{32, 32, 32, 11}},
		{"two sockets with 100 each", Count(32), twoBacklogs, []int{64, 64, 64, 8}},
		{"a socket that another process has, too", Count(32), sharedBacklog, []int{32, 32, 32, 4}},
		{"an adopted descriptor with a stale error", Count(32), staleError, []int{32, 8}},
		{"a full receive buffer with a stale error", Count(32), staleErrorFull, nil},
		{"a backlog of 100 without a bound", Unbounded(), oneBacklog, []int{100}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				l := newLoop(t, Config{Kernel: k})
				counts := turnCounts{loop: l}
				total := 0
				total = row.setup(t, l, row.bound, func() {
					if counts.add(); counts.total == total {
						_ = l.Close()
					}
				})
				run(t, l)
				if row.want == nil {
					for _, n := range counts.list {
						if n > 32 || len(counts.list) < 2 {
							t.Errorf("datagrams by turn: %v, want at most 32 each", counts.list)
						}
					}
				} else if !slices.Equal(counts.list, row.want) {
					t.Errorf("datagrams by turn: %v, want %v", counts.list, row.want)
				}
			})
		})
	}
}

func oneBacklog(t *testing.T, l *Loop, bound Bound, count func()) int {
	u := listen(t, l, bound, func(*UDP, *Datagram) { count() })
	sendNow(t, listen(t, l, Bound{}, nil), u.LocalAddr(), 100)
	return 100
}

func twoBacklogs(t *testing.T, l *Loop, bound Bound, count func()) int {
	return oneBacklog(t, l, bound, count) + oneBacklog(t, l, bound, count)
}

func selfSender(t *testing.T, l *Loop, bound Bound, count func()) int {
	first := true
	u := listen(t, l, bound, func(u *UDP, _ *Datagram) {
		if first {
			first = false
			for range 100 {
				if err := u.Send([]byte("more"), u.LocalAddr()); err != nil {
					t.Error(err)
				}
			}
		}
		count()
	})
	sendNow(t, listen(t, l, Bound{}, nil), u.LocalAddr(), 7)
	return 107
}

func sharedBacklog(t *testing.T, l *Loop, bound Bound, count func()) int {
	u := mustListen(t, l, loopback4, UDPConfig{Bound: bound, NoGRO: true}, UDPHandler{OnDatagram: func(*UDP, *Datagram) { count() }})
	mustExport(t, u)
	sendNow(t, listen(t, l, Bound{}, nil), u.LocalAddr(), 100)
	return 100
}

// staleError is an adopted socket of which the poller tells an error that somebody else who has it takes before it is
// visited: the bound then stops a visit that has seen neither that error nor the end of the queue.
func staleError(t *testing.T, l *Loop, bound Bound, count func()) int {
	return withStaleError(t, l, bound, count, 0, 40)
}

func staleErrorFull(t *testing.T, l *Loop, bound Bound, count func()) int {
	return withStaleError(t, l, bound, count, 64<<10, 400)
}

func withStaleError(t *testing.T, l *Loop, bound Bound, count func(), buffer, n int) (total int) {
	peer := listen(t, l, Bound{}, nil)
	opener := mustDial(t, l, loopback4, peer.LocalAddr(), UDPConfig{NoGRO: true, RecvBufferBytes: buffer}, UDPHandler{})
	fd, _ := mustExport(t, opener)
	_ = opener.Close()
	var u *UDP
	// It was ready before u, so it is visited first, and does what another process would that has u's socket.
	first := listen(t, l, Bound{}, func(*UDP, *Datagram) {
		if pending, err := l.kernel.GetOption(fd, sys.SocketError); pending != int(syscall.ECONNREFUSED) || err != nil {
			t.Errorf("the pending error is %d, %v", pending, err)
		}
	})
	open := true
	u, err := l.AdoptUDP(fd, UDPConfig{Bound: bound, NoGSO: true}, UDPHandler{
		OnDatagram: func(*UDP, *Datagram) { count() },
		OnClose: func(_ *UDP, err error) {
			if open = err == ErrClosed; !open {
				t.Errorf("closed: %v", err)
				_ = l.Close()
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	sendNow(t, listen(t, l, Bound{}, nil), first.LocalAddr(), 1)
	for sent := 0; sent < n; sent += min(100, n-sent) {
		sendNow(t, peer, u.LocalAddr(), min(100, n-sent))
	}
	if err := peer.Close(); err != nil {
		t.Fatal(err)
	}
	mustSend(t, u, "to a dead port", netip.AddrPort{})
	u.flush()
	info, err := l.kernel.MemInfo(u.fd)
	if err != nil {
		t.Fatal(err)
	}
	if n > 100 == (info.Drops == 0) {
		t.Errorf("%d datagrams were dropped", info.Drops)
	}
	return n - int(info.Drops)
}
