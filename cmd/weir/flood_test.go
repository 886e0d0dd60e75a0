package main

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestOwed holds the open loop: what is owed depends on the time alone, and nothing that was late is left out.
func TestOwed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &sender{rate: 2500, began: time.Now()}
		expect := func(want int64) {
			t.Helper()
			if got := s.owed(); got != want {
				t.Errorf("after %v: %d owed, want %d", time.Since(s.began), got, want)
			}
		}
		expect(1) // the flood begins at once
		s.queued++
		expect(0)
		time.Sleep(ms)
		expect(2)
		time.Sleep(ms)
		expect(5)
		s.queued += 5
		time.Sleep(10 * time.Minute)
		expect(2500 * 600)
		s.rate = maxRate
		expect(1 + maxRate*600 + maxRate/500 - s.queued)
		s.rate = 0
		if s.owed() <= burst {
			t.Error("as fast as it goes is not endless")
		}
	})
}
