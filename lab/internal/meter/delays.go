//go:build unix

package meter

import (
	"slices"
	"sync"
	"time"
)

// Delays are how long things have taken since they were last told; any goroutine.
type Delays struct {
	mu  sync.Mutex
	all []time.Duration // guarded by mu
}

// Add counts one.
func (d *Delays) Add(v time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, v)
}

// Take tells how many there were, and their median and 99th percentile in nanoseconds, and forgets them.
func (d *Delays) Take() (n, p50, p99 int64) {
	d.mu.Lock()
	all := d.all
	d.all = nil
	d.mu.Unlock()
	if len(all) == 0 {
		return 0, 0, 0
	}
	slices.Sort(all)
	return int64(len(all)), int64(all[len(all)/2]), int64(all[len(all)*99/100])
}
