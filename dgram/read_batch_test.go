package dgram

import (
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/ipv4"
)

func messages(n, bytes int) []ipv4.Message {
	ms := make([]ipv4.Message, n)
	for i := range ms {
		ms[i].Buffers = [][]byte{make([]byte, bytes)}
		ms[i].N, ms[i].NN, ms[i].Flags = -1, -1, -1 // left by another call
	}
	return ms
}

// readBatch reads until count datagrams have come.
func readBatch(t testing.TB, c *Conn, count int) (all []ipv4.Message) {
	t.Helper()
	must(t, c.SetReadDeadline(time.Now().Add(patience)))
	for len(all) < count {
		ms := messages(count-len(all), 1<<16)
		n, err := c.ReadBatch(ms, 0)
		if n < 1 || n > len(ms) || err != nil {
			t.Fatalf("%d of %d, %v", n, len(ms), err)
		}
		all = append(all, ms[:n]...)
	}
	must(t, c.SetReadDeadline(time.Time{}))
	return all
}

// TestReadBatch: "It waits for the first, and takes with it what has been received already".
func TestReadBatch(t *testing.T) {
	t.Parallel()
	for _, cfg := range []Config{{}, {NoBatches: true}, {NoGRO: true}} {
		c, peer := listen(t, loopback4, cfg), listen(t, loopback4, Config{})
		for _, payload := range []string{"", "1", "22", "", "333"} {
			send(t, peer, payload, addrOf(c))
		}
		for i, m := range readBatch(t, c, 5) {
			want := []string{"", "1", "22", "", "333"}[i]
			if got := string(m.Buffers[0][:m.N]); got != want || m.NN != 0 || m.Flags != 0 {
				t.Errorf("message %d is %q, NN %d, flags %#x", i, got, m.NN, m.Flags)
			}
			if m.Addr.(*net.UDPAddr).AddrPort() != addrOf(peer) {
				t.Errorf("message %d is from %v", i, m.Addr)
			}
		}
	}
}

// TestReadBatchDoesNotWait: with one there already, it does not wait until all of ms are filled; with none it waits.
func TestReadBatchDoesNotWait(t *testing.T) {
	t.Parallel()
	c, peer := listen(t, loopback4, Config{}), listen(t, loopback4, Config{})
	for range 3 {
		go func() {
			time.Sleep(silence)
			_, _ = peer.WriteToUDPAddrPort([]byte("x"), addrOf(c))
		}()
		within(t, "ReadBatch", func() {
			if n, err := c.ReadBatch(messages(100, 10), 0); n != 1 || err != nil {
				t.Errorf("%d, %v", n, err)
			}
		})
	}
	for range 10 { // until there are slots enough
		for range 5 {
			send(t, peer, "y", addrOf(c))
		}
		readBatch(t, c, 5)
	}
	for range 5 {
		send(t, peer, "y", addrOf(c))
	}
	time.Sleep(silence)
	wantNext(t, c, "y") // the others are read ahead, where there is recvmmsg
	ahead := c.Stats().Undelivered
	if ahead == 0 && c.Stats().Paths.BatchedReceives {
		t.Error("nothing was read ahead")
	}
	ahead = max(ahead, 1)
	if n, err := c.ReadBatch(messages(100, 10), 0); n != ahead || err != nil {
		t.Errorf("%d, %v; want the %d that had been received", n, err, ahead)
	}
}

// TestReadBatchErrors: flags are refused, no messages are none, and errors come with no message.
func TestReadBatchErrors(t *testing.T) {
	t.Parallel()
	c := listen(t, loopback4, Config{})
	if n, err := c.ReadBatch(messages(1, 1), 1); n != 0 || !errors.Is(err, syscall.EOPNOTSUPP) {
		t.Errorf("flags: %d, %v", n, err)
	}
	if n, err := c.ReadBatch(nil, 0); n != 0 || err != nil {
		t.Errorf("no messages: %d, %v", n, err)
	}
	must(t, c.SetReadDeadline(time.Now()))
	if n, err := c.ReadBatch(messages(1, 1), 0); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("past the deadline: %d, %v", n, err)
	}
	must(t, c.Close())
	if n, err := c.ReadBatch(messages(1, 1), 0); n != 0 || !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed: %d, %v", n, err)
	}
}

// TestReadBatchBuffers: a message has many Buffers, of any size, which are filled one after the other.
func TestReadBatchBuffers(t *testing.T) {
	t.Parallel()
	c, peer := listen(t, loopback4, Config{}), listen(t, loopback4, Config{})
	split := func(sizes ...int) (m ipv4.Message) {
		for _, n := range sizes {
			m.Buffers = append(m.Buffers, make([]byte, n))
		}
		return m
	}
	for _, row := range []struct {
		m       ipv4.Message
		payload string
		want    []string
		cut     bool
	}{
		{split(2, 3, 4), "123456789", []string{"12", "345", "6789"}, false},
		{split(2, 3, 4), "1234567890", []string{"12", "345", "6789"}, true},
		{split(2, 0, 4), "1234", []string{"12", "", "34\x00\x00"}, false},
		{split(2, 3), "1", []string{"1\x00", "\x00\x00\x00"}, false},
		{split(), "", nil, false},
		{split(), "1", nil, true},
		{split(0), "1", []string{""}, true},
	} {
		send(t, peer, row.payload, addrOf(c))
		ms := []ipv4.Message{row.m}
		n, err := c.ReadBatch(ms, 0)
		if n != 1 || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
		room := 0
		for i, b := range ms[0].Buffers {
			room += len(b)
			if string(b) != row.want[i] {
				t.Errorf("%q: buffer %d is %q, want %q", row.payload, i, b, row.want[i])
			}
		}
		if ms[0].N != min(room, len(row.payload)) || ms[0].Flags&msgTrunc != 0 != row.cut {
			t.Errorf("%q: N %d, flags %#x", row.payload, ms[0].N, ms[0].Flags)
		}
	}
	if s := c.Stats(); s.Truncated != 3 {
		t.Errorf("Truncated is %d, want 3", s.Truncated)
	}
}

// TestReadBatchMixed: calls of all kinds share what was read ahead.
func TestReadBatchMixed(t *testing.T) {
	t.Parallel()
	c, peer := listen(t, loopback4, Config{}), listen(t, loopback4, Config{})
	for i := range 12 {
		send(t, peer, strings.Repeat("x", i), addrOf(c))
	}
	b := make([]byte, 100)
	for i := 0; i < 12; {
		n, err := c.Read(b)
		if n != i || err != nil {
			t.Fatalf("datagram %d: %d bytes, %v", i, n, err)
		}
		i++
		for _, m := range readBatch(t, c, 2) {
			if m.N != i {
				t.Fatalf("datagram %d: %d bytes in a batch", i, m.N)
			}
			i++
		}
	}
}
