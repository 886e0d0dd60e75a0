package weir

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"testing"

	"github.com/weirnet/weir/internal/sys"
)

// mustExport hands a socket out and has the descriptor closed with the test.
func mustExport(t *testing.T, u *UDP) (fd int, ahead []Datagram) {
	t.Helper()
	fd, ahead, err := u.Export()
	if err != nil {
		t.Fatal(err)
	}
	k := u.loop.kernel
	t.Cleanup(func() { _ = k.Close(fd) })
	return fd, ahead
}

// TestUDPExport holds "the datagrams that were read ahead … oldest first", and that the socket goes on.
func TestUDPExport(t *testing.T) {
	for _, row := range []struct {
		name    string
		pauseAt int // a Pause keeps the rest of the batch; 0: none
		at      int // the datagram in which to export; 0: between callbacks
		trains  bool
	}{
		{"in the first datagram", 0, 1, false},
		{"in the fifth", 0, 5, false},
		{"in the last", 0, 20, false},
		{"of what a pause kept", 3, 0, false},
		{"in one that a pause kept", 3, 7, false},
		{"in a train", 0, 5, true},
		{"in a train that a pause kept", 3, 7, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				const count = 20
				l := newLoop(t, Config{Kernel: k, Bound: Unbounded(), NoGSO: !row.trains})
				got := 0
				var ahead []Datagram
				export := func(u *UDP) {
					fd, a, err := u.ExportToWeir()
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = u.loop.kernel.Close(fd) })
					ahead = a
				}
				from := listen(t, l, Bound{}, nil)
				u := mustListen(t, l, loopback4, UDPConfig{}, UDPHandler{OnDatagram: func(u *UDP, d *Datagram) {
					if d.Payload[0] != byte(got) {
						t.Errorf("datagram %d came instead of %d", d.Payload[0], got)
					}
					if got++; got == row.at {
						export(u)
						if d.Payload[0] != byte(got-1) {
							t.Error("the export took the memory of the datagram that is being delivered")
						}
					}
					if got == row.pauseAt {
						u.Pause()
						l.NextTurn(func() {
							if row.at == 0 {
								export(u)
							}
							u.Resume()
						})
					}
				}})
				sendNow(t, from, u.LocalAddr(), count)
				later(l, func() { _ = l.Close() })
				run(t, l)
				at := max(row.at, row.pauseAt)
				if got != at || len(ahead) != count-at {
					t.Fatalf("delivered %d, handed over %d; want %d, %d", got, len(ahead), at, count-at)
				}
				for i, d := range ahead {
					if len(d.Payload) != 1 || d.Payload[0] != byte(at+i) || d.Source != from.LocalAddr() {
						t.Errorf("ahead[%d] is %v of %v", i, d.Payload, d.Source)
					}
				}
				if s := u.Stats(); s.Received != count || s.Discarded != 0 {
					t.Errorf("received %d, discarded %d", s.Received, s.Discarded)
				}
			})
		})
	}
}

// TestUDPExportGRO holds "EBUSY where the kernel may hold datagrams that it has joined".
func TestUDPExportGRO(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		u := listen(t, l, Bound{}, nil)
		if !u.joins {
			t.Skip("no GRO here, or switched off")
		}
		fd, ahead, err := u.Export()
		if fd != -1 || ahead != nil || u.shared {
			t.Errorf("Export: %d, %v", fd, ahead)
		}
		wantOpError(t, err, "export", syscall.EBUSY, u.LocalAddr().String())
		// Who adopts it can tell trains apart.
		fd, _, err = u.ExportToWeir()
		if err != nil {
			t.Fatal(err)
		}
		defer u.loop.kernel.Close(fd)
		_ = u.Close()
		got := 0
		heir, err := l.AdoptUDP(fd, UDPConfig{}, UDPHandler{OnDatagram: func(_ *UDP, d *Datagram) {
			if len(d.Payload) != 1 {
				t.Errorf("a datagram of %d bytes", len(d.Payload))
			}
			if got++; got == 20 {
				_ = l.Close()
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		sendNow(t, listen(t, l, Bound{}, nil), heir.LocalAddr(), 20)
		run(t, l)
	})
}

// TestUDPAdoptErrors: "must be a datagram INET socket", and one that the loop does not have.
func TestUDPAdopt(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		got := ""
		u := mustListen(t, l, loopback4, UDPConfig{NoGRO: true, Broadcast: true, TrafficClass: 0x48}, UDPHandler{})
		fd, _ := mustExport(t, u)
		_, err := l.AdoptUDP(fd, UDPConfig{}, UDPHandler{})
		wantOpError(t, err, "adopt", syscall.EEXIST)
		if err := u.Close(); err != nil {
			t.Fatal(err)
		}
		heir, err := l.AdoptUDP(fd, UDPConfig{}, UDPHandler{OnDatagram: func(_ *UDP, d *Datagram) {
			got += string(d.Payload)
			_ = l.Close()
		}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = l.AdoptUDP(fd, UDPConfig{}, UDPHandler{})
		wantOpError(t, err, "adopt", syscall.EEXIST)
		if heir.LocalAddr() != u.LocalAddr() || heir.RemoteAddr().IsValid() {
			t.Errorf("adopted %v -> %v, want %v", heir.LocalAddr(), heir.RemoteAddr(), u.LocalAddr())
		}
		if !heir.broadcast || heir.class != 0x48 || heir.Stats().Paths.BatchedReceives || heir.Stats().Paths.GRO {
			t.Errorf("broadcast %v, class %#x, %+v", heir.broadcast, heir.class, heir.Stats().Paths)
		}
		mustSend(t, listen(t, l, Bound{}, nil), "hello", heir.LocalAddr())
		run(t, l)
		if got != "hello" {
			t.Errorf("got %q", got)
		}
		_, err = l.AdoptUDP(fd, UDPConfig{}, UDPHandler{})
		wantOpError(t, err, "adopt", ErrClosed)
	})
}

// TestUDPAdoptConnected: the peer comes with the socket.
func TestUDPAdoptConnected(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		peer := listen(t, l, Bound{}, func(_ *UDP, d *Datagram) { _ = l.Close() })
		u := mustDial(t, l, loopback4, peer.LocalAddr(), UDPConfig{NoGRO: true}, UDPHandler{})
		fd, _ := mustExport(t, u)
		_ = u.Close()
		heir, err := l.AdoptUDP(fd, UDPConfig{Sole: true}, UDPHandler{})
		if err != nil {
			t.Fatal(err)
		}
		if heir.RemoteAddr() != peer.LocalAddr() {
			t.Errorf("the peer is %v, want %v", heir.RemoteAddr(), peer.LocalAddr())
		}
		mustSend(t, heir, "x", netip.AddrPort{})
		run(t, l)
	})
}

