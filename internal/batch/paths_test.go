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
}

// TestPathsAreBounded: of too many destinations some are forgotten, and no other is any worse for it.
func TestPathsAreBounded(t *testing.T) {
	t.Parallel()
	var p Paths
	for i := range maxPaths {
		p.Blame(ipOf(i), 1200, false)
		p.Blame(ipOf(i), 1200, true)
	}
	if p.Largest(ipOf(maxPaths)) != NoLimit || p.Largest(ipOf(7)) != 0 || len(p.largest) != maxPaths {
		t.Errorf("%d destinations: %d remembered", maxPaths, len(p.largest))
	}
	for i := range 10 {
		p.Blame(ipOf(maxPaths+i), 1200, false)
		if p.Largest(ipOf(maxPaths+i)) != 1199 || p.Largest(ipOf(9999)) != NoLimit || len(p.largest) != maxPaths {
			t.Errorf("%d destinations: %d remembered", maxPaths+i+1, len(p.largest))
		}
		p.Blame(ipOf(maxPaths+i), 1200, false) // one that is known forgets nobody
	}
}
