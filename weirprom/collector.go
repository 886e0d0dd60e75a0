package weirprom

import (
	"maps"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirnet/weir"
	"github.com/weirnet/weir/dgram"
	"github.com/weirnet/weir/weirtls"
)

// Collector is a prometheus.Collector of loops, and of what else it is told of. NewCollector makes one. All of it is for
// any goroutine.
type Collector struct {
	mu         sync.Mutex
	loops      map[string]*weir.Loop          // guarded by mu
	handshakes map[string]*weirtls.Handshakes // guarded by mu
	dgrams     map[string]*dgram.Conn         // guarded by mu
}

// NewCollector makes a collector of loops by their names, which become the label "loop". The map is copied; it
// may be nil. One collector is enough for a program: Set adds loops later, and a registry takes only one that
// has the same metrics.
func NewCollector(loops map[string]*weir.Loop) *Collector {
	c := &Collector{
		loops:      make(map[string]*weir.Loop, len(loops)),
		handshakes: make(map[string]*weirtls.Handshakes),
		dgrams:     make(map[string]*dgram.Conn),
	}
	for name, l := range loops {
		c.Set(name, l)
	}
	return c
}

// Set has the collector tell of a loop by a name, instead of the one that had the name before. A nil loop takes
// the name away; a loop that has ended need not be, as its counters stay right. What is not UTF-8 in a name is
// replaced.
func (c *Collector) Set(name string, l *weir.Loop) { set(c, c.loops, name, l) }

// set puts what it is given under a name into one of the collector's maps, or takes the name away for nil.
func set[T any](c *Collector, m map[string]*T, name string, v *T) {
	name = strings.ToValidUTF8(name, "\uFFFD") // Prometheus refuses others, when it is too late to tell anybody
	c.mu.Lock()
	defer c.mu.Unlock()
	if v == nil {
		delete(m, name)
		return
	}
	m[name] = v
}

// Describe implements prometheus.Collector: the metrics are the same whatever the loops.
func (c *Collector) Describe(descs chan<- *prometheus.Desc) {
	for _, m := range metrics {
		descs <- m.desc
	}
	for _, h := range histograms {
		descs <- h.desc
	}
	descs <- sendErrors.desc
	for _, m := range tlsMetrics {
		descs <- m.desc
	}
	descs <- tlsFailed.desc
	for _, m := range dgramMetrics {
		descs <- m.desc
	}
	descs <- dgramErrors.desc
}

// Collect implements prometheus.Collector: it asks each loop, its handshakes, and each Conn for their Stats once.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	c.mu.Lock()
	loops, handshakes, dgrams := maps.Clone(c.loops), maps.Clone(c.handshakes), maps.Clone(c.dgrams)
	c.mu.Unlock()
	for name, l := range loops {
		s := l.Stats()
		collect(name, &s, out)
	}
	for name, h := range handshakes {
		s := h.Stats()
		collectTLS(name, &s, out)
	}
	for name, conn := range dgrams {
		s := conn.Stats()
		collectDgram(name, &s, out)
	}
}

// collect makes the metrics of one loop.
func collect(name string, s *weir.Stats, out chan<- prometheus.Metric) {
	tell(metrics, name, s, out)
	for _, h := range histograms {
		of := h.of(s)
		out <- prometheus.MustNewConstHistogram(h.desc, of.Count(), of.Sum().Seconds(), cumulative(of), name)
	}
	sendErrors.tellSendErrors(name, s.UDP.SendErrors, out)
}
