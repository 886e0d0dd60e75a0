package dgram

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/net/ipv4"
)

// TestFilter: "one that it refuses is dropped, and counted"; reads wait for those that pass, and get all of them.
func TestFilter(t *testing.T) {
	t.Parallel()
	from := netip.AddrPort{}
	to, err := Listen(t.Context(), "udp", "127.0.0.1:0", Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	to.SetFilter(func(b []byte, a netip.AddrPort) bool {
		from = a
		return bytes.HasPrefix(b, []byte("good"))
	})
	c, err := Dial(t.Context(), "udp", to.LocalAddr().String(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	send := func(texts ...string) {
		t.Helper()
		for _, s := range texts {
			if _, err := c.Write([]byte(s)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := to.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	send("bad", "good 1", "bad", "", "good 2", "good 3", "bad")
	ms := make([]ipv4.Message, 8)
	for i := range ms {
		ms[i].Buffers = [][]byte{make([]byte, 16)}
	}
	var got []string
	for len(got) < 3 {
		n, err := to.ReadBatch(ms, 0)
		if err != nil || n == 0 {
			t.Fatal(n, err)
		}
		for i := range n {
			got = append(got, string(ms[i].Buffers[0][:ms[i].N]))
		}
	}
	b := make([]byte, 16)
	send("bad", "good 4")
	n, err := to.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, string(b[:n]))
	for i, s := range got {
		if want := "good " + string(rune('1'+i)); s != want {
			t.Errorf("datagram %d is %q, want %q", i, s, want)
		}
	}
	if s := to.Stats(); s.Received != 9 || s.Filtered != 5 || s.Undelivered != 0 {
		t.Errorf("received %d, filtered %d, undelivered %d; want 9, 5 and 0", s.Received, s.Filtered, s.Undelivered)
	}
	to.SetFilter(nil)
	send("bad")
	if n, err := to.Read(b); err != nil || string(b[:n]) != "bad" {
		t.Errorf("without a filter: %q, %v", b[:n], err)
	}
	if from.String() != c.LocalAddr().String() {
		t.Errorf("the filter was told of %v, want %v", from, c.LocalAddr())
	}
}
