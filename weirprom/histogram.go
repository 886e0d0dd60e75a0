package weirprom

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirnet/weir"
)

// histogram is one of Stats.
type histogram struct {
	desc *prometheus.Desc
	of   func(*weir.Stats) *weir.Histogram
}

var histograms = []histogram{
	{describe("loop_turn_seconds", "Length of turns, without the time waited."),
		func(s *weir.Stats) *weir.Histogram { return &s.TurnLength }},
	{describe("loop_timer_lag_seconds", "From when a timer was due to when it was called."),
		func(s *weir.Stats) *weir.Histogram { return &s.TimerLag }},
	{describe("loop_visit_wait_seconds", "From when the poller told of a source to its visit."),
		func(s *weir.Stats) *weir.Histogram { return &s.VisitWait }},
}

// The buckets are fixed, as Prometheus wants them, and coarser than those of weir.Histogram: 21 series a
// histogram instead of 200. Powers of two of its unit, 1,024 ns, are ends of its buckets, so that the counts
// are exact; a duration of exactly a bound counts above it.
const (
	shortestBound = 1024 * time.Nanosecond
	bounds        = 21 // to 1.07 s
)

// cumulative is the number of durations up to each bound, in seconds.
func cumulative(h *weir.Histogram) map[float64]uint64 {
	var counts [bounds]uint64
	for end, n := range h.Buckets() {
		for i := range counts {
			if end <= shortestBound<<i {
				counts[i] += n
			}
		}
	}
	buckets := make(map[float64]uint64, bounds)
	for i, n := range counts {
		buckets[(shortestBound << i).Seconds()] = n
	}
	return buckets
}
