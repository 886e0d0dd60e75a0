package weir

import "time"

// rateLimit lets a burst pass, and then one in each interval.
type rateLimit struct {
	spent time.Duration // what passed is paid for up to here; a burst lies in the future
}

const (
	errorBurst = 16
	errorEvery = 10 * time.Millisecond
)

// allow tells whether one more may pass.
func (r *rateLimit) allow(now time.Duration) bool {
	r.spent = max(r.spent, now)
	if r.spent+errorEvery > now+errorBurst*errorEvery {
		return false
	}
	r.spent += errorEvery
	return true
}
