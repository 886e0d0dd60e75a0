package cycles

import (
	"testing"
	"time"
)

func TestNow(t *testing.T) {
	if !Known {
		t.Skip("no counter on this processor")
	}
	before, start := Now(), time.Now()
	for time.Since(start) < 5*time.Millisecond {
	}
	if after := Now(); after <= before {
		t.Errorf("the counter went from %d to %d in 5 ms", before, after)
	}
}

func BenchmarkNow(b *testing.B) {
	for b.Loop() {
		_ = Now()
	}
}

func BenchmarkClock(b *testing.B) {
	start := time.Now()
	for b.Loop() {
		_ = time.Since(start)
	}
}
