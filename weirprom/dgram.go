package weirprom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirnet/weir"
	"github.com/weirnet/weir/dgram"
)

// SetDgram has the collector tell of a Conn of package dgram by a name, which becomes the label "conn". It is for those
// that live as long as the program, such as that of a QUIC server (weirhttp.Listen returns a Server's): see the limits of
// this package. Nil takes the name away.
func (c *Collector) SetDgram(name string, conn *dgram.Conn) { set(c, c.dgrams, name, conn) }

func dgramCounter(name, help string, value func(*dgram.Stats) uint64) metric[dgram.Stats] {
	return counterOf(describeDgram(name, help), value)
}

func dgramGauge(name, help string, value func(*dgram.Stats) int) metric[dgram.Stats] {
	return gaugeOf(describeDgram(name, help), value)
}

func describeDgram(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("weir_dgram_"+name, help, append([]string{"conn"}, labels...), nil)
}

// dgramMetrics are in the order of the fields of Stats. A field that has none fails TestEveryDgramField.
var dgramMetrics = []metric[dgram.Stats]{
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

var dgramErrors = labelled{describeDgram("send_errors_total", sendErrorsHelp, "class")}

// collectDgram makes the metrics of one Conn.
func collectDgram(name string, s *dgram.Stats, out chan<- prometheus.Metric) {
	tell(dgramMetrics, name, s, out)
	dgramErrors.tellSendErrors(name, weir.SendErrors(s.SendErrors), out)
}
