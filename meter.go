package weir

import (
	"time"

	"github.com/weirnet/weir/internal/cycles"
)

// meter tells when it is worth reading the clock, which takes longer than a short callback. What goes by
// unnoticed is chargeEvery at most; the count of units that it lets pass is limited as well, should the
// processor's counter not be what it seems. Loop only.
type meter struct {
	first uint64 // the counter when the loop's clock began
	last  uint64 // when it was last read
	slice uint64 // how much of it is chargeEvery; 0: not known, always read the clock
}

const (
	chargeEvery  = 2 * time.Microsecond
	maxUncharged = int(chargeEvery / minCost)
	calibrateFor = time.Millisecond
)

// passed tells that chargeEvery has gone by since the clock was read, or may have.
func (m *meter) passed() bool { return m.slice == 0 || cycles.Now()-m.last >= m.slice }

// read notes that the clock was read.
func (m *meter) read() {
	if m.slice != 0 {
		m.last = cycles.Now()
	}
}

// calibrate learns how fast the counter runs.
func (m *meter) calibrate(now time.Duration) {
	if m.slice != 0 || m.first == 0 || now < calibrateFor {
		return
	}
	m.last = cycles.Now()
	m.slice = uint64(float64(m.last-m.first) / float64(now) * float64(chargeEvery))
}
