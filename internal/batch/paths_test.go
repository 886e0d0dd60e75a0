package batch

import (
	"net/netip"
	"testing"
)

func ipOf(n int) netip.Addr { return addrOf(n).Addr() }

func TestPathsBlame(t *testing.T) {
	t.Parallel()
	var p Paths
	want := func(n, largest int) {
		t.Helper()
		if got := p.Largest(ipOf(n)); got != largest {
			t.Errorf("segments for %v may have %d bytes, want %d", ipOf(n), got, largest)
		}
	}
	want(1, NoLimit)
	p.Blame(ipOf(1), 1400, false)
	want(1, 1399)
	want(2, NoLimit) // another destination is not to blame
	p.Blame(ipOf(1), 1300, false)
	want(1, 1299)
	p.Blame(ipOf(1), 1400, false) // one that was queued earlier
	want(1, 1299)
	p.Blame(ipOf(2), 1400, true)
	want(2, 0)
	p.Blame(ipOf(2), 1400, false)
	want(2, 0)
	want(1, 1299)
	if p.Off() {
		t.Error("off because of two destinations")
	}
}

// TestPathsAreBounded: where too many destinations do not take segments, none gets any, and what is known of
// each needs not be kept.
func TestPathsAreBounded(t *testing.T) {
	t.Parallel()
	var p Paths
	for i := range maxPaths {
		p.Blame(ipOf(i), 1200, false)
		p.Blame(ipOf(i), 1200, true)
	}
	if p.Off() || p.Largest(ipOf(maxPaths)) != NoLimit || p.Largest(ipOf(7)) != 0 {
		t.Errorf("%d destinations: off %v", maxPaths, p.Off())
	}
	for i := range 10 {
		p.Blame(ipOf(maxPaths+i), 1200, false)
		if !p.Off() || p.Largest(ipOf(maxPaths+i)) != 0 || p.Largest(ipOf(9999)) != 0 {
			t.Errorf("%d destinations: off %v", maxPaths+i+1, p.Off())
		}
	}
	if len(p.largest) > 0 {
		t.Errorf("%d destinations are remembered of which all is known", len(p.largest))
	}
}
