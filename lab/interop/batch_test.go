package interop

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/pion/transport/v5/udp"
	"golang.org/x/net/ipv4"

	"github.com/weirnet/weir/dgram"
)

// TestPionBatch has pion's batches go over a dgram.Conn: those that it queues and sends by x/net on its descriptor, and
// those that it would have the Conn itself send and receive.
func TestPionBatch(t *testing.T) {
	var _ udp.BatchPacketConn = (*dgram.Conn)(nil)
	t.Run("queued", func(t *testing.T) {
		t.Parallel()
		from, to := udp.NewBatchConn(listen(t), 8, 5*time.Millisecond), listen(t)
		t.Cleanup(func() { _ = from.Close() })
		const n = 100
		for i := range n {
			if _, err := from.WriteTo(fmt.Append(nil, i), to.LocalAddr()); err != nil {
				t.Fatal(err)
			}
		}
		receive(t, to, n)
	})
	t.Run("own", func(t *testing.T) {
		t.Parallel()
		from, to := listen(t), listen(t)
		const n = 50
		ms := make([]ipv4.Message, n)
		for i := range ms {
			ms[i] = ipv4.Message{Buffers: [][]byte{fmt.Append(nil, i)}, Addr: to.LocalAddr()}
		}
		for done := 0; done < n; {
			k, err := from.WriteBatch(ms[done:], 0)
			if err != nil {
				t.Fatal(err)
			}
			done += k
		}
		receive(t, to, n)
	})
}

// receive wants the numbers from 0 to n, as batches and in order.
func receive(t *testing.T, c *dgram.Conn, n int) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	ms := make([]ipv4.Message, 8)
	for i := range ms {
		ms[i].Buffers = [][]byte{make([]byte, 100)}
	}
	for i := 0; i < n; {
		k, err := c.ReadBatch(ms, 0)
		if err != nil {
			t.Fatalf("%d of %d: %v", i, n, err)
		}
		for _, m := range ms[:k] {
			if got := string(m.Buffers[0][:m.N]); got != fmt.Sprint(i) {
				t.Fatalf("datagram %d: %q", i, got)
			}
			if _, ok := m.Addr.(*net.UDPAddr); !ok {
				t.Fatalf("datagram %d: from %T", i, m.Addr)
			}
			i++
		}
	}
}
