package memsys

import (
	"testing"

	"github.com/weirnet/weir/internal/sys"
)

// TestTruesize has the borders that were read from SO_MEMINFO on Linux 6.18, for each size on the
// loopback.
func TestTruesize(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to int // of the payload
		ipv4     bool
		want     int
	}{
		{0, 197, true, 832},
		{198, 645, true, 1280},
		{646, 1669, true, 2304},
		{1670, 3717, true, 4352},
		{3718, 7813, true, 8448},
		{7814, 16004, true, 16640},
		{16005, 16005, true, 16837},
		{65507, 65507, true, 66339},
		{0, 184, false, 832},
		{185, 632, false, 1280},
		{633, 1656, false, 2304},
		{7801, 15991, false, 16640},
		{15992, 15992, false, 16824},
	} {
		for _, size := range []int{c.from, c.to} {
			if got := truesize(size, c.ipv4); got != c.want {
				t.Errorf("truesize(%d, %v) = %d, want %d", size, c.ipv4, got, c.want)
			}
		}
	}
}

// TestChargeOfSegments: "60×1000 B = 60.8 kB" where they are joined, and each in pages where they are not.
func TestChargeOfSegments(t *testing.T) {
	t.Parallel()
	train := packet{payload: make([]byte, 60_000), segment: 1000, paged: true}
	for joined, want := range map[int]int{1: 60_832, 0: 60 * 1832} {
		s := newSocket(New(), sys.IPv4, sys.UDP)
		s.options[sys.RecvJoined] = joined
		s.accept(&train)
		if got := s.charged(); got != want {
			t.Errorf("joined %d: charged %d, want %d", joined, got, want)
		}
	}
}
