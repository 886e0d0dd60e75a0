//go:build perf

package weir

import (
	"fmt"
	"testing"
	"time"
)

// TestPerfPostBack holds that a goroutine which a callback wakes need not wait for the processor that the
// loop's wait holds: on one processor it posts back within a millisecond.
func TestPerfPostBack(t *testing.T) {
	attempts(t, func() (missed string) {
		times := postBack(t, 1000)
		p99 := times[len(times)*99/100]
		t.Logf("p50 %v, p99 %v, longest %v", times[len(times)/2], p99, times[len(times)-1])
		if p99 >= time.Millisecond {
			return fmt.Sprintf("p99 is %v, want less than 1 ms", p99)
		}
		return ""
	})
}