// TestUDPSole: a shared socket takes one datagram a call, until Sole.
func TestUDPSole(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		const count = 20
		l := newLoop(t, Config{Kernel: k, Bound: Unbounded(), NoGSO: true})
		got := 0
		from := listen(t, l, Bound{}, nil)
		u := mustListen(t, l, loopback4, UDPConfig{NoGRO: true}, UDPHandler{OnDatagram: func(u *UDP, _ *Datagram) { got++ }})
		mustExport(t, u)
		sendNow(t, from, u.LocalAddr(), count)
		calls := uint64(0)
		later(l, func() {
			calls = u.Stats().ReceiveCalls
			u.Sole()
			sendNow(t, from, u.LocalAddr(), count)
			later(l, func() { _ = l.Close() })
		})
		run(t, l)
		s := u.Stats()
		if got != 2*count || calls != count+1 || s.ReceiveCalls != calls+2 {
			t.Errorf("got %d; %d calls shared, %d alone", got, calls, s.ReceiveCalls-calls)
		}
	})
}

// TestUDPInject: datagrams are delivered as if received, those of before first, and within limits.
func TestUDPInject(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		l := newLoop(t, Config{Kernel: k})
		in := Datagram{
			Payload: []byte("injected"), Source: addrPort("192.0.2.1:9"), Truncated: true, // weir:port never sent to
			Local: netip.MustParseAddr("192.0.2.2"), Interface: 7, ECN: CE,
		}
		var got []Datagram
		u := mustListen(t, l, loopback4, UDPConfig{MaxQueuedSendBytes: 24}, UDPHandler{OnDatagram: func(_ *UDP, d *Datagram) {
			c := *d
			c.Payload = append([]byte(nil), d.Payload...)
			if got = append(got, c); len(got) == 4 {
				_ = l.Close()
			}
		}})
		sendNow(t, listen(t, l, Bound{}, nil), u.LocalAddr(), 1)
		for range 3 {
			if err := u.Inject(&in); err != nil {
				t.Fatal(err)
			}
		}
		if err := u.Inject(&in); err != ErrWouldBlock {
			t.Errorf("Inject of one too many: %v", err)
		}
		in.Payload[0] = 'X' // it is copied
		run(t, l)
		in.Payload[0] = 'i'
		for i, d := range got[:3] {
			if fmt.Sprint(d) != fmt.Sprint(in) {
				t.Errorf("datagram %d is %+v, want %+v", i, d, in)
			}
		}
		if s := u.Stats(); s.Injected != 3 || s.Received != 1 || len(got[3].Payload) != 1 {
			t.Errorf("injected %d, received %d, the last %+v", s.Injected, s.Received, got[3])
		}
		if err := u.Inject(&in); !errors.Is(err, ErrClosed) {
			t.Errorf("Inject on a closed socket: %v", err)
		}
	})
}

// TestUDPAdoptWithReports: a socket whose opener asked for reports and does not take them any more: they are, and
// nothing spins.
func TestUDPAdoptWithReports(t *testing.T) {
	for _, when := range []string{"before", "after"} { // the adoption
		t.Run(when, func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				l := newLoop(t, Config{Kernel: k, NoGSO: true})
				dead := deadPort(t, l, "127.0.0.1")
				opener := mustListen(t, l, loopback4, UDPConfig{NoGRO: true}, UDPHandler{})
				fd, _ := mustExport(t, opener)
				_ = opener.Close()
				if when == "before" {
					if err := l.kernel.SetOption(fd, sys.Reports, 1); err != nil {
						t.Fatal(err)
					}
				}
				heard := icmpErrors{t: t}
				u, err := l.AdoptUDP(fd, UDPConfig{}, UDPHandler{OnError: func(u *UDP, err error) {
					if when == "before" {
						heard.onError(u, err)
					}
				}})
				if err != nil {
					t.Fatal(err)
				}
				if err := l.kernel.SetOption(fd, sys.Reports, 1); err != nil {
					t.Fatal(err)
				}
				for range 5 {
					mustSend(t, u, "x", dead)
				}
				var before uint64
				later(l, func() {
					before = l.Turn()
					later(l, func() { _ = l.Close() })
				})
				run(t, l)
				if when == "before" && heard.count[dead] != 5 {
					t.Errorf("told of %v", heard.count)
				}
				if s := u.Stats(); s.Reports == 0 {
					t.Error("no report was taken")
				}
				if turns := l.Turn() - before; turns > 5 {
					t.Errorf("%d turns while nothing happened", turns)
				}
			})
		})
	}
}
