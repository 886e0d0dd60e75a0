package batch

import (
	"fmt"
	"slices"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirnet/weir/internal/sys"
)

// scripted is a kernel that refuses some datagrams, and stops after a number of them.
type scripted struct {
	refuse  map[byte]error // by the first byte of the payload
	atOnce  int            // at most so many a call; 0: any
	room    int            // EAGAIN after so many; negative: never
	dead    int            // EBADF from this call on, counted from 1; 0: never
	once    map[byte]error // answered when the datagram is the first of a call, and forgotten
	calls   int
	sent    []byte // first bytes
	unasked func(string)
}

func (k *scripted) Recv(int, *sys.RecvBatch, int) (int, error) { panic("not to be called") }

func (k *scripted) Send(fd int, b *sys.SendBatch, from, to int) (int, error) {
	if fd != 7 || from < 0 || from >= to || to > len(b.Msgs) {
		k.unasked(fmt.Sprintf("Send(%d, %d messages, %d, %d)", fd, len(b.Msgs), from, to))
	}
	k.calls++
	if k.dead > 0 && k.calls >= k.dead {
		return 0, syscall.EBADF
	}
	for i := from; i < to; i++ {
		err := k.refuse[b.Msgs[i].Buf[0]]
		if k.room == 0 {
			err = syscall.EAGAIN
		}
		if once := k.once[b.Msgs[i].Buf[0]]; once != nil && i == from {
			delete(k.once, b.Msgs[i].Buf[0])
			err = once
		}
		if err != nil && i == from {
			return 0, err
		}
		if err != nil || k.atOnce > 0 && i-from == k.atOnce {
			return i - from, nil // sendmmsg(2) forgets why
		}
		k.sent = append(k.sent, b.Msgs[i].Buf[0])
		k.room--
	}
	return to - from, nil
}

func fill(q *Queue, n int) {
	for i := range n {
		q.Push([]byte{byte(i), 1, 2}, addrOf(i), 0)
	}
}

func span(from, to int) (b []byte) {
	for i := from; i < to; i++ {
		b = append(b, byte(i))
	}
	return b
}

func TestFlush(t *testing.T) {
	t.Parallel()
	refused, stale := syscall.EPERM, syscall.ECONNREFUSED
	for _, row := range []struct {
		name   string
		queued int
		kernel scripted
		want   Sent
		sent   []byte
		failed []byte
		left   int
		stale  int // reports about earlier datagrams
	}{
		{name: "nothing", kernel: scripted{room: -1}},
		{name: "one call", queued: 8, kernel: scripted{room: -1},
			want: Sent{Calls: 1, Datagrams: 8, Bytes: 24}, sent: span(0, 8)},
		{name: "more than a call takes", queued: 20, kernel: scripted{room: -1},
			want: Sent{Calls: 3, Datagrams: 20, Bytes: 60}, sent: span(0, 20)},
		{name: "a kernel that takes less than it is given", queued: 8, kernel: scripted{room: -1, atOnce: 3},
			want: Sent{Calls: 3, Datagrams: 8, Bytes: 24}, sent: span(0, 8)},
		{name: "the first fails", queued: 4, kernel: scripted{room: -1, refuse: map[byte]error{0: refused}},
			want: Sent{Calls: 2, Datagrams: 3, Bytes: 9, Failed: 1}, sent: span(1, 4), failed: []byte{0}},
		{name: "one in the middle fails", queued: 8, kernel: scripted{room: -1, refuse: map[byte]error{3: refused}},
			want: Sent{Calls: 3, Datagrams: 7, Bytes: 21, Failed: 1}, sent: append(span(0, 3), span(4, 8)...), failed: []byte{3}},
		{name: "the last fails", queued: 8, kernel: scripted{room: -1, refuse: map[byte]error{7: syscall.EMSGSIZE}},
			want: Sent{Calls: 2, Datagrams: 7, Bytes: 21, Failed: 1}, sent: span(0, 7), failed: []byte{7}},
		{name: "two in a row and one in another batch fail", queued: 12,
			kernel: scripted{room: -1, refuse: map[byte]error{2: syscall.EPERM, 3: syscall.EINVAL, 9: refused}},
			want:   Sent{Calls: 7, Datagrams: 9, Bytes: 27, Failed: 3},
			sent:   append(append(span(0, 2), span(4, 9)...), span(10, 12)...), failed: []byte{2, 3, 9}},
		{name: "full at once", queued: 5, kernel: scripted{room: 0},
			want: Sent{Calls: 1, Blocked: true}, left: 5},
		{name: "full in the middle", queued: 20, kernel: scripted{room: 11},
			want: Sent{Calls: 3, Datagrams: 11, Bytes: 33, Blocked: true}, sent: span(0, 11), left: 9},
		{name: "full behind one that fails", queued: 5, kernel: scripted{room: 2, refuse: map[byte]error{1: refused}},
			want: Sent{Calls: 4, Datagrams: 2, Bytes: 6, Failed: 1, Blocked: true}, sent: []byte{0, 2}, failed: []byte{1}, left: 2},
		{name: "dead", queued: 5, kernel: scripted{room: -1, dead: 1},
			want: Sent{Calls: 1, Dead: syscall.EBADF}, left: 5},
		{name: "dead in the middle", queued: 20, kernel: scripted{room: -1, dead: 2},
			want: Sent{Calls: 2, Datagrams: 8, Bytes: 24, Dead: syscall.EBADF}, sent: span(0, 8), left: 12},
		{name: "a stale error costs no datagram", queued: 3, kernel: scripted{room: -1, once: map[byte]error{0: stale}},
			want: Sent{Calls: 2, Datagrams: 3, Bytes: 9}, sent: span(0, 3), stale: 1},
		{name: "one that stays is the datagram's own", queued: 3, kernel: scripted{room: -1, refuse: map[byte]error{0: stale}},
			want: Sent{Calls: 3, Datagrams: 2, Bytes: 6, Failed: 1}, sent: span(1, 3), failed: []byte{0}},
		{name: "a stale error before one of the datagram's", queued: 2,
			kernel: scripted{room: -1, once: map[byte]error{0: stale}, refuse: map[byte]error{0: refused}},
			want:   Sent{Calls: 3, Datagrams: 1, Bytes: 3, Failed: 1}, sent: span(1, 2), failed: []byte{0}, stale: 1},
		{name: "a stale error, then full", queued: 2, kernel: scripted{room: 0, once: map[byte]error{0: stale}},
			want: Sent{Calls: 2, Blocked: true}, left: 2, stale: 1},
		{name: "all fail", queued: 20, kernel: scripted{room: -1, refuse: refuseAll(20, syscall.EMSGSIZE)},
			want: Sent{Calls: 20, Failed: 20}, failed: span(0, 20)},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var pool Pool
			q := NewQueue(&pool)
			fill(&q, row.queued)
			k := row.kernel
			k.unasked = func(s string) { t.Error(s) }
			var failed []byte
			reports := 0
			got := Flush(&k, 7, sys.NewSendBatch(8), &q, &Hooks{
				Lost: func(d *Datagram, err error) {
					if n := d.Payload[0]; err != k.refuse[n] || d.Addr != addrOf(int(n)) {
						t.Errorf("datagram %d for %v failed with %v", n, d.Addr, err)
					}
					failed = append(failed, d.Payload[0])
				},
				Stale: func(err error) {
					if reports++; err != stale {
						t.Errorf("the report is %v", err)
					}
				},
			})
			if reports != row.stale {
				t.Errorf("%d reports, want %d", reports, row.stale)
			}
			if got != row.want {
				t.Errorf("Flush: %+v, want %+v", got, row.want)
			}
			if !slices.Equal(k.sent, row.sent) || !slices.Equal(failed, row.failed) {
				t.Errorf("sent %v, failed %v; want %v, %v", k.sent, failed, row.sent, row.failed)
			}
			if q.Len() != row.left || q.Bytes() != 3*row.left {
				t.Errorf("%d datagrams, %d bytes left; want %d", q.Len(), q.Bytes(), row.left)
			}
			if row.left > 0 && q.At(0).Payload[0] != byte(row.queued-row.left) {
				t.Errorf("datagram %d is first, want %d", q.At(0).Payload[0], row.queued-row.left)
			}
		})
	}
}

