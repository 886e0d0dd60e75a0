//go:build linux

package poll

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestWholeMillis(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		d    time.Duration
		want int
	}{
		{1, 1},
		{time.Millisecond - 1, 1},
		{time.Millisecond, 1},
		{time.Millisecond + 1, 2},
		{time.Second, 1000},
		{(1<<31 - 1) * time.Millisecond, 1<<31 - 1},
		{(1 << 31) * time.Millisecond, 1<<31 - 1},
		{math.MaxInt64, 1<<31 - 1},
	} {
		if got := wholeMillis(c.d); got != c.want {
			t.Errorf("wholeMillis(%v) = %d, want %d", c.d, got, c.want)
		}
	}
}

func TestEventBits(t *testing.T) {
	t.Parallel()
	for want, bits := range map[Interest]uint32{
		0:            0,
		Read:         unix.EPOLLIN,
		Write:        unix.EPOLLOUT,
		Read | Write: unix.EPOLLIN | unix.EPOLLOUT,
	} {
		if got := eventBits(want); got != bits {
			t.Errorf("interest %b asks for %#x, want %#x", want, got, bits)
		}
	}
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	for bits, want := range map[uint32]Ready{
		0:                               0,
		unix.EPOLLIN:                    Readable,
		unix.EPOLLOUT:                   Writable,
		unix.EPOLLERR:                   Failed,
		unix.EPOLLHUP:                   HungUp,
		unix.EPOLLERR | unix.EPOLLHUP:   Failed | HungUp,
		unix.EPOLLIN | unix.EPOLLRDHUP:  Readable,
		unix.EPOLLPRI | unix.EPOLLRDHUP: 0,
	} {
		if got := readiness(bits); got != want {
			t.Errorf("bits %#x are %b, want %b", bits, got, want)
		}
	}
}

func TestToken(t *testing.T) {
	t.Parallel()
	for _, token := range []uint64{0, 1, math.MaxUint32, 1 << 32, 1 << 63, 0xfedc_ba98_7654_3210, wakeToken} {
		var ev unix.EpollEvent
		putToken(&ev, token)
		if got := getToken(&ev); got != token {
			t.Errorf("token %#x comes back as %#x", token, got)
		}
	}
}

// TestWaitWithoutPwait2 is Linux before 5.11.
func TestWaitWithoutPwait2(t *testing.T) {
	p, err := newEpoll()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.(*epoll).noPwait2 = true
	start := time.Now()
	n, err := p.Wait(make([]Event, 1), 300*time.Microsecond)
	if n != 0 || err != nil {
		t.Fatalf("Wait answers %d, %v", n, err)
	}
	if took := time.Since(start); took < 300*time.Microsecond {
		t.Errorf("Wait for 300µs took %v", took)
	}
}

// TestWakeAtTheLimit writes to a wake-up descriptor that can take no more.
func TestWakeAtTheLimit(t *testing.T) {
	p, err := newEpoll()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	full := binary.NativeEndian.AppendUint64(nil, math.MaxUint64-1) // the largest count there is
	if _, err := unix.Write(p.(*epoll).wake, full); err != nil {
		t.Fatal(err)
	}
	events := make([]Event, 1)
	if _, err := p.Wait(events, 0); err != nil {
		t.Fatal(err)
	}
	if err := p.Wake(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if n, err := p.Wait(events, 10*time.Second); n != 0 || err != nil {
		t.Fatalf("Wait answers %d, %v", n, err)
	}
	if time.Since(start) >= 10*time.Second {
		t.Error("the wake did not end the Wait")
	}
}
