package weirhttp

import (
	"testing"
	"time"
)

// A connection is quiet three probe timeouts after the last that was acknowledged, and later where nothing is.
func TestQuiet(t *testing.T) {
	t.Parallel()
	const pto, ms = 40 * time.Millisecond, time.Millisecond
	// What happens, at which time: s sent, a received with an acknowledgement, r received, d a handler is over, b one is at
	// work; - nothing. And when it is quiet: looks before are not.
	type event struct {
		at   time.Duration
		what string
	}
	for name, tt := range map[string]struct {
		events []event
		quiet  time.Duration
	}{
		"it answers":          {[]event{{0, "-"}, {10 * ms, "s"}, {20 * ms, "a"}}, 140 * ms},
		"at the same look":    {[]event{{0, "-"}, {20 * ms, "sa"}}, 140 * ms},
		"it never answers":    {[]event{{0, "-"}}, 1000 * ms},
		"it owes nothing":     {[]event{{0, "-"}, {10 * ms, "a"}, {20 * ms, "s"}}, 1020 * ms},
		"a handler works":     {[]event{{0, "b"}, {2000 * ms, "b"}, {2010 * ms, "d"}, {2020 * ms, "a"}}, 2140 * ms},
		"a handler worked":    {[]event{{0, "-"}, {500 * ms, "d"}}, 1500 * ms},
		"what is lost":        {[]event{{0, "-"}, {100 * ms, "s"}, {500 * ms, "s"}, {1300 * ms, "s"}}, 3700 * ms},
		"it asks meanwhile":   {[]event{{0, "-"}, {100 * ms, "s"}, {500 * ms, "s"}, {1300 * ms, "s"}, {1400 * ms, "r"}}, 3800 * ms},
		"it answers at last":  {[]event{{0, "-"}, {100 * ms, "s"}, {900 * ms, "s"}, {2500 * ms, "sa"}}, 2620 * ms},
		"it is gone":          {[]event{{0, "-"}, {200 * ms, "a"}, {300 * ms, "s"}, {700 * ms, "s"}, {1500 * ms, "s"}, {3100 * ms, "s"}}, 5300 * ms},
		"it speaks by itself": {[]event{{0, "-"}, {100 * ms, "a"}, {200 * ms, "r"}}, 320 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var q quiet
			g := glance{pto: pto}
			begin := time.Now()
			look := func(at time.Duration, want bool) {
				t.Helper()
				g.now, g.clock = begin.Add(at), at
				if got := q.look(g); got != want {
					t.Errorf("at %v: %v", at, got)
				}
			}
			for _, e := range tt.events {
				g.busy = false
				for _, c := range e.what {
					switch c {
					case 's':
						g.sent++
					case 'a':
						g.received++
						g.sample++
					case 'r':
						g.received++
					case 'd':
						g.done++
					case 'b':
						g.busy = true
					}
				}
				look(e.at, false)
			}
			look(tt.quiet-ms, false)
			look(tt.quiet, true)
		})
	}
}
