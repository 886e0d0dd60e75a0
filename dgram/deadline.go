package dgram

import (
	"sync/atomic"
	"time"
)

// deadline is a time that may be changed while it is waited for. The zero deadline is never.
type deadline struct{ at atomic.Pointer[time.Time] }

func (d *deadline) set(t time.Time) {
	if t.IsZero() {
		d.at.Store(nil)
	} else {
		d.at.Store(&t)
	}
}

func (d *deadline) passed() bool {
	at := d.at.Load()
	return at != nil && !time.Now().Before(*at)
}

// before is the earlier of the deadline and t.
func (d *deadline) before(t time.Time) time.Time {
	if at := d.at.Load(); at != nil && at.Before(t) {
		return *at
	}
	return t
}

// time is the deadline as package net takes it.
func (d *deadline) time() time.Time {
	if at := d.at.Load(); at != nil {
		return *at
	}
	return time.Time{}
}
