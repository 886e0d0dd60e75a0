package memsys_test

import (
	"errors"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weirnet/weir/internal/memsys"
	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/sys"
)

// host is a Net with what tests ask of it.
type host struct {
	testing.TB
	*memsys.Net
	k sys.Kernel
}

func newHost(t testing.TB) *host {
	n := memsys.New()
	return &host{t, n, n.Backend().Kernel}
}

func (h *host) bound(local string) (int, netip.AddrPort) {
	h.Helper()
	addr := netip.MustParseAddrPort(local)
	family := sys.IPv6
	if addr.Addr().Is4() {
		family = sys.IPv4
	}
	fd, err := h.k.Socket(family, sys.UDP)
	if err != nil {
		h.Fatal(err)
	}
	if err := h.k.Bind(fd, addr); err != nil {
		h.Fatal(err)
	}
	addr, err = h.k.LocalAddr(fd)
	if err != nil {
		h.Fatal(err)
	}
	return fd, addr
}

func (h *host) poller() poll.Poller {
	p, err := h.Backend().NewPoller()
	if err != nil {
		h.Fatal(err)
	}
	return p
}

func (h *host) send(fd int, payload []byte, to netip.AddrPort) error {
	b := sys.NewSendBatch(1)
	b.Msgs[0] = sys.Message{Buf: payload, Addr: to}
	_, err := h.k.Send(fd, b, 0, 1)
	return err
}

// TestBufferHoldsWhatLinuxHolds: 256 tiny datagrams or 92 of 1200 bytes in the default buffer.
func TestBufferHoldsWhatLinuxHolds(t *testing.T) {
	for size, want := range map[int]int{0: 256, 1: 256, 500: 166, 1200: 92} {
		h := newHost(t)
		from, _ := h.bound("127.0.0.1:0")
		to, addr := h.bound("127.0.0.1:0")
		for range 300 {
			if err := h.send(from, make([]byte, size), addr); err != nil {
				t.Fatal(err)
			}
		}
		n, err := h.k.Recv(to, sys.NewRecvBatch(300, 2048), 300)
		if n != want || err != nil {
			t.Errorf("%d datagrams of %d bytes, %v; want %d", n, size, err, want)
		}
		if m, _ := h.k.MemInfo(to); int(m.Drops) != 300-want || m.RecvQueued != 0 {
			t.Errorf("after %d bytes: %+v", size, m)
		}
	}
}

