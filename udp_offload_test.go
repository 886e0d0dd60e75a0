package weir

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"testing"

	"github.com/weirnet/weir/internal/memsys"
	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
)

// picky is a kernel that refuses some messages.
type picky struct {
	sys.Kernel
	refuse func(m *sys.Message) error
	sends  int // calls
}

func (k *picky) Send(fd int, b *sys.SendBatch, from, to int) (int, error) {
	k.sends++
	for i := from; i < to; i++ {
		err := k.refuse(&b.Msgs[i])
		switch {
		case err != nil && i == from:
			return 0, err
		case err != nil:
			return k.Kernel.Send(fd, b, from, i)
		}
	}
	return k.Kernel.Send(fd, b, from, to)
}

// onEachPicky runs a test on each kernel, with a hand on what it sends.
func onEachPicky(t *testing.T, test func(t *testing.T, kernel *Kernel, k *picky)) {
	run := func(b poll.Backend) func(t *testing.T) {
		return func(t *testing.T) {
			k := &picky{Kernel: b.Kernel}
			b.Kernel = k
			test(t, NewKernel(b), k)
		}
	}
	t.Run("memory", run(memsys.New().Backend()))
	t.Run("kernel", run(realKernel(t).backend))
}

// needGSO skips a test where trains are switched off or unknown.
func needGSO(t *testing.T, u *UDP) {
	t.Helper()
	if !u.segment {
		t.Skip("no GSO here, or switched off")
	}
}

// numbered is datagram i of a size: numbered, so that order and content can be seen.
func numbered(i, size int) []byte {
	b := bytes.Repeat([]byte{byte(i * 7)}, size)
	copy(b, fmt.Sprintf("%04d", i))
	return b
}

// trainRun sends datagrams of given sizes from one socket to another and checks that all arrive, in order.
type trainRun struct {
	kernel   *Kernel
	cfg      Config
	from, to UDPConfig
	sizes    []int
	options  SendOptions

	errors []error // OnError of the sender
	sent   UDPStats
	got    UDPStats
	paths  FastPaths // of the sender at the end
}

func (r *trainRun) run(t *testing.T, lost int) {
	t.Helper()
	r.cfg.Kernel = r.kernel
	l := newLoop(t, r.cfg)
	r.to.RecvBufferBytes = 4 << 20
	next := 0
	arrived := func(_ *UDP, d *Datagram) {
		for ; next < len(r.sizes) && !bytes.Equal(d.Payload, numbered(next, r.sizes[next])); next++ {
			lost--
		}
		next++
		if lost < 0 {
			t.Fatalf("a datagram of %d bytes is none that was expected", len(d.Payload))
		}
	}
	to := mustListen(t, l, loopback4, r.to, UDPHandler{OnDatagram: arrived})
	from := mustListen(t, l, loopback4, r.from, UDPHandler{
		OnError: func(_ *UDP, err error) { r.errors = append(r.errors, err) },
	})
	if r.cfg.NoGSO || r.from.NoGSO {
		if from.segment {
			t.Error("GSO is on")
		}
	} else {
		needGSO(t, from)
	}
	for i, size := range r.sizes {
		if err := from.SendWith(numbered(i, size), to.LocalAddr(), r.options); err != nil {
			t.Fatal(err)
		}
	}
	later(l, func() {
		r.sent, r.got, r.paths = from.Stats(), to.Stats(), from.Stats().Paths
		_ = l.Close()
	})
	run(t, l)
	if next+lost < len(r.sizes) {
		t.Errorf("%d of %d datagrams arrived, %d may be lost", next, len(r.sizes), lost)
	}
}

func repeat(size, n int) []int {
	sizes := make([]int, n)
	for i := range sizes {
		sizes[i] = size
	}
	return sizes
}

