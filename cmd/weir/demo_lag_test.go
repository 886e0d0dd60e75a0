package main

import (
	"testing"
	"time"
)

const ms = time.Millisecond

func TestJudge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		firings       []firing
		due           int
		end           time.Duration
		fired         int
		p50, p99, max time.Duration
	}{
		{name: "no tick was due", end: 10 * ms},
		{
			name: "each in time", due: 3, end: 70 * ms, fired: 3,
			firings: []firing{{1, 21 * ms}, {1, 42 * ms}, {1, 63 * ms}},
			p50:     2 * ms, p99: 3 * ms, max: 3 * ms,
		},
		{
			// "So a timer that never fired was late by the whole run."
			name: "never", due: 100, end: 2010 * ms,
			p50: 1990 * ms, p99: 1990 * ms, max: 1990 * ms,
		},
		{
			// "A late timer fires once for all the ticks it owes: each of them counts as late as the first."
			name: "skipped ticks", due: 4, end: 90 * ms, fired: 2,
			firings: []firing{{3, 65 * ms}, {1, 81 * ms}},
			p50:     45 * ms, p99: 45 * ms, max: 45 * ms,
		},
		{
			// "Ticks that are still owed at the end count as late as the first of them is then."
			name: "in time once and never again", due: 10, end: 210 * ms, fired: 1,
			firings: []firing{{1, 20 * ms}},
			p50:     170 * ms, p99: 170 * ms, max: 170 * ms,
		},
		{
			name: "fired after the end", due: 2, end: 50 * ms, fired: 0,
			firings: []firing{{2, 51 * ms}},
			p50:     30 * ms, p99: 30 * ms, max: 30 * ms,
		},
		{
			name: "fired for a tick that is not due any more", due: 2, end: 65 * ms, fired: 2,
			firings: []firing{{1, 20 * ms}, {1, 41 * ms}, {1, 60 * ms}},
			p50:     0, p99: 1 * ms, max: 1 * ms,
		},
		{
			name: "one firing for more ticks than are due", due: 2, end: 65 * ms, fired: 1,
			firings: []firing{{3, 62 * ms}},
			p50:     42 * ms, p99: 42 * ms, max: 42 * ms,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := judge(c.firings, c.due, c.end)
			want := verdict{fired: c.fired, lag: lags{millis(c.p50), millis(c.p99), millis(c.max)}}
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// TestPercentile holds "the least of the sorted samples that at least p percent do not exceed".
func TestPercentile(t *testing.T) {
	t.Parallel()
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	for _, c := range []struct {
		name   string
		sorted []time.Duration
		p      float64
		want   time.Duration
	}{
		{"none", nil, 50, 0},
		{"one", []time.Duration{7}, 50, 7},
		{"the lower of two", []time.Duration{3, 9}, 50, 3},
		{"the upper of two", []time.Duration{3, 9}, 51, 9},
		{"p0", hundred, 0, 1},
		{"p50", hundred, 50, 50},
		{"p99", hundred, 99, 99},
		{"p100", hundred, 100, 100},
	} {
		if got := percentile(c.sorted, c.p); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}

func TestWindow(t *testing.T) {
	t.Parallel()
	for duration, want := range map[time.Duration]time.Duration{
		2 * time.Second: 2010 * ms,
		110 * ms:        110 * ms,
		105 * ms:        110 * ms,
		119 * ms:        119 * ms,
	} {
		if got := windowOf(duration); got != want {
			t.Errorf("windowOf(%v) = %v, want %v", duration, got, want)
		}
	}
}
