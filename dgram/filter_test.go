package dgram

import (
	"net/netip"
	"strings"
	"testing"
)

// TestFilter: "One that is refused is dropped, and counted"; reads wait for those that pass, and get all of them.
func TestFilter(t *testing.T) {
	t.Parallel()
	c, peer := listen(t, loopback4, Config{}), listen(t, loopback4, Config{})
	var from netip.AddrPort
	c.SetFilter(func(b []byte, a netip.AddrPort) bool {
		from = a
		return strings.HasPrefix(string(b), "good")
	})
	for _, payload := range []string{"bad", "good 1", "bad", "", "good 2", "good 3", "bad"} {
		send(t, peer, payload, addrOf(c))
	}
	for i, m := range readBatch(t, c, 3) {
		if got, want := string(m.Buffers[0][:m.N]), "good "+string(rune('1'+i)); got != want {
			t.Errorf("datagram %d is %q, want %q", i, got, want)
		}
	}
	send(t, peer, "bad", addrOf(c))
	send(t, peer, "good 4", addrOf(c))
	wantNext(t, c, "good 4")
	if s := c.Stats(); s.Received != 9 || s.Filtered != 5 || s.Undelivered != 0 {
		t.Errorf("received %d, filtered %d, undelivered %d; want 9, 5 and 0", s.Received, s.Filtered, s.Undelivered)
	}
	if from != addrOf(peer) {
		t.Errorf("the filter was told of %v, want %v", from, addrOf(peer))
	}
	c.SetFilter(nil)
	send(t, peer, "bad", addrOf(c))
	wantNext(t, c, "bad")
}