// TestUDPTrains: datagrams of a size to one destination go to the kernel as one, and come as one where the receiver
// takes that, and nobody can tell.
func TestUDPTrains(t *testing.T) {
	for _, row := range []struct {
		name   string
		sizes  []int
		trains bool
		calls  uint64
	}{
		{"one", repeat(1200, 1), false, 1},
		{"two", repeat(1200, 2), true, 1},
		{"64", repeat(100, 64), true, 1},
		{"65: 64 segments are the most", repeat(100, 65), true, 1},
		{"a shorter one ends a train", []int{1200, 1200, 700, 1200, 1200}, true, 1},
		{"a longer one begins another", []int{700, 700, 1200, 1200}, true, 1},
		{"empty ones stay alone", repeat(4, 1), false, 1},
		{"as large as a train may be", repeat(1400, 47), true, 1},
		{"200", repeat(1200, 200), true, 1},
		{"large ones", repeat(30_000, 5), true, 1},
		{"largest", repeat(65_507, 2), false, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, gro := range []bool{true, false} {
				t.Run(fmt.Sprintf("GRO %v", gro), func(t *testing.T) {
					onEachKernel(t, func(t *testing.T, k *Kernel) {
						r := trainRun{kernel: k, sizes: row.sizes, to: UDPConfig{NoGRO: !gro}}
						r.run(t, 0)
						n := uint64(len(row.sizes))
						if r.sent.Sent != n || r.sent.SendCalls > row.calls+1 || (r.sent.SentJoined > 0) != row.trains {
							t.Errorf("sent %d in %d calls, %d in trains", r.sent.Sent, r.sent.SendCalls, r.sent.SentJoined)
						}
						if r.got.Received != n || (r.got.ReceivedJoined > 0) != (row.trains && r.got.Paths.GRO) {
							t.Errorf("received %d, %d in trains", r.got.Received, r.got.ReceivedJoined)
						}
						if len(r.errors) > 0 {
							t.Error(r.errors)
						}
					})
				})
			}
		})
	}
}

// TestUDPTrainsOff holds the switches.
func TestUDPTrainsOff(t *testing.T) {
	for name, r := range map[string]trainRun{
		"Config.NoGSO":    {cfg: Config{NoGSO: true}},
		"UDPConfig.NoGSO": {from: UDPConfig{NoGSO: true}},
	} {
		t.Run(name, func(t *testing.T) {
			onEachPicky(t, func(t *testing.T, kernel *Kernel, k *picky) {
				k.refuse = func(m *sys.Message) error {
					if m.Control != (sys.Control{}) {
						t.Errorf("a message has %+v", m.Control)
					}
					return nil
				}
				r.kernel, r.sizes = kernel, repeat(1200, 20)
				r.run(t, 0)
				if r.sent.SentJoined != 0 || r.got.ReceivedJoined != 0 || r.paths.GSO {
					t.Errorf("%d went joined, %d came joined", r.sent.SentJoined, r.got.ReceivedJoined)
				}
			})
		})
	}
	for name, r := range map[string]trainRun{
		"Config.NoGRO":    {cfg: Config{NoGRO: true}},
		"UDPConfig.NoGRO": {to: UDPConfig{NoGRO: true}},
	} {
		t.Run(name, func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				r.kernel, r.sizes = k, repeat(1200, 20)
				r.run(t, 0)
				if r.got.ReceivedJoined != 0 || r.got.Paths.GRO {
					t.Errorf("%d came joined, GRO %v", r.got.ReceivedJoined, r.got.Paths.GRO)
				}
			})
		})
	}
}

// TestUDPTrainCut: a train of 42,500 bytes arrives whole where 24,000 bytes of a datagram are delivered.
func TestUDPTrainCut(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		r := trainRun{kernel: k, sizes: repeat(850, 50), to: UDPConfig{MaxDatagramBytes: 24_000}}
		r.run(t, 0)
		if r.got.Truncated != 0 {
			t.Errorf("%d truncated", r.got.Truncated)
		}
	})
}

// TestUDPTrainRefused: where the kernel refuses a train, its datagrams go out singly, at once, and later ones to that
// destination singly from the start.
func TestUDPTrainRefused(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EIO, syscall.EINVAL, syscall.EMSGSIZE} {
		t.Run(errno.Error(), func(t *testing.T) {
			onEachPicky(t, func(t *testing.T, kernel *Kernel, k *picky) {
				refused := 0
				k.refuse = func(m *sys.Message) error {
					if m.Control.Segment > 0 {
						refused++
						return errno
					}
					return nil
				}
				var log strings.Builder
				r := trainRun{kernel: kernel, sizes: repeat(1200, 200), from: UDPConfig{MaxQueuedSends: 2000}}
				r.cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
				r.run(t, 0)
				if r.sent.Sent != 200 || r.sent.SendLost != 0 || r.sent.SentJoined != 0 || len(r.errors) > 0 {
					t.Errorf("sent %d, lost %d, joined %d, errors %v", r.sent.Sent, r.sent.SendLost, r.sent.SentJoined, r.errors)
				}
				if r.sent.SendErrors.Offload == 0 || refused == 0 {
					t.Errorf("%d refused, counted %d", refused, r.sent.SendErrors.Offload)
				}
				if n := strings.Count(log.String(), "path=gso"); n != 1 {
					t.Errorf("logged %d times, want once:\n%s", n, &log)
				}
			})
		})
	}
}

