package main

import (
	"math"
	"slices"
	"time"
)

// firing is one call of the timer's function, for one or more ticks of its grid.
type firing struct {
	ticks int           // the one that it is for, and those that were skipped
	at    time.Duration // since the grid began
}

// verdict is what became of the ticks of a run.
type verdict struct {
	fired int
	lag   lags
}

// lags are how late the timer was.
type lags struct {
	P50 millis `json:"p50"`
	P99 millis `json:"p99"`
	Max millis `json:"max"`
}

// judge gives each of the due ticks its lag.
//
// A firing is as late as the first of its ticks, and so are all of them: counting a skipped tick only from
// its own time, or not at all, would make a timer look better the less it fires. The ticks that are owed at
// the end are as late as the first of them is then.
func judge(firings []firing, due int, end time.Duration) verdict {
	v := verdict{}
	samples := make([]time.Duration, 0, due)
	count := func(ticks int, at time.Duration) {
		late := max(at-time.Duration(len(samples)+1)*period, 0)
		for range min(ticks, due-len(samples)) {
			samples = append(samples, late)
		}
	}
	for _, f := range firings {
		if f.at > end || len(samples) == due {
			break
		}
		v.fired++
		count(f.ticks, f.at)
	}
	count(due, end)
	slices.Sort(samples)
	v.lag = lags{P50: millis(percentile(samples, 50)), P99: millis(percentile(samples, 99)), Max: millis(percentile(samples, 100))}
	return v
}

// percentile is the least of the sorted samples that at least p percent do not exceed; 0 if there are none.
func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}