func TestBlockSends(t *testing.T) {
	h := newHost(t)
	fd, addr := h.bound("127.0.0.1:0")
	p := h.poller()
	if err := p.Add(fd, poll.Write, 1); err != nil {
		t.Fatal(err)
	}
	events := make([]poll.Event, 1)
	for range 2 {
		if err := h.BlockSends(fd, true); err != nil {
			t.Fatal(err)
		}
		if err := h.send(fd, nil, addr); err != syscall.EAGAIN {
			t.Fatalf("blocked Send answers %v", err)
		}
		if n, err := p.Wait(events, 0); n != 0 || err != nil {
			t.Fatalf("blocked socket: %v, %v", events[:n], err)
		}
		if err := h.BlockSends(fd, false); err != nil {
			t.Fatal(err)
		}
		if n, err := p.Wait(events, -1); n != 1 || err != nil || events[0].Ready != poll.Writable {
			t.Fatalf("unblocked socket: %v, %v", events[:n], err)
		}
		if err := h.send(fd, nil, addr); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.BlockSends(99, true); err != syscall.EBADF {
		t.Errorf("BlockSends of an unknown descriptor answers %v", err)
	}
}

func TestAddAddr(t *testing.T) {
	h := newHost(t)
	own := netip.MustParseAddr("10.0.0.1")
	wild, wildAddr := h.bound("0.0.0.0:0")
	dest := netip.AddrPortFrom(own, wildAddr.Port())
	if err := h.send(wild, nil, dest); err != syscall.ENETUNREACH {
		t.Errorf("sending elsewhere answers %v", err)
	}
	h.AddAddr(own)
	if err := h.send(wild, nil, dest); err != nil {
		t.Errorf("sending to an address of our own answers %v", err)
	}
	b := sys.NewRecvBatch(1, 8)
	if n, err := h.k.Recv(wild, b, 1); n != 1 || err != nil || b.Msgs[0].Addr != dest {
		t.Errorf("received %d from %v, %v; want the source %v", n, b.Msgs[0].Addr, err, dest)
	}
	h.bound("10.0.0.1:0")
}

func TestPortsAreGivenOutInOrder(t *testing.T) {
	h := newHost(t)
	for i := range 3 {
		fd, addr := h.bound("127.0.0.1:0")
		if int(addr.Port()) != 32768+i {
			t.Errorf("port %d is %d", i, addr.Port())
		}
		if i == 1 {
			h.k.Close(fd)
		}
	}
}

func TestPortsRunOut(t *testing.T) {
	h := newHost(t)
	const ports = 60999 - 32768 + 1
	var some int
	for range ports {
		some, _ = h.bound("127.0.0.1:0")
	}
	fd, _ := h.k.Socket(sys.IPv4, sys.UDP)
	if err := h.k.Bind(fd, netip.MustParseAddrPort("127.0.0.1:0")); err != syscall.EADDRINUSE {
		t.Errorf("Bind answers %v", err)
	}
	if err := h.send(fd, nil, netip.MustParseAddrPort("127.0.0.1:9")); err != syscall.EAGAIN { // weir:port in memory
		t.Errorf("Send answers %v", err)
	}
	h.k.Close(some)
	if err := h.k.Bind(fd, netip.MustParseAddrPort("127.0.0.1:0")); err != nil {
		t.Errorf("Bind with one port free answers %v", err)
	}
}

func TestLowestDescriptorIsUsedAgain(t *testing.T) {
	h := newHost(t)
	first, _ := h.bound("127.0.0.1:0")
	h.bound("127.0.0.1:0")
	h.k.Close(first)
	if fd, _ := h.bound("127.0.0.1:0"); fd != first {
		t.Errorf("got %d, want %d", fd, first)
	}
}

func TestCalls(t *testing.T) {
	h := newHost(t)
	fd, addr := h.bound("127.0.0.1:0") // Socket, Bind, LocalAddr
	p := h.poller()
	events := make([]poll.Event, 1)
	p.Add(fd, poll.Read, 1)
	p.Add(fd, poll.Read, 1)
	p.Modify(fd, poll.Write, 1)
	p.Wait(events, 0)
	p.Wait(events, -1)
	p.Wait(events, time.Hour)
	p.Wake()
	h.send(fd, nil, addr)
	h.send(fd, nil, addr)
	h.k.Recv(fd, sys.NewRecvBatch(4, 8), 4)
	h.k.Connect(fd, addr)
	h.k.RemoteAddr(fd)
	h.k.SetOption(fd, sys.ReuseAddr, 1)
	h.k.GetOption(fd, sys.ReuseAddr)
	h.k.MemInfo(fd)
	h.k.Describe(fd)
	dup, _ := h.k.Duplicate(fd)
	h.k.Close(dup)
	h.k.RecvErrors(fd, sys.NewReportBatch(1), 1)
	h.k.BindToDevice(fd, "lo")
	h.k.Membership(fd, sys.Membership{}, true)
	h.k.Unbatched()
	h.k.Close(fd)
	p.Remove(fd)
	want := memsys.Calls{
		Socket: 1, Bind: 1, LocalAddr: 1, Connect: 1, RemoteAddr: 1, Close: 2, Send: 2, Recv: 1,
		Describe: 1, Duplicate: 1, RecvErrors: 1, BindToDevice: 1, Membership: 1,
		SetOption: 1, GetOption: 1, MemInfo: 1,
		Add: 2, Modify: 1, Remove: 1, WaitNow: 1, WaitBlocking: 2, Wake: 1, CloseAdded: 1,
	}
	if got := h.Calls(); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestCloseEndsRegistrations is what Linux does where there is no duplicate of the descriptor.
func TestCloseEndsRegistrations(t *testing.T) {
	h := newHost(t)
	p := h.poller()
	old, _ := h.bound("127.0.0.1:0")
	p.Add(old, poll.Write, 1)
	h.k.Close(old)
	events := make([]poll.Event, 1)
	if n, err := p.Wait(events, 0); n != 0 || err != nil {
		t.Errorf("a closed descriptor is reported: %v, %v", events[:n], err)
	}
	if fd, _ := h.bound("127.0.0.1:0"); fd != old || p.Add(fd, poll.Write, 2) != nil {
		t.Errorf("descriptor %d cannot be added after its last owner had been", fd)
	}
}

func TestClosedPoller(t *testing.T) {
	h := newHost(t)
	fd, _ := h.bound("127.0.0.1:0")
	p := h.poller()
	p.Add(fd, poll.Write, 1)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := p.Wait(make([]poll.Event, 1), -1)
	for call, err := range map[string]error{
		"Wait": err, "Wake": p.Wake(), "Close": p.Close(),
		"Add": p.Add(fd, 0, 0), "Modify": p.Modify(fd, 0, 0), "Remove": p.Remove(fd),
	} {
		if err != syscall.EBADF {
			t.Errorf("%s answers %v", call, err)
		}
	}
	h.k.Close(fd)
	if h.Calls().CloseAdded != 0 {
		t.Error("a closed poller still has the descriptor")
	}
}

// TestTwoOwners has two goroutines on one Net, each with a socket and a poller of its own.
func TestTwoOwners(t *testing.T) {
	h := newHost(t)
	const rounds = 2000
	a, addrA := h.bound("127.0.0.1:0")
	b, addrB := h.bound("[::]:0")
	addrB = netip.AddrPortFrom(addrA.Addr(), addrB.Port())
	var wg sync.WaitGroup
	for _, fd := range []int{a, b} {
		p := h.poller()
		if err := p.Add(fd, poll.Read, uint64(fd)); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			batch, events := sys.NewRecvBatch(4, 64), make([]poll.Event, 4)
			for got := 0; got < rounds; {
				if n, err := p.Wait(events, -1); n != 1 || err != nil {
					t.Errorf("Wait answers %d, %v", n, err)
					return
				}
				n, err := h.k.Recv(fd, batch, 4)
				if err != nil {
					t.Error(err)
					return
				}
				got += n
				for _, m := range batch.Msgs[:n] {
					if err := h.send(fd, m.Buf, m.Addr); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	if err := h.send(a, []byte("ball"), addrB); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
}

// TestSteadyTrafficDoesNotAllocate sends and receives in batches.
func TestSteadyTrafficDoesNotAllocate(t *testing.T) {
	for name, c := range map[string]sys.Control{
		"plain": {},
		"with control": {
			Local: netip.MustParseAddr("127.0.0.2"), Interface: 1, TrafficClass: 3, HasTrafficClass: true, Segment: 100,
		},
	} {
		turn := newHost(t).traffic(c)
		if n := testing.AllocsPerRun(100, turn); n != 0 {
			t.Errorf("%s: %v allocations a turn", name, n)
		}
	}
}

// TestSteadyReportsDoNotAllocate sends to the dead and takes what comes of it.
func TestSteadyReportsDoNotAllocate(t *testing.T) {
	h := newHost(t)
	fd, addr := h.bound("127.0.0.1:0")
	dead := netip.AddrPortFrom(addr.Addr(), addr.Port()+1)
	if err := h.k.SetOption(fd, sys.Reports, 1); err != nil {
		t.Fatal(err)
	}
	out, in := sys.NewSendBatch(1), sys.NewReportBatch(4)
	out.Msgs[0].Addr = dead
	n := testing.AllocsPerRun(100, func() {
		_, err := h.k.Send(fd, out, 0, 1)
		got, err2 := h.k.RecvErrors(fd, in, 4)
		if got != 1 || errors.Join(err, err2) != nil {
			t.Fatalf("got %d reports, %v, %v", got, err, err2)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations a report", n)
	}
}

// traffic makes a turn of 32 datagrams that are sent, waited for and received.
func (h *host) traffic(c sys.Control) (turn func()) {
	from, _ := h.bound("127.0.0.1:0")
	to, addr := h.bound("127.0.0.1:0")
	p := h.poller()
	if err := p.Add(to, poll.Read, 1); err != nil {
		h.Fatal(err)
	}
	for _, o := range []sys.Option{sys.RecvLocal, sys.RecvTOS, sys.RecvTime, sys.RecvJoined} {
		if err := h.k.SetOption(to, o, 1); err != nil && c != (sys.Control{}) {
			h.Fatal(err)
		}
	}
	events := make([]poll.Event, 8)
	in, out := sys.NewRecvBatch(32, 2048), sys.NewSendBatch(32)
	for i := range out.Msgs {
		out.Msgs[i] = sys.Message{Buf: make([]byte, 1200), Addr: addr, Control: c}
	}
	return func() {
		sent, err := h.k.Send(from, out, 0, 32)
		n, err2 := p.Wait(events, time.Second)
		got, err3 := h.k.Recv(to, in, 32)
		if sent != 32 || n != 1 || got != 32 || errors.Join(err, err2, err3) != nil {
			h.Fatalf("sent %d, %v; events %d, %v; got %d, %v", sent, err, n, err2, got, err3)
		}
	}
}

func BenchmarkTraffic(b *testing.B) {
	turn := newHost(b).traffic(sys.Control{})
	b.ReportAllocs()
	b.SetBytes(32 * 1200)
	for b.Loop() {
		turn()
	}
}