// TestUDPTrainRefusedOnce: what is queued after the refusal is not joined again for that destination, but for
// another.
func TestUDPTrainRefusedOnce(t *testing.T) {
	onEachPicky(t, func(t *testing.T, kernel *Kernel, k *picky) {
		l := newLoop(t, Config{Kernel: kernel})
		a, b := listen(t, l, Bound{}, nil), mustListen(t, l, addrPort("127.0.0.2:0"), UDPConfig{}, UDPHandler{})
		u := mustListen(t, l, addrPort("0.0.0.0:0"), UDPConfig{}, UDPHandler{})
		needGSO(t, u)
		joined := map[string]int{}
		k.refuse = func(m *sys.Message) error {
			if m.Control.Segment > 0 {
				joined[m.Addr.Addr().String()]++
				if m.Addr == a.LocalAddr() {
					return syscall.EIO
				}
			}
			return nil
		}
		for range 3 {
			for _, to := range []*UDP{a, b} {
				for range 10 {
					mustSend(t, u, "same size", to.LocalAddr())
				}
			}
			u.flush()
		}
		if joined["127.0.0.1"] != 1 || joined["127.0.0.2"] != 3 {
			t.Errorf("trains tried: %v; want 1 to the first, 3 to the second", joined)
		}
	})
}

// TestUDPTrainTooLarge: where the single datagrams are too large as well, they are reported, and GSO is not to blame.
func TestUDPTrainTooLarge(t *testing.T) {
	onEachPicky(t, func(t *testing.T, kernel *Kernel, k *picky) {
		k.refuse = func(m *sys.Message) error {
			if len(m.Buf) > 1000 {
				return syscall.EMSGSIZE
			}
			return nil
		}
		r := trainRun{kernel: kernel, sizes: repeat(1200, 10)}
		r.run(t, 10)
		if r.sent.SendErrors.Size != 10 || r.sent.SendLost != 10 || !r.paths.GSO {
			t.Errorf("%+v, GSO %v", r.sent.SendErrors, r.paths.GSO)
		}
		var e *SizeError
		if len(r.errors) != 10 || !errors.As(r.errors[0], &e) || e.Bytes != 1200 {
			t.Errorf("errors %v", r.errors)
		}
	})
}

// TestUDPTrafficClassRefused: kernels that answer EIO to the control message of ECN get the datagrams without,
// single or in trains.
func TestUDPTrafficClassRefused(t *testing.T) {
	for name, sizes := range map[string][]int{"one": repeat(100, 1), "different sizes": {1, 2, 3, 4}, "train": repeat(1200, 30)} {
		t.Run(name, func(t *testing.T) {
			onEachPicky(t, func(t *testing.T, kernel *Kernel, k *picky) {
				refused := 0
				k.refuse = func(m *sys.Message) error {
					if m.Control.HasTrafficClass {
						refused++
						return syscall.EIO
					}
					return nil
				}
				r := trainRun{kernel: kernel, sizes: sizes, options: SendOptions{ECN: ECT0}}
				if name != "train" {
					r.cfg.NoGSO = true
				}
				r.run(t, 0)
				if refused == 0 || r.sent.SendErrors.Offload == 0 || r.sent.SendLost != 0 {
					t.Errorf("%d refused; %+v", refused, r.sent.SendErrors)
				}
			})
		})
	}
}

