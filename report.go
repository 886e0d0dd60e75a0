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

// overran counts a callback that took too long, and logs it.
func (l *Loop) overran(source string, took time.Duration) {
	l.stats.overruns.Add(1)
	r := &l.reports
	if r.any && l.now-r.last < reportEvery {
		r.suppressed++
		return
	}
	l.cfg.Logger.Warn("weir: slow callback", slog.String("source", source), slog.Duration("took", took),
		slog.Int("unreported", r.suppressed))
	r.any, r.last, r.suppressed = true, l.now, 0
}
