//go:build linux

package dgram

import (
	"testing"
	"time"
)

// TestReadYields: who reads without waiting lets others run each 2 ms; who waits does not look at the clock.
func TestReadYields(t *testing.T) {
	t.Parallel()
	c, peer := listen(t, loopback4, Config{NoGRO: true}), listen(t, loopback4, Config{})
	now, looks, yields := time.Unix(1, 0), 0, 0
	c.recv.now = func() time.Time {
		looks++
		now = now.Add(500 * time.Microsecond)
		return now
	}
	c.recv.gosched = func() { yields++ }
	read := func() { wantNext(t, c, "x") }
	for range 10 {
		time.AfterFunc(5*time.Millisecond, func() { send(t, peer, "x", addrOf(c)) })
		read()
	}
	if looks > 2 || yields > 0 { // a timer of 5 ms may be early on a busy machine
		t.Errorf("%d looks at the clock and %d yields while it waits each time", looks, yields)
	}
	const count = 200
	for range count {
		send(t, peer, "x", addrOf(c))
	}
	before := c.Stats().ReceiveCalls
	for range count {
		read()
	}
	calls := int(c.Stats().ReceiveCalls - before)
	if want := calls / 4; calls < 12 || yields < want-1 || yields > want+1 {
		t.Errorf("%d yields in %d receives without a wait, each 0.5 ms long", yields, calls)
	}
}