// TestUDPSendErrorsByClass reaches every class of send errors, each of which has its counter, and sees what is told.
func TestUDPSendErrorsByClass(t *testing.T) {
	for _, row := range []struct {
		errno syscall.Errno
		times int // negative: always
		want  SendErrors
		lost  uint64
	}{
		{syscall.EAGAIN, 1, SendErrors{Wait: 1}, 0},
		{syscall.ECONNREFUSED, 1, SendErrors{Stale: 1}, 0},
		{syscall.ECONNREFUSED, 2, SendErrors{Stale: 1, Lost: 1}, 1},
		{syscall.EHOSTUNREACH, 1, SendErrors{Stale: 1}, 0},
		{syscall.ENETUNREACH, -1, SendErrors{Stale: 5, Lost: 5}, 5},
		{syscall.EMSGSIZE, -1, SendErrors{Stale: 5, Size: 5}, 5},
		{syscall.EPERM, 1, SendErrors{Lost: 1}, 1},
		{syscall.EPERM, -1, SendErrors{Lost: 5}, 5},
		{syscall.ENOBUFS, -1, SendErrors{Lost: 5}, 5},
		{syscall.ENOMEM, 2, SendErrors{Lost: 2}, 2},
		{syscall.ENETDOWN, 1, SendErrors{Lost: 1}, 1},
		{syscall.EADDRNOTAVAIL, 1, SendErrors{Lost: 1}, 1},
		{syscall.ENODEV, 1, SendErrors{Lost: 1}, 1},
		{syscall.EIO, 1, SendErrors{Lost: 1}, 1},
		{syscall.Errno(250), 1, SendErrors{Lost: 1}, 1}, // one that nobody knows
		{syscall.EACCES, 2, SendErrors{Stale: 1, Caller: 1}, 1},
		{syscall.EINVAL, 1, SendErrors{Caller: 1}, 1},
		{syscall.EPIPE, 1, SendErrors{Caller: 1}, 1},
		{syscall.EBADF, 1, SendErrors{Dead: 1}, 0},
	} {
		t.Run(fmt.Sprintf("%v %d", row.errno, row.times), func(t *testing.T) {
			onEachPicky(t, func(t *testing.T, kernel *Kernel, k *picky) {
				l := newLoop(t, Config{Kernel: kernel, NoGSO: true})
				got, told := 0, 0
				to := listen(t, l, Bound{}, func(*UDP, *Datagram) { got++ })
				closed := error(nil)
				u := mustListen(t, l, loopback4, UDPConfig{}, UDPHandler{
					OnError: func(_ *UDP, err error) {
						if told++; !errors.Is(err, row.errno) {
							t.Errorf("OnError(%v)", err)
						}
					},
					OnClose: func(_ *UDP, err error) { closed = err },
				})
				times := row.times
				k.refuse = func(*sys.Message) error {
					if times == 0 {
						return nil
					}
					times--
					return row.errno
				}
				const count = 5
				for range count {
					mustSend(t, u, "x", to.LocalAddr())
				}
				var s UDPStats
				later(l, func() { s = u.Stats(); _ = l.Close() })
				run(t, l)
				if s.SendErrors != row.want || s.SendLost != row.lost {
					t.Errorf("%+v, lost %d; want %+v, %d", s.SendErrors, s.SendLost, row.want, row.lost)
				}
				wantTold := int(row.lost)
				if row.want.Stale > 0 && row.lost == 0 {
					wantTold = 1 // of the earlier one
				}
				dead := row.want.Dead > 0
				switch {
				case dead && (!errors.Is(closed, row.errno) || s.Unsent != count || told != 0):
					t.Errorf("closed by %v, %d unsent", closed, s.Unsent)
				case !dead && (got != count-int(row.lost) || told != wantTold || closed != ErrClosed):
					t.Errorf("got %d, told of %d (want %d), closed by %v", got, told, wantTold, closed)
				}
			})
		})
	}
}

// TestUDPLostIsToldInLimits: a socket whose every send fails calls OnError no more than the limit says, does not
// spin, and logs nothing.
func TestUDPLostIsToldInLimits(t *testing.T) {
	onEachPicky(t, func(t *testing.T, kernel *Kernel, k *picky) {
		var log strings.Builder
		l := newLoop(t, Config{Kernel: kernel, Logger: slog.New(slog.NewTextHandler(&log, nil)), SlowCallback: -1})
		told := 0
		u := mustListen(t, l, loopback4, UDPConfig{}, UDPHandler{OnError: func(*UDP, error) { told++ }})
		k.refuse = func(*sys.Message) error { return syscall.EPERM }
		const turns, each = 50, 20
		turn := 0
		var next func()
		next = func() {
			if turn++; turn > turns {
				later(l, func() { _ = l.Close() })
				return
			}
			for i := range each {
				mustSend(t, u, strings.Repeat("x", i+1), u.LocalAddr())
			}
			l.NextTurn(next)
		}
		l.NextTurn(next)
		began := l.clock()
		run(t, l)
		most := errorBurst + int((l.clock()-began)/errorEvery) + 1
		s := u.Stats()
		if told == 0 || told > most {
			t.Errorf("told of %d, want 1 to %d", told, most)
		}
		if s.SendErrors.Lost != turns*each || s.Unreported != uint64(turns*each-told) || k.sends != turns*each {
			t.Errorf("lost %d, unreported %d, %d calls of %d", s.SendErrors.Lost, s.Unreported, k.sends, turns*each)
		}
		if log.Len() > 0 {
			t.Errorf("logged: %s", &log)
		}
	})
}
