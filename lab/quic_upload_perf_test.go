//go:build linux && perf

package lab

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

const (
	uploadConns = 64
	uploadBytes = 1 << 20
	uploadTick  = 20 * time.Millisecond

	// uploadRounds are fewer than elsewhere: what counts is summed over runs that are long.
	uploadRounds = 3

	// leastTicks of those due is what the timer must see.
	leastTicks = 0.95
)

// TestPerfQUICUpload holds "64 clients that upload 1 MiB each, again and again, cost a server over a dgram.Conn no more
// processor time a MiB than over a net.UDPConn, and no more packets lost, nor drops of the kernel; and a timer of 20 ms on
// a weir loop beside it no tick in twenty, and no more lag at p99 than a period, or than over a net.UDPConn": with one
// processor the loop has to wait until the runtime takes that from the server's goroutines, whatever the socket.
func TestPerfQUICUpload(t *testing.T) {
	lab := quicLab{t: t, dir: build(t), split: true}
	attempts(t, func() string {
		names := rivals()
		sums := make([]uploads, len(names))
		n := uploadRounds
		if testing.Short() {
			n = 1
		}
		for round := range n {
			for i := range names {
				if round%2 == 1 {
					i = len(names) - 1 - i
				}
				sums[i].add(lab.upload(names[i]))
			}
		}
		t.Log(uploadTable(names, sums))
		ours, theirs := sums[0], sums[1]
		switch {
		case ours.cpu/ours.mib > theirs.cpu/theirs.mib:
			return fmt.Sprintf("%.0f µs of CPU a MiB, over net %.0f", ours.cpu/ours.mib/1e3, theirs.cpu/theirs.mib/1e3)
		case ours.lost/ours.mib > theirs.lost/theirs.mib:
			return fmt.Sprintf("%.2f packets lost a MiB, over net %.2f", ours.lost/ours.mib, theirs.lost/theirs.mib)
		case ours.drops/ours.mib > theirs.drops/theirs.mib:
			return fmt.Sprintf("%.2f drops of the kernel a MiB, over net %.2f", ours.drops/ours.mib, theirs.drops/theirs.mib)
		case ours.ticks < leastTicks*ours.due:
			return fmt.Sprintf("%.0f of %.0f ticks", ours.ticks, ours.due)
		case median(ours.lags) > max(float64(uploadTick), median(theirs.lags)):
			return fmt.Sprintf("a lag of %v at p99, over net %v", time.Duration(median(ours.lags)), time.Duration(median(theirs.lags)))
		}
		return ""
	})
}

// uploads are sums over runs, with the lag at p99 of each.
type uploads struct {
	mib, cpu, clientCPU      float64 // processor time in nanoseconds
	drops, told, errors, sec float64 // drops by SO_MEMINFO, by the socket itself, and by the whole system

	// lost is what the clients' quic-go misses of what it has sent, dropped by the kernel or by the server's quic-go, whose
	// connections queue 256 packets each. It is what compares: of a train that a socket with GRO has no room for, the
	// kernel counts one drop, whatever was in it.
	lost       float64
	ticks, due float64
	lags       []float64
}

func (u *uploads) add(o uploads) {
	u.mib += o.mib
	u.cpu += o.cpu
	u.clientCPU += o.clientCPU
	u.drops += o.drops
	u.told += o.told
	u.errors += o.errors
	u.sec += o.sec
	u.lost += o.lost
	u.ticks += o.ticks
	u.due += o.due
	u.lags = append(u.lags, o.lags...)
}

// upload has the server on one processor, and all clients on the other.
func (l quicLab) upload(kind string) uploads {
	l.t.Helper()
	window := 8 * time.Second
	if testing.Short() {
		window = 500 * time.Millisecond
	}
	r := l.start(kind, "up", uploadConns, "-sockets", strconv.Itoa(uploadConns),
		"-bytes", strconv.Itoa(uploadBytes), "-tick", uploadTick.String())
	defer r.stop()
	server, client := r[0], r[1]
	warm, _ := quicTimes()
	time.Sleep(warm)
	errors := rcvbufErrors(l.t)
	before, began := server.ask(""), time.Now()
	clients := client.ask("")
	time.Sleep(window)
	after, took := server.ask(""), time.Since(began)
	clientsAfter := client.ask("")
	u := uploads{
		mib:       (after[quicDone] - before[quicDone]) / (1 << 20),
		cpu:       after[quicCPU] - before[quicCPU],
		clientCPU: clientsAfter[quicCPU] - clients[quicCPU],
		drops:     after[quicDrops] - before[quicDrops],
		told:      after[quicTold] - before[quicTold],
		errors:    rcvbufErrors(l.t) - errors,
		lost:      clientsAfter[quicLost] - clients[quicLost],
		sec:       took.Seconds(),
		ticks:     after[quicTicks] - before[quicTicks],
		due:       took.Seconds() / uploadTick.Seconds(),
		lags:      []float64{after[quicLag]},
	}
	if u.mib == 0 {
		l.t.Fatalf("%s: nothing has come up", kind)
	}
	return u
}

func uploadTable(names []string, sums []uploads) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\nsocket\tMiB/s\tserver µs/MiB\tclients µs/MiB\tlost/MiB\tlost\tkernel drops\tsocket says\tRcvbufErrors\tticks\tdue\tlag p99\t")
	for i, u := range sums {
		fmt.Fprintf(w, "%s\t%.1f\t%.0f\t%.0f\t%.2f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%v\t\n", names[i], u.mib/u.sec, u.cpu/u.mib/1e3,
			u.clientCPU/u.mib/1e3, u.lost/u.mib, u.lost, u.drops, u.told, u.errors, u.ticks, u.due, time.Duration(median(u.lags)))
	}
	_ = w.Flush()
	return b.String()
}
