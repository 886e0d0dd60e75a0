//go:build linux && perf

package lab

import (
	"fmt"
	"testing"
)

// TestPerfTLSHandshake holds "CPU per handshake at most 1.1 of that of net/http's server on the same keys": whole
// connections, 32 at a time, with session tickets and without. Resumed ones are logged.
func TestPerfTLSHandshake(t *testing.T) {
	const most = 1.1
	names := []string{"weirtlsecho", "stdtlshttp", "stdtlsecho", "nbiotls", "weirtlsecho"}
	lab := newTLSLab(t)
	for _, c := range []struct {
		name, server, load string
		held               bool
	}{
		{"full", "-tickets", "-resume=false", true},
		{"without tickets", "-tickets=false", "-resume=false", true},
		{"resumed", "-tickets", "-resume", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			lab := lab.in(t)
			attempts(t, func() string {
				var servers []*child
				for _, name := range names {
					s := lab.server(-1, name, c.server)
					defer s.stop()
					servers = append(servers, s)
				}
				ratios := compare(t, "a handshake, "+c.name, names, func(i int) float64 {
					return handshakeCost(lab, servers[i], c.load)
				})
				if c.held && ratios[1] > most {
					return fmt.Sprintf("weirtls takes %.2f of net/http's processor time, more than %.2f", ratios[1], most)
				}
				return ""
			})
		})
	}
}

// handshakeCost is the server's processor time for a handshake and what belongs to its connection.
func handshakeCost(l tlsLab, s *child, resume string) float64 {
	l.t.Helper()
	load := l.load(s, "handshakes", 32, resume)
	defer load.stop()
	each := cost(s, load)
	done := load.ask("")
	if part := done[1] / done[0]; part > 0 && resume != "-resume" || part < 0.5 && resume == "-resume" {
		l.t.Errorf("%v has resumed %.0f of %.0f, with %s", load.cmd, done[1], done[0], resume)
	}
	return each
}
