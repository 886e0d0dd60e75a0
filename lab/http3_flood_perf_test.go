//go:build linux && perf

package lab

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

const (
	floodConns  = 8 // established before
	floodRounds = 3 // few: after a flood of handshakes the server has to get over them

	// leastInFlood is of what the connections have while the same flood goes to another process.
	leastInFlood = 0.5

	// mostFloodBytes is what a flood may add to the server's memory: 128 KiB for each of 64 handshakes, and as much again
	// for what the collector leaves.
	mostFloodBytes = 2 * 64 * 128 << 10
)

// The columns of weirhttp3's answer.
const (
	h3Resident   = 1
	h3Handshakes = 4
	h3Most       = 5
	h3Told       = 6
)

// TestPerfHTTP3Flood holds "under 50,000 datagrams of garbage a second, or 2,000 that begin a connection, connections that
// are established have half of what they have when the same flood goes to another process; and it costs memory for no more
// handshakes than there may be in progress".
func TestPerfHTTP3Flood(t *testing.T) {
	dir := build(t)
	for _, c := range []struct {
		kind string
		rate int
	}{{"garbage", 50_000}, {"initials", 2_000}} {
		t.Run(c.kind, func(t *testing.T) {
			attempts(t, func() string {
				lab := newFloodLab(t, dir, c.kind, c.rate)
				defer lab.stop()
				return lab.compare()
			})
		})
	}
}

// floodLab has server and sink on one processor, and all that sends to them on the other.
type floodLab struct {
	t                         *testing.T
	rate                      int
	server, sink, load, flood *child
}

func newFloodLab(t *testing.T, dir, kind string, rate int) floodLab {
	t.Helper()
	warm, window := floodTimes()
	count := strconv.Itoa(int(float64(rate) * (warm + window).Seconds()))
	if kind == "garbage" {
		count = "4096"
	}
	l := floodLab{t: t, rate: rate}
	l.flood = start(t, 1, filepath.Join(dir, "quicflood"), "-kind", kind, "-rate", strconv.Itoa(rate), "-count", count)
	l.server, l.sink = start(t, 0, filepath.Join(dir, "weirhttp3")), start(t, 0, filepath.Join(dir, "udpsink"))
	l.load = start(t, 1, filepath.Join(dir, "h3load"), "-addr", l.server.first, "-conns", strconv.Itoa(floodConns))
	return l
}

func (l floodLab) stop() {
	for _, c := range []*child{l.flood, l.load, l.server, l.sink} {
		c.stop()
	}
}

func floodTimes() (warm, window time.Duration) {
	if testing.Short() {
		return 200 * time.Millisecond, 500 * time.Millisecond
	}
	return 500 * time.Millisecond, 3 * time.Second
}

func (l floodLab) compare() (missed string) {
	l.t.Helper()
	rounds := floodRounds
	if testing.Short() {
		rounds = 1
	}
	var control, flooded []floodResult
	for range rounds {
		control = append(control, l.measure(l.sink))
		flooded = append(flooded, l.measure(l.server))
		l.settle()
	}
	l.t.Log(floodTable(control, flooded))
	var ratios []float64
	for i := range flooded {
		ratios = append(ratios, flooded[i].rate/control[i].rate)
	}
	idle, most := control[0].resident, worst(flooded)
	switch {
	case median(ratios) < leastInFlood:
		return fmt.Sprintf("%.2f of the control's bytes, less than %.2f", median(ratios), leastInFlood)
	case most.resident-idle > mostFloodBytes:
		return fmt.Sprintf("%.0f MiB of memory, %.0f before", most.resident/(1<<20), idle/(1<<20))
	case most.most > 0 && most.handshakes > most.most:
		return fmt.Sprintf("%.0f handshakes in progress, more than %.0f", most.handshakes, most.most)
	}
	return ""
}

// settle waits until the handshakes that nobody goes on with are given up.
func (l floodLab) settle() {
	for end := time.Now().Add(20 * time.Second); l.server.ask("")[h3Handshakes] > 0; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			l.t.Log("handshakes are still in progress after 20 s")
			return
		}
	}
}

// floodResult is what one flood gave: bytes a second on the connections, datagrams a second sent, and the most of what the
// server had at a time.
type floodResult struct{ rate, sent, cpu, resident, handshakes, most, told float64 }

func (l floodLab) measure(target *child) (r floodResult) {
	l.t.Helper()
	warm, window := floodTimes()
	sent, began := l.flood.ask(target.first)[0], time.Now()
	defer func() {
		r.sent = (l.flood.ask("")[0] - sent) / time.Since(began).Seconds()
	}()
	time.Sleep(warm)
	server, bytes, start := l.server.ask(""), l.load.ask("")[quicDone], time.Now()
	var last []float64
	for time.Since(start) < window {
		time.Sleep(100 * time.Millisecond)
		last = l.server.ask("")
		r.resident = max(r.resident, last[h3Resident])
		r.handshakes = max(r.handshakes, last[h3Handshakes])
	}
	r.rate = (l.load.ask("")[quicDone] - bytes) / time.Since(start).Seconds()
	r.cpu = (last[0] - server[0]) / float64(time.Since(start).Nanoseconds())
	r.most, r.told = last[h3Most], last[h3Told]-server[h3Told]
	return r
}

// worst has the most of each.
func worst(all []floodResult) (w floodResult) {
	for _, r := range all {
		w.resident, w.handshakes, w.most = max(w.resident, r.resident), max(w.handshakes, r.handshakes), r.most
	}
	return w
}

func floodTable(control, flooded []floodResult) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\nflood at\tdatagrams/s\tMB/s\tserver CPU %\tRSS MiB\thandshakes\tat most\tdropped\tof control\t")
	row := func(name string, r floodResult, ratio string) {
		fmt.Fprintf(w, "%s\t%.0f\t%.1f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%s\t\n", name, r.sent, r.rate/1e6, 100*r.cpu,
			r.resident/(1<<20), r.handshakes, r.most, r.told, ratio)
	}
	for i := range flooded {
		row("another", control[i], "")
		row("the server", flooded[i], fmt.Sprintf("%.2f", flooded[i].rate/control[i].rate))
	}
	_ = w.Flush()
	return b.String()
}
