package weirprom

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirnet/weir/dgram"
)

// SetDgram has the collector tell of a Conn of package dgram by a name, which becomes the label "conn". It is for those
// that live as long as the program, such as that of a QUIC server (weirhttp.Listen returns a Server's): see the limits of
// this package. Nil takes the name away.
func (c *Collector) SetDgram(name string, conn *dgram.Conn) {
	name = strings.ToValidUTF8(name, "\uFFFD")
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn == nil {
		delete(c.dgrams, name)
		return
	}
	if c.dgrams == nil {
		c.dgrams = make(map[string]*dgram.Conn)
	}
	c.dgrams[name] = conn
}

// dgramMetric is a number of dgram.Stats.
type dgramMetric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*dgram.Stats) float64
}

func dgramCounter(name, help string, value func(*dgram.Stats) uint64) dgramMetric {
	return dgramMetric{describeDgram(name, help), prometheus.CounterValue, func(s *dgram.Stats) float64 { return float64(value(s)) }}
}

func dgramGauge(name, help string, value func(*dgram.Stats) int) dgramMetric {
	return dgramMetric{describeDgram(name, help), prometheus.GaugeValue, func(s *dgram.Stats) float64 { return float64(value(s)) }}
}

func describeDgram(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("weir_dgram_"+name, help, append([]string{"conn"}, labels...), nil)
}

// dgramMetrics are in the order of the fields of Stats.
var dgramMetrics = []dgramMetric{
	dgramCounter("received_total", "Datagrams received from the kernel.",
		func(s *dgram.Stats) uint64 { return s.Received }),
	dgramCounter("received_bytes_total", "Bytes of the datagrams received.",
		func(s *dgram.Stats) uint64 { return s.ReceivedBytes }),
	dgramCounter("received_joined_total", "Datagrams received that came as part of a train (GRO).",
		func(s *dgram.Stats) uint64 { return s.ReceivedJoined }),
	dgramCounter("receive_calls_total", "System calls to receive.",
		func(s *dgram.Stats) uint64 { return s.ReceiveCalls }),
	dgramCounter("receive_batches_total", "System calls to receive that brought datagrams.",
		func(s *dgram.Stats) uint64 { return s.ReceiveBatches }),
	dgramCounter("receive_errors_total", "Errors that the kernel had for the socket, passed over.",
		func(s *dgram.Stats) uint64 { return s.ReceiveErrors }),
	dgramCounter("filtered_total", "Datagrams refused by the filter of the Conn.",
		func(s *dgram.Stats) uint64 { return s.Filtered }),
	dgramCounter("truncated_total", "Datagrams longer than the buffer that they were read into.",
		func(s *dgram.Stats) uint64 { return s.Truncated }),
	dgramCounter("discarded_total", "Datagrams received, but not read when the Conn was closed.",
		func(s *dgram.Stats) uint64 { return s.Discarded }),
	dgramCounter("kernel_dropped_total", "Datagrams dropped by the kernel, as the receive buffer was full or a checksum wrong.",
		func(s *dgram.Stats) uint64 { return s.KernelDropped }),

	dgramCounter("sent_total", "Datagrams taken by the kernel.",
		func(s *dgram.Stats) uint64 { return s.Sent }),
	dgramCounter("sent_bytes_total", "Bytes of the datagrams taken by the kernel.",
		func(s *dgram.Stats) uint64 { return s.SentBytes }),
	dgramCounter("sent_joined_total", "Datagrams taken by the kernel as part of a train (GSO).",
		func(s *dgram.Stats) uint64 { return s.SentJoined }),
	dgramCounter("send_calls_total", "System calls to send.",
		func(s *dgram.Stats) uint64 { return s.SendCalls }),
	dgramCounter("send_lost_total", "Datagrams refused by the kernel.",
		func(s *dgram.Stats) uint64 { return s.SendLost }),

	dgramGauge("undelivered", "Datagrams received, and not read yet.",
		func(s *dgram.Stats) int { return s.Undelivered }),
	dgramGauge("receive_buffer_used_bytes", "What the receive buffer of the kernel holds, as it counts.",
		func(s *dgram.Stats) int { return s.RecvQueuedBytes }),
	dgramGauge("receive_buffer_limit_bytes", "What the receive buffer of the kernel may hold, as it counts.",
		func(s *dgram.Stats) int { return s.RecvBufferBytes }),
	dgramGauge("send_buffer_limit_bytes", "What the send buffer of the kernel may hold, as it counts.",
		func(s *dgram.Stats) int { return s.SendBufferBytes }),
}

// dgramErrors is a counter with a label for each field of SendErrors.
var dgramErrors = struct {
	desc    *prometheus.Desc
	classes []dgramClass
}{
	describeDgram("send_errors_total", "Answers of the kernel to sends, by what they mean, as of weir_udp_send_errors_total.", "class"),
	[]dgramClass{
		{"wait", func(e *dgram.SendErrors) uint64 { return e.Wait }},
		{"stale", func(e *dgram.SendErrors) uint64 { return e.Stale }},
		{"offload", func(e *dgram.SendErrors) uint64 { return e.Offload }},
		{"size", func(e *dgram.SendErrors) uint64 { return e.Size }},
		{"lost", func(e *dgram.SendErrors) uint64 { return e.Lost }},
		{"caller", func(e *dgram.SendErrors) uint64 { return e.Caller }},
		{"dead", func(e *dgram.SendErrors) uint64 { return e.Dead }},
	},
}

// dgramClass is a value of the label.
type dgramClass struct {
	name  string
	count func(*dgram.SendErrors) uint64
}

// collectDgram makes the metrics of one Conn.
func collectDgram(name string, s *dgram.Stats, out chan<- prometheus.Metric) {
	for _, m := range dgramMetrics {
		out <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(s), name)
	}
	for _, class := range dgramErrors.classes {
		out <- prometheus.MustNewConstMetric(dgramErrors.desc, prometheus.CounterValue, float64(class.count(&s.SendErrors)), name, class.name)
	}
}
