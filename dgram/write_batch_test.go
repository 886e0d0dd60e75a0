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

func message(to net.Addr, pieces ...string) (m ipv4.Message) {
	for _, p := range pieces {
		m.Buffers = append(m.Buffers, []byte(p))
	}
	m.Addr, m.N = to, -1
	return m
}

// TestWriteBatch: messages go in their order, to one peer or many, from one buffer, many or none.
func TestWriteBatch(t *testing.T) {
	t.Parallel()
	for _, cfg := range []Config{{}, {NoBatches: true}} {
		c := listen(t, loopback4, cfg)
		a, b := listen(t, loopback4, Config{}), listen(t, loopback4, Config{})
		ms := []ipv4.Message{
			message(a.LocalAddr(), "1"), message(b.LocalAddr(), "2", "34", "", "5"), message(a.LocalAddr()),
			message(a.LocalAddr(), ""), message(b.LocalAddr(), "6", "7"),
		}
		if n, err := c.WriteBatch(ms, 0); n != 5 || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
		for i, n := range []int{1, 4, 0, 0, 2} {
			if ms[i].N != n {
				t.Errorf("message %d: N is %d, want %d", i, ms[i].N, n)
			}
		}
		wantNext(t, a, "1", "", "")
		wantNext(t, b, "2345", "67")
		s := c.Stats()
		if s.Sent != 5 || s.SentBytes != 7 || s.SentJoined != 0 || s.SendCalls != 1 {
			t.Errorf("%+v", s)
		}
	}
}

// TestWriteBatchLong: "64 a system call".
func TestWriteBatchLong(t *testing.T) {
	t.Parallel()
	a, b := pair(t, Config{RecvBufferBytes: 4 << 20})
	ms := make([]ipv4.Message, 200)
	for i := range ms {
		ms[i] = message(nil, strings.Repeat("x", i))
	}
	if n, err := a.WriteBatch(ms, 0); n != 200 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	for i, m := range readBatch(t, b, 200) {
		if m.N != i {
			t.Fatalf("message %d has %d bytes", i, m.N)
		}
	}
	if s := a.Stats(); s.Sent != 200 || s.SendCalls != 4 {
		t.Errorf("%+v", s)
	}
	if n, err := a.WriteBatch(nil, 0); n != 0 || err != nil {
		t.Errorf("no messages: %d, %v", n, err)
	}
}

// TestWriteBatchWrong: "n < len(ms) without an error says that ms[n] is to be tried again, to learn why it failed."
func TestWriteBatchWrong(t *testing.T) {
	t.Parallel()
	c, peer := listen(t, loopback4, Config{}), listen(t, loopback4, Config{})
	to := peer.LocalAddr()
	huge := message(to, strings.Repeat("x", 60_000), strings.Repeat("x", 5_508))
	for name, row := range map[string]struct {
		wrong ipv4.Message
		want  error
	}{
		"a TCP address":      {message(&net.TCPAddr{}, "x"), syscall.EINVAL},
		"no address":         {message(nil, "x"), errNoAddress},
		"no address at all":  {message((*net.UDPAddr)(nil), "x"), errNoAddress},
		"a huge one":         {huge, syscall.EMSGSIZE},
		"control of a slash": {ipv4.Message{Buffers: [][]byte{{1}}, OOB: make([]byte, 500), Addr: to}, syscall.EINVAL},
	} {
		t.Run(name, func(t *testing.T) {
			for _, before := range []int{0, 1, 63, 64, 70} {
				var ms []ipv4.Message
				for range before {
					ms = append(ms, message(to, "before"))
				}
				ms = append(ms, row.wrong, message(to, "behind"))
				n, err := c.WriteBatch(ms, 0)
				if n != before || before > 0 && err != nil {
					t.Fatalf("behind %d: %d, %v", before, n, err)
				}
				if before > 0 {
					n, err = c.WriteBatch(ms[n:], 0)
				}
				var op *net.OpError
				if n != 0 || !errors.Is(err, row.want) || !errors.As(err, &op) {
					t.Fatalf("behind %d, again: %d, %v", before, n, err)
				}
				for range before {
					wantNext(t, peer, "before")
				}
				if n, err := c.WriteBatch(ms[before+1:], 0); n != 1 || err != nil {
					t.Fatalf("the next: %d, %v", n, err)
				}
				wantNext(t, peer, "behind")
			}
		})
	}
}

// TestWriteBatchErrors: flags, deadline and Close.
func TestWriteBatchErrors(t *testing.T) {
	t.Parallel()
	c := listen(t, loopback4, Config{})
	ms := []ipv4.Message{message(c.LocalAddr(), "x")}
	if n, err := c.WriteBatch(ms, 1); n != 0 || !errors.Is(err, syscall.EOPNOTSUPP) {
		t.Errorf("flags: %d, %v", n, err)
	}
	must(t, c.SetWriteDeadline(time.Now()))
	if n, err := c.WriteBatch(ms, 0); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("past the deadline: %d, %v", n, err)
	}
	must(t, c.SetWriteDeadline(time.Time{}))
	if n, err := c.WriteBatch(ms, 0); n != 1 || err != nil {
		t.Errorf("without one: %d, %v", n, err)
	}
	must(t, c.Close())
	if n, err := c.WriteBatch(ms, 0); n != 0 || !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed: %d, %v", n, err)
	}
}

// TestBatchesAtOnce: 16 goroutines write batches and singles, 4 read, and the sums are equal.
func TestBatchesAtOnce(t *testing.T) {
	t.Parallel()
	const writers, readers, rounds = 16, 4, 20
	a, b := pair(t, Config{RecvBufferBytes: 16 << 20})
	read := make(chan int, readers)
	for i := range readers {
		go func() {
			sum, ms := 0, messages(10, 2000)
			for {
				n, err := 1, error(nil)
				if i%2 == 0 {
					n, err = b.ReadBatch(ms, 0)
				} else {
					ms[0].N, err = b.Read(ms[0].Buffers[0])
				}
				if err != nil {
					read <- sum
					return
				}
				for _, m := range ms[:n] {
					sum += m.N
				}
			}
		}()
	}
	written := make(chan error, writers)
	for w := range writers {
		go func() {
			ms := make([]ipv4.Message, 10)
			for i := range ms {
				ms[i] = message(nil, strings.Repeat("x", w), strings.Repeat("y", i))
			}
			for range rounds {
				n, err := a.WriteBatch(ms, 0)
				if err == nil && n != len(ms) {
					err = errors.New("short")
				}
				if err == nil {
					_, err = a.Write(make([]byte, 100))
				}
				if err != nil {
					written <- err
					return
				}
			}
			written <- nil
		}()
	}
	for range writers {
		must(t, <-written)
	}
	s := a.Stats()
	eventually(t, "all arrive", func() bool {
		in := b.Stats()
		return in.Received+in.KernelDropped == s.Sent && in.Undelivered == 0 || in.KernelDropped > 0
	})
	must(t, b.Close())
	sum := 0
	for range readers {
		sum += <-read
	}
	in := b.Stats()
	if in.KernelDropped > 0 {
		t.Skipf("the kernel dropped %d; nothing to compare", in.KernelDropped)
	}
	if s.Sent != writers*rounds*11 || in.Received != s.Sent || in.ReceivedBytes != s.SentBytes || sum != int(s.SentBytes) {
		t.Errorf("sent %d (%d bytes), received %d (%d), read %d bytes", s.Sent, s.SentBytes, in.Received, in.ReceivedBytes, sum)
	}
}
