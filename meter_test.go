package weir

import (
	"testing"
	"time"

	"github.com/weirnet/weir/internal/cycles"
)

// TestMeter: until it knows the counter's speed the clock is always read, and then once 2 µs have gone by.
func TestMeter(t *testing.T) {
	if !cycles.Known {
		t.Skip("no counter on this processor")
	}
	m := meter{first: cycles.Now()}
	start := time.Now()
	for range 3 {
		if !m.passed() {
			t.Error("not calibrated, and yet it knows")
		}
	}
	m.calibrate(calibrateFor - 1)
	if m.slice != 0 {
		t.Error("calibrated too early")
	}
	time.Sleep(5 * time.Millisecond)
	m.calibrate(time.Since(start))
	if m.slice == 0 {
		t.Fatal("not calibrated")
	}
	perSecond := float64(m.slice) / chargeEvery.Seconds()
	if perSecond < 1e6 || perSecond > 1e11 {
		t.Errorf("the counter makes %.0f steps a second", perSecond)
	}
	for range 100 {
		m.read()
		spun := time.Now()
		for time.Since(spun) < 2*chargeEvery {
		}
		if !m.passed() {
			t.Fatalf("%v have gone by unnoticed", time.Since(spun))
		}
	}
	m.slice = 1 << 62
	m.read()
	if m.passed() {
		t.Error("a slice of years has passed")
	}
	m.last += 1 << 20 // another processor's counter is behind
	if !m.passed() {
		t.Error("a counter that went backwards is believed")
	}
}

// TestMeterOff: where time is not the machine's, the clock is read after each callback.
func TestMeterOff(t *testing.T) {
	var m meter
	m.calibrate(time.Hour)
	m.read()
	if !m.passed() {
		t.Error("the clock is not read")
	}
}

// TestChargeLimit: should the counter stand still, the clock is read after ten units.
func TestChargeLimit(t *testing.T) {
	l := newLoop(t, Config{})
	l.meter = meter{slice: 1 << 62}
	readings := 0
	clock := l.clock
	l.clock = func() time.Duration { readings++; return clock() }
	l.now = clock()
	source := l.posts.source
	l.ring.Ready(source)
	if l.ring.Next(l.now) != source {
		t.Fatal("no visit")
	}
	l.visited = &l.posts
	l.meter.read()
	for range 3 * maxUncharged {
		l.charge(1)
	}
	l.ring.End(false)
	if readings != 3 {
		t.Errorf("%d readings of the clock for %d units, want 3", readings, 3*maxUncharged)
	}
}
