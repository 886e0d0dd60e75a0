package main

import (
	"strings"
	"testing"
	"time"

	"github.com/weirnet/weir"
)

func TestDurationValue(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]time.Duration{
		"100ms": 100 * ms, "10m": 10 * time.Minute, "1.5s": 1500 * ms,
		"99ms": -1, "10m1ns": -1, "-1s": -1, "2": -1, "": -1, "x": -1,
	} {
		d := time.Duration(-1)
		err := durationValue{&d, 100 * ms, 10 * time.Minute}.Set(s)
		if d != want || (err == nil) != (want >= 0) {
			t.Errorf("%q: got %v, error %v", s, d, err)
		}
	}
}

func TestShortDuration(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", 2 * time.Second: "2s", 10 * time.Minute: "10m", 90 * time.Second: "1m30s", time.Hour: "1h",
		time.Hour + 10*time.Minute: "1h10m", time.Hour + 10*time.Second: "1h0m10s",
	} {
		if got := shortDuration(d); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestRateValue(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]int{"0": 0, "10000000": maxRate, "10000001": -1, "-1": -1, "1.5": -1, "": -1} {
		n := -1
		err := rateValue{&n}.Set(s)
		if n != want || (err == nil) != (want >= 0) {
			t.Errorf("%q: got %v, error %v", s, n, err)
		}
	}
}

func TestBoundsValue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sets []string
		want string
		fail bool
	}{
		{nil, "share", false},
		{[]string{"unbounded"}, "unbounded", false},
		{[]string{"unbounded,count:8", "share"}, "unbounded,count:8,share", false},
		{[]string{"count:1, count:2"}, "count:1,count:2", false},
		{[]string{"count"}, "share", true},
		{[]string{"count:0"}, "share", true},
		{[]string{"share,"}, "share", true},
		{[]string{""}, "share", true},
		{[]string{"Share"}, "share", true},
	} {
		bounds := []weir.Bound{weir.Share()}
		v := boundsValue{&bounds, new(bool)}
		failed := false
		for _, s := range c.sets {
			failed = failed || v.Set(s) != nil
		}
		if got := v.String(); got != c.want || failed != c.fail {
			t.Errorf("%s: got %q, failed %v", strings.Join(c.sets, " "), got, failed)
		}
	}
}
