package weir

import (
	"log/slog"
	"time"
)

// reporter keeps reports of slow callbacks down to one a second. Loop only.
type reporter struct {
	last       time.Duration
	suppressed int
	any        bool
}

const reportEvery = time.Second

// reportSlow counts a callback that took too long, and logs it.
func (l *Loop) reportSlow(source named, took time.Duration) {
	l.stats.overruns.Add(1)
	r := &l.reports
	if r.any && l.now-r.last < reportEvery {
		r.suppressed++
		return
	}
	l.cfg.Logger.Warn("weir: slow callback", slog.String("source", source.name()), slog.Duration("took", took),
		slog.Int("unreported", r.suppressed))
	l.now = l.clock()
	r.any, r.last, r.suppressed = true, l.now, 0
}
