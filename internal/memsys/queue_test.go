package memsys

import "testing"

func TestQueueKeepsOrder(t *testing.T) {
	t.Parallel()
	var q queue
	next, want := 0, 0
	push := func(n int) {
		for range n {
			q.push(datagram{charge: next})
			next++
		}
	}
	pop := func(n int) {
		for range n {
			if got := q.pop().charge; got != want {
				t.Fatalf("got %d, want %d", got, want)
			}
			want++
		}
	}
	push(5)
	pop(3)
	push(6)  // fills the ring of 8, around its end
	push(20) // grows it while it is wrapped
	pop(28)
	push(1)
	pop(1)
	if q.len() != 0 || q.charged != 0 {
		t.Errorf("%d datagrams and %d bytes are left", q.len(), q.charged)
	}
}

func TestBuffersComeBack(t *testing.T) {
	t.Parallel()
	var b buffers
	for _, size := range []int{0, 1, 2, 3, 1200, 1 << 16} {
		first := b.get(size)
		if len(first) != size {
			t.Errorf("asked for %d, got %d", size, len(first))
		}
		b.put(first)
		second := b.get(size)
		if len(second) != size || &first[:1][0] != &second[:1][0] {
			t.Errorf("size %d is not used again", size)
		}
	}
}
