package dgram

import (
	"net/netip"
	"strings"
	"testing"
	"time"
)

// TestTruncated: "What does not fit is cut off, which Stats.Truncated counts and ReadMsgUDP tells."
func TestTruncated(t *testing.T) {
	t.Parallel()
	c, peer := listen(t, loopback4, Config{}), listen(t, loopback4, Config{})
	b := make([]byte, 4)
	for i, row := range []struct {
		payload, want string
		cut           bool
	}{{"123", "123", false}, {"1234", "1234", false}, {"12345", "1234", true}, {"", "", false}, {strings.Repeat("x", 60_000), "xxxx", true}} {
		before := c.Stats().Truncated
		for range 2 {
			send(t, peer, row.payload, addrOf(c))
		}
		n, _, err := c.ReadFrom(b)
		must(t, err)
		if string(b[:n]) != row.want {
			t.Errorf("row %d: got %q, want %q", i, b[:n], row.want)
		}
		n, _, flags, _, err := c.ReadMsgUDPAddrPort(b, nil)
		must(t, err)
		if string(b[:n]) != row.want || flags&msgTrunc != 0 != row.cut {
			t.Errorf("row %d: got %q, flags %#x", i, b[:n], flags)
		}
		want := before
		if row.cut {
			want += 2
		}
		if got := c.Stats().Truncated; got != want {
			t.Errorf("row %d: Truncated is %d, want %d", i, got, want)
		}
	}
	if s := c.Stats(); s.Received != 10 || s.Undelivered != 0 {
		t.Errorf("received %d, %d undelivered", s.Received, s.Undelivered)
	}
}

// TestReadInOrder: datagrams come one by one, in their order, whatever a system call brought, and Stats add up.
func TestReadInOrder(t *testing.T) {
	t.Parallel()
	for _, cfg := range []Config{{}, {NoGRO: true}, {NoBatches: true}, {NoGRO: true, NoBatches: true}} {
		c, peer := listen(t, loopback4, cfg), listen(t, loopback4, Config{NoGSO: true})
		bytes := 0
		for i := range 40 {
			send(t, peer, strings.Repeat("x", i), addrOf(c))
			bytes += i
		}
		for i := range 40 {
			if got, from := next(t, c); len(got) != i || from != addrOf(peer) {
				t.Fatalf("datagram %d has %d bytes, from %v", i, len(got), from)
			}
			if s := c.Stats(); s.Received != uint64(i+1+s.Undelivered) {
				t.Fatalf("after %d: received %d, undelivered %d", i+1, s.Received, s.Undelivered)
			}
		}
		s := c.Stats()
		if s.Received != 40 || s.ReceivedBytes != uint64(bytes) || s.ReceiveErrors != 0 || s.Truncated != 0 || s.Undelivered != 0 {
			t.Errorf("%+v", s)
		}
		if s.ReceiveBatches == 0 || s.ReceiveBatches > s.ReceiveCalls || !s.Paths.BatchedReceives && s.ReceiveBatches > 40 {
			t.Errorf("%d calls, %d batches", s.ReceiveCalls, s.ReceiveBatches)
		}
	}
}

// TestReadAhead: one system call brings what is there.
func TestReadAhead(t *testing.T) {
	t.Parallel()
	c, peer := listen(t, loopback4, Config{}), listen(t, loopback4, Config{})
	if !c.Stats().Paths.BatchedReceives {
		t.Skip("no recvmmsg")
	}
	for range 8 {
		send(t, peer, "x", addrOf(c))
	}
	time.Sleep(silence) // on a busy machine they arrive later
	for range 8 {
		wantNext(t, c, "x")
	}
	if s := c.Stats(); s.ReceiveCalls >= 8 || s.ReceiveBatches != s.ReceiveCalls {
		t.Errorf("%d calls, %d batches for 8 datagrams", s.ReceiveCalls, s.ReceiveBatches)
	}
}

// TestKernelDropped: what the kernel drops is told, and stays when the Conn is closed.
func TestKernelDropped(t *testing.T) {
	t.Parallel()
	c, peer := listen(t, loopback4, Config{NoGRO: true, RecvBufferBytes: 10_000}), listen(t, loopback4, Config{NoGSO: true})
	const count = 200
	for range count {
		send(t, peer, strings.Repeat("x", 1000), addrOf(c))
	}
	s := c.Stats()
	if s.KernelDropped == 0 || s.RecvQueuedBytes == 0 {
		t.Fatalf("%+v", s)
	}
	left := count - int(s.KernelDropped)
	for range left {
		next(t, c)
	}
	wantSilence(t, c)
	must(t, c.Close())
	if after := c.Stats(); after.KernelDropped != s.KernelDropped || after.Received != uint64(left) || after.RecvQueuedBytes != 0 {
		t.Errorf("%+v", after)
	}
}

// TestNoMemInfo: a kernel that does not tell of its buffers costs nothing else.
func TestNoMemInfo(t *testing.T) {
	t.Parallel()
	c, peer := listen(t, loopback4, Config{Faults: plan(t, "meminfo=ENOPROTOOPT")}), listen(t, loopback4, Config{})
	want := c.Stats().Paths
	for range 3 {
		send(t, peer, "x", addrOf(c))
	}
	next(t, c)
	s := c.Stats()
	if s.Received != uint64(1+s.Undelivered) || s.RecvBufferBytes != 0 || s.Paths != want || want == (FastPaths{}) && c.segments {
		t.Errorf("%+v", s)
	}
}

// TestReadManyAtOnce: many goroutines read one Conn, and each datagram is read once.
func TestReadManyAtOnce(t *testing.T) {
	t.Parallel()
	const readers, writers, each = 4, 16, 200
	c := listen(t, loopback4, Config{RecvBufferBytes: 8 << 20})
	type arrival struct {
		from netip.AddrPort
		id   string
	}
	got := make(chan arrival, writers*each)
	for range readers {
		go func() {
			b := make([]byte, 100)
			for {
				n, from, err := c.ReadFromUDPAddrPort(b)
				if err != nil {
					got <- arrival{}
					return
				}
				got <- arrival{from, string(b[:n])}
			}
		}()
	}
	out := dial(t, c.LocalAddr(), Config{})
	done := make(chan error, writers)
	for w := range writers {
		go func() {
			for i := range each {
				if _, err := out.Write([]byte{byte(w), byte(i)}); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range writers {
		must(t, <-done)
	}
	seen := make(map[string]bool)
	settled := func() bool { return c.Stats().Received+c.Stats().KernelDropped == writers*each }
	eventually(t, "all arrive", settled)
	must(t, c.Close())
	for ended := 0; ended < readers; {
		a := <-got
		switch {
		case a.id == "":
			ended++
		case seen[a.id]:
			t.Fatalf("%x came twice", a.id)
		default:
			seen[a.id] = true
		}
	}
	s, sent := c.Stats(), out.Stats()
	if sent.Sent != writers*each || sent.SendLost != 0 || sent.SentBytes != 2*writers*each {
		t.Errorf("sent %d, lost %d", sent.Sent, sent.SendLost)
	}
	if uint64(len(seen))+s.Discarded != s.Received || s.Received+s.KernelDropped != writers*each {
		t.Errorf("%d read, %d discarded of %d; %d dropped", len(seen), s.Discarded, s.Received, s.KernelDropped)
	}
}
