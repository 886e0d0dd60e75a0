//go:build linux && perf

package lab

import (
	"strconv"
	"syscall"
	"testing"
	"time"
)

// TestPerfTLSIdle holds "an idle TLS connection has no goroutine, and takes at most 8 KiB of heap and stacks after its
// handshake, 9 KiB once it has sent 1 MiB, and 40 KiB once it has received that", beside crypto/tls over net, and nbio.
func TestPerfTLSIdle(t *testing.T) {
	const conns, busyConns, bytes = 10_000, 1000, 1 << 20
	needDescriptors(t, conns+100)
	lab := newTLSLab(t)
	for _, c := range []struct {
		name, do, load string
		conns, bytes   int
		most           float64
		servers        []string
	}{
		{"handshake", "echo", "hold", conns, 0, 8 << 10, []string{"weirtlsecho", "stdtlsecho", "nbiotls"}},
		{"sent", "pour", "down", busyConns, bytes, 9 << 10, []string{"weirtlsecho", "stdtlsecho"}},
		{"received", "sink", "up", busyConns, bytes, 40 << 10, []string{"weirtlsecho", "stdtlsecho"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if testing.Short() {
				c.conns = min(c.conns, busyConns)
			}
			lab := lab.in(t)
			n := float64(c.conns)
			moved := []string{"-bytes", strconv.Itoa(c.bytes)}
			for _, name := range c.servers {
				s := lab.server(-1, name, append([]string{"-do", c.do}, moved...)...)
				before := s.ask("gc")
				load := lab.load(s, c.load, c.conns, moved...)
				time.Sleep(300 * time.Millisecond) // the load has done its part of the last ones; so must the server
				after := s.ask("gc")
				rss, heap, goroutines := (after[1]-before[1])/n, (after[2]-before[2])/n, after[3]-before[3]
				t.Logf("%s: %d connections: heap and stacks %.0f bytes each, resident %.0f, goroutines %.2f",
					name, c.conns, heap, rss, goroutines/n)
				load.stop()
				s.stop()
				if name != "weirtlsecho" {
					continue
				}
				if done := after[4] - before[4]; done != n {
					t.Errorf("%.0f of %.0f handshakes are done", done, n)
				}
				if heap > c.most {
					t.Errorf("%.0f bytes each, more than %.0f", heap, c.most)
				}
				if goroutines > 0 {
					t.Errorf("%.0f goroutines more than before", goroutines)
				}
			}
		})
	}
}

// needDescriptors raises the limit of descriptors, which the children have, too, to n where it is lower.
func needDescriptors(t *testing.T, n uint64) {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if limit.Max >= n { // programs in Go take what they may have
		return
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: n, Max: n}); err != nil {
		t.Skipf("%d descriptors are needed, of which there are %d: %v", n, limit.Max, err)
	}
}