func refuseAll(n int, err error) map[byte]error {
	m := map[byte]error{}
	for i := range n {
		m[byte(i)] = err
	}
	return m
}

// TestFlushModel: whatever the kernel refuses and whenever it is full, each datagram is sent, reported or
// kept, once and in order.
func TestFlushModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var pool Pool
		q := NewQueue(&pool)
		n := rapid.IntRange(0, 200).Draw(t, "queued")
		fill(&q, n)
		k := scripted{atOnce: rapid.IntRange(0, 9).Draw(t, "at once"), refuse: map[byte]error{}, unasked: func(s string) { t.Fatal(s) }}
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, 199), 0, 20).Draw(t, "refused") {
			k.refuse[byte(i)] = rapid.SampledFrom([]error{syscall.EMSGSIZE, syscall.EPERM, syscall.EINVAL}).Draw(t, "errno")
		}
		var failed []byte
		scratch := sys.NewSendBatch(rapid.IntRange(1, 64).Draw(t, "scratch"))
		total := Sent{}
		for q.Len() > 0 {
			k.room = rapid.IntRange(1, 50).Draw(t, "room")
			s := Flush(&k, 7, scratch, &q, &Hooks{
				Lost:  func(d *Datagram, _ error) { failed = append(failed, d.Payload[0]) },
				Stale: func(error) { t.Fatal("no error was stale") },
			})
			if s.Blocked != (q.Len() > 0) || s.Dead != nil {
				t.Fatalf("%+v with %d left", s, q.Len())
			}
			total.Datagrams += s.Datagrams
			total.Bytes += s.Bytes
			total.Failed += s.Failed
			total.Calls += s.Calls
		}
		var wantSent, wantFailed []byte
		for i := range n {
			if k.refuse[byte(i)] != nil {
				wantFailed = append(wantFailed, byte(i))
			} else {
				wantSent = append(wantSent, byte(i))
			}
		}
		if !slices.Equal(k.sent, wantSent) || !slices.Equal(failed, wantFailed) {
			t.Fatalf("sent %v, failed %v; want %v, %v", k.sent, failed, wantSent, wantFailed)
		}
		if total.Datagrams != len(wantSent) || total.Bytes != 3*len(wantSent) || total.Failed != len(wantFailed) || total.Calls != k.calls {
			t.Fatalf("counted %+v; want %d sent, %d failed, %d calls", total, len(wantSent), len(wantFailed), k.calls)
		}
		if kept(&pool) == 0 && n > 0 {
			t.Fatal("no memory came back")
		}
	})
}
