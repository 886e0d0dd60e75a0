package dgram

import (
	"math"
	"testing"
)

// TestDropCounter: the kernel's count wraps, and looks at it may come in another order than they were made.
func TestDropCounter(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		looks []uint32
		want  []uint64
	}{
		{"what was there before is another's", []uint32{7, 7, 9}, []uint64{0, 0, 2}},
		{"from none", []uint32{0, 5}, []uint64{0, 5}},
		{"wraps", []uint32{math.MaxUint32 - 1, 3}, []uint64{0, 5}},
		{"overtaken", []uint32{5, 9, 7, 10}, []uint64{0, 4, 4, 5}},
		{"overtaken where it wraps", []uint32{math.MaxUint32 - 1, 3, math.MaxUint32, 4}, []uint64{0, 5, 5, 6}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var d dropCounter
			for i, kernel := range row.looks {
				if got := d.see(kernel); got != row.want[i] {
					t.Errorf("look %d, at %d: %d, want %d", i, kernel, got, row.want[i])
				}
			}
			if last := row.want[len(row.want)-1]; d.kept() != last {
				t.Errorf("%d is kept, want %d", d.kept(), last)
			}
		})
	}
}
