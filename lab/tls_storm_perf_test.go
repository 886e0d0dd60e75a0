//go:build linux && perf

package lab

import (
	"fmt"
	"testing"
	"time"
)

const (
	stormConns = 1000
	quietConns = 20
	stormTick  = 20 * time.Millisecond
	maxShare   = 2 * time.Millisecond // the default of weir.Config, Q
)

// TestPerfTLSStorm holds "1,000 handshakes that begin at once cost connections that are open, at p99, no more than the
// same storm costs them that is aimed at another process, and Q, and twice the longest step of a handshake; and a timer
// of 20 ms no tick in twenty". A whole handshake's processor time stands for its longest step, which is most of it.
func TestPerfTLSStorm(t *testing.T) {
	lab := newTLSLab(t)
	args := []string{"-tick", stormTick.String()}
	server, other := lab.server(0, "weirtlsecho", args...), lab.server(0, "weirtlsecho", args...)
	step := time.Duration(handshakeCost(lab, other, "-resume=false"))
	quiet := lab.load(server, "echo", quietConns, "-size", "64")
	attempts(t, func() string {
		var got, control []float64
		var ticks, due float64
		for range rounds() {
			control = append(control, raise(lab, other, server, quiet).p99)
			s := raise(lab, server, server, quiet)
			got = append(got, s.p99)
			ticks += s.ticks
			due += s.due
		}
		p99, most := time.Duration(median(got)), time.Duration(median(control))+maxShare+2*step
		t.Logf("p99 %v, in the control %v, a handshake takes %v: at most %v; %.0f of %.0f ticks",
			p99, time.Duration(median(control)), step, most, ticks, due)
		switch {
		case p99 > most:
			return fmt.Sprintf("open connections wait %v at p99, more than %v", p99, most)
		case ticks < 0.95*due:
			return fmt.Sprintf("%.0f of %.0f ticks", ticks, due)
		}
		return ""
	})
}

// stormResult is what a storm did to the server that the quiet connections are with.
type stormResult struct{ p99, ticks, due float64 }

func raise(l tlsLab, target, server, quiet *child) (r stormResult) {
	l.t.Helper()
	storm := l.load(target, "storm", stormConns)
	defer storm.stop()
	time.Sleep(200 * time.Millisecond)
	quiet.ask("")
	before, began := server.ask(""), time.Now()
	done := storm.ask("")
	time.Sleep(50 * time.Millisecond) // so that messages which wait now are counted
	after, took := server.ask(""), time.Since(began)
	delays := quiet.ask("")
	if done[0] != stormConns {
		l.t.Errorf("%.0f of %d handshakes have come about", done[0], stormConns)
	}
	r = stormResult{p99: delays[2], ticks: after[5] - before[5], due: took.Seconds() / stormTick.Seconds()}
	l.t.Logf("storm of %v at the server %v: %.0f echoes, p50 %v, p99 %v; %.0f of %.1f ticks", time.Duration(done[1]),
		target == server, delays[0], time.Duration(delays[1]), time.Duration(delays[2]), r.ticks, r.due)
	return r
}
