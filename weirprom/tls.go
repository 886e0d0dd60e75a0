package weirprom

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirnet/weir/weirtls"
)

// SetTLS has the collector tell of a loop's TLS handshakes by a name, which should be the loop's: see Set. Nil takes the
// name away.
func (c *Collector) SetTLS(name string, h *weirtls.Handshakes) { set(c, c.handshakes, name, h) }

// tlsMetrics are in the order of the fields of Stats, without Failed.
var tlsMetrics = []metric[weirtls.Stats]{
	{describe("tls_handshakes_begun_total", "TLS handshakes that had their first turn."), prometheus.CounterValue,
		func(s *weirtls.Stats) float64 { return float64(s.Begun) }},
	{describe("tls_handshakes_done_total", "TLS handshakes that came to a connection."), prometheus.CounterValue,
		func(s *weirtls.Stats) float64 { return float64(s.Done) }},
	{describe("tls_handshakes_resumed_total", "TLS handshakes that went on with an earlier session."), prometheus.CounterValue,
		func(s *weirtls.Stats) float64 { return float64(s.Resumed) }},
	{describe("tls_handshakes_given_up_total", "TLS handshakes that the program, or the loop's end, gave up."), prometheus.CounterValue,
		func(s *weirtls.Stats) float64 { return float64(s.GivenUp) }},
	{describe("tls_handshakes_in_progress", "TLS handshakes begun and not done."), prometheus.GaugeValue,
		func(s *weirtls.Stats) float64 { return float64(s.InProgress) }},
	{describe("tls_handshakes_waiting", "TLS connections whose handshake has not begun."), prometheus.GaugeValue,
		func(s *weirtls.Stats) float64 { return float64(s.Waiting) }},
}

// tlsFailed is a counter with a label for each kind of failed handshakes.
var tlsFailed = labelled{describe("tls_handshakes_failed_total", "TLS handshakes that failed, by kind: "+tlsKinds()+".", "kind")}

func tlsKinds() string {
	var names []string
	for k := range weirtls.Kinds {
		names = append(names, weirtls.Kind(k).String())
	}
	return strings.Join(names, ", ")
}

// collectTLS makes the metrics of one loop's handshakes.
func collectTLS(name string, s *weirtls.Stats, out chan<- prometheus.Metric) {
	tell(tlsMetrics, name, s, out)
	for k, n := range s.Failed {
		out <- prometheus.MustNewConstMetric(tlsFailed.desc, prometheus.CounterValue, float64(n), name, weirtls.Kind(k).String())
	}
}
