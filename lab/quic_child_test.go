//go:build linux && perf

package lab

import (
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// The columns of a quicperf's answer.
const (
	quicCPU     = 0
	quicDone    = 4
	quicP50     = 5
	quicP99     = 6
	quicDrops   = 7
	quicTold    = 8
	quicLost    = 9
	quicTicks   = 10
	quicLag     = 11
	quicColumns = 12
)

// quicLab runs quicperf, both ends in one process or each on a processor of its own.
type quicLab struct {
	t     *testing.T
	dir   string
	split bool
}

// The kinds of sockets that quicperf has.
const (
	netKind   = "net"
	dgramKind = "dgram"
)

// rivals are the sockets that are compared, in turns: the last is the first again, to show what chance does.
func rivals() []string { return []string{dgramKind, netKind, dgramKind} }

// in is the lab for a part of the test, whose programs end with it.
func (l quicLab) in(t *testing.T) quicLab {
	l.t = t
	return l
}

// quicRun is a server, and a client if that is another process.
type quicRun []*child

func (l quicLab) start(kind, do string, conns int, more ...string) quicRun {
	l.t.Helper()
	program := filepath.Join(l.dir, "quicperf")
	args := []string{"-udp", kind, "-do", do, "-conns", strconv.Itoa(conns)}
	args = append(args, more...)
	if !l.split {
		return quicRun{start(l.t, -1, program, args...)}
	}
	server := start(l.t, 0, program, append(args, "-role", "server")...)
	return quicRun{server, start(l.t, 1, program, append(args, "-role", "client", "-addr", server.first)...)}
}

func (r quicRun) stop() {
	for _, c := range r {
		c.stop()
	}
}

// ask adds up what the processes answer: what only one of them counts, is 0 with the other.
func (r quicRun) ask() (sum [quicColumns]float64) {
	for _, c := range r {
		c.t.Helper()
		for i, v := range c.ask("") {
			sum[i] += v
		}
	}
	return sum
}

// figures are what a run gave: how many a second of what it counts, and nanoseconds for one.
type figures struct{ rate, cost, p50, p99, drops, lost float64 }

// measure runs quicperf once. The cost is that of both ends.
func (l quicLab) measure(kind, do string, conns int) figures {
	l.t.Helper()
	r := l.start(kind, do, conns)
	defer r.stop()
	warm, window := quicTimes()
	time.Sleep(warm)
	before, began := r.ask(), time.Now()
	time.Sleep(window)
	after, took := r.ask(), time.Since(began)
	n := after[quicDone] - before[quicDone]
	if n == 0 {
		l.t.Fatalf("%s %s, %d connections: nothing is done", kind, do, conns)
	}
	return figures{
		rate:  n / took.Seconds(),
		cost:  (after[quicCPU] - before[quicCPU]) / n,
		p50:   after[quicP50],
		p99:   after[quicP99],
		drops: after[quicDrops] - before[quicDrops],
		lost:  after[quicLost] - before[quicLost],
	}
}

func quicTimes() (warm, window time.Duration) {
	if testing.Short() {
		return 100 * time.Millisecond, 300 * time.Millisecond
	}
	return 500 * time.Millisecond, 1500 * time.Millisecond
}
