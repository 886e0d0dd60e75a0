package weirprom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirnet/weir"
)

// metric is a number of a Stats: a loop's, or that of another package.
type metric[S any] struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*S) float64
}

// tell makes the metrics of what has that name.
func tell[S any](all []metric[S], name string, s *S, out chan<- prometheus.Metric) {
	for _, m := range all {
		out <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(s), name)
	}
}

func counterOf[S any](desc *prometheus.Desc, value func(*S) uint64) metric[S] {
	return metric[S]{desc, prometheus.CounterValue, func(s *S) float64 { return float64(value(s)) }}
}

func gaugeOf[S any](desc *prometheus.Desc, value func(*S) int) metric[S] {
	return metric[S]{desc, prometheus.GaugeValue, func(s *S) float64 { return float64(value(s)) }}
}

func counter(name, help string, value func(*weir.Stats) uint64) metric[weir.Stats] {
	return counterOf(describe(name, help), value)
}

func gauge(name, help string, value func(*weir.Stats) int) metric[weir.Stats] {
	return gaugeOf(describe(name, help), value)
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("weir_"+name, help, append([]string{"loop"}, labels...), nil)
}

// metrics are in the order of the fields of Stats, and say what their comments say. A field that has none fails
// TestEveryField.
var metrics = []metric[weir.Stats]{
	counter("loop_turns_total", "Turns of the loop.",
		func(s *weir.Stats) uint64 { return s.Turns }),
	counter("loop_timers_fired_total", "Timers that were called.",
		func(s *weir.Stats) uint64 { return s.TimersFired }),
	counter("loop_slow_callbacks_total", "Callbacks that took longer than Config.SlowCallback.",
		func(s *weir.Stats) uint64 { return s.Overruns }),
	gauge("loop_posts_waiting", "Posted functions that wait now.",
		func(s *weir.Stats) int { return s.Waiting }),

	counter("udp_datagrams_received_total", "Datagrams received from the kernel.",
		func(s *weir.Stats) uint64 { return s.UDP.Received }),
	counter("udp_received_bytes_total", "Bytes of the datagrams received.",
		func(s *weir.Stats) uint64 { return s.UDP.ReceivedBytes }),
	counter("udp_datagrams_received_joined_total", "Datagrams received that came as part of a train (GRO).",
		func(s *weir.Stats) uint64 { return s.UDP.ReceivedJoined }),
	counter("udp_receive_calls_total", "System calls to receive.",
		func(s *weir.Stats) uint64 { return s.UDP.ReceiveCalls }),
	counter("udp_receive_batches_total", "System calls to receive that brought datagrams.",
		func(s *weir.Stats) uint64 { return s.UDP.ReceiveBatches }),
	counter("udp_receive_errors_total", "Errors that the kernel had for a socket.",
		func(s *weir.Stats) uint64 { return s.UDP.ReceiveErrors }),
	counter("udp_datagrams_injected_total", "Datagrams given by Inject.",
		func(s *weir.Stats) uint64 { return s.UDP.Injected }),
	counter("udp_datagrams_exported_total", "Datagrams received, but handed over by Export.",
		func(s *weir.Stats) uint64 { return s.UDP.Exported }),
	counter("udp_bound_stops_total", "Visits of a socket that ended because its share was used up.",
		func(s *weir.Stats) uint64 { return s.UDP.BoundStops }),
	counter("udp_datagrams_truncated_total", "Datagrams longer than UDPConfig.MaxDatagramBytes.",
		func(s *weir.Stats) uint64 { return s.UDP.Truncated }),
	counter("udp_datagrams_discarded_total", "Datagrams received, but not delivered when their socket was closed.",
		func(s *weir.Stats) uint64 { return s.UDP.Discarded }),
	counter("udp_datagrams_kernel_dropped_total", "Datagrams dropped by the kernel, as the receive buffer was full or a checksum wrong.",
		func(s *weir.Stats) uint64 { return s.UDP.KernelDropped }),

	counter("udp_datagrams_sent_total", "Datagrams taken by the kernel.",
		func(s *weir.Stats) uint64 { return s.UDP.Sent }),
	counter("udp_sent_bytes_total", "Bytes of the datagrams taken by the kernel.",
		func(s *weir.Stats) uint64 { return s.UDP.SentBytes }),
	counter("udp_datagrams_sent_joined_total", "Datagrams taken by the kernel as part of a train (GSO).",
		func(s *weir.Stats) uint64 { return s.UDP.SentJoined }),
	counter("udp_send_calls_total", "System calls to send.",
		func(s *weir.Stats) uint64 { return s.UDP.SendCalls }),
	counter("udp_datagrams_send_lost_total", "Datagrams taken by Send, but refused by the kernel.",
		func(s *weir.Stats) uint64 { return s.UDP.SendLost }),
	counter("udp_datagrams_unsent_total", "Datagrams taken by Send, and still queued when their socket was closed.",
		func(s *weir.Stats) uint64 { return s.UDP.Unsent }),
	counter("udp_sends_refused_total", "Calls of Send that answered ErrWouldBlock.",
		func(s *weir.Stats) uint64 { return s.UDP.Refused }),

	counter("udp_reports_total", "Entries taken from error queues, such as ICMP errors.",
		func(s *weir.Stats) uint64 { return s.UDP.Reports }),
	counter("udp_reports_dropped_total", "Entries of error queues of a kind too many for OnError to be told of.",
		func(s *weir.Stats) uint64 { return s.UDP.ReportsDropped }),
	counter("udp_errors_unreported_total", "Errors that OnError was not told of, as there were too many.",
		func(s *weir.Stats) uint64 { return s.UDP.Unreported }),

	gauge("udp_datagrams_undelivered", "Datagrams received, and not delivered yet.",
		func(s *weir.Stats) int { return s.UDP.Undelivered }),
	gauge("udp_datagrams_queued", "Datagrams taken by Send, and not by the kernel yet.",
		func(s *weir.Stats) int { return s.UDP.Queued }),
	gauge("udp_queued_bytes", "Bytes taken by Send, and not by the kernel yet.",
		func(s *weir.Stats) int { return s.UDP.QueuedBytes }),
	gauge("udp_receive_buffer_used_bytes", "What receive buffers of the kernel hold, as it counts.",
		func(s *weir.Stats) int { return s.UDP.RecvQueuedBytes }),
	gauge("udp_receive_buffer_limit_bytes", "What receive buffers of the kernel may hold, as it counts.",
		func(s *weir.Stats) int { return s.UDP.RecvBufferBytes }),
	gauge("udp_send_buffer_limit_bytes", "What send buffers of the kernel may hold, as it counts.",
		func(s *weir.Stats) int { return s.UDP.SendBufferBytes }),

	counter("stream_connections_accepted_total", "Connections accepted.",
		func(s *weir.Stats) uint64 { return s.Streams.Accepted }),
	counter("stream_connections_refused_total", "Connections closed at once, as there were no descriptors for more.",
		func(s *weir.Stats) uint64 { return s.Streams.AcceptRefused }),
	counter("stream_accept_errors_total", "Accepts that failed.",
		func(s *weir.Stats) uint64 { return s.Streams.AcceptErrors }),
	counter("stream_connections_dialled_total", "Connections dialled or adopted that came about.",
		func(s *weir.Stats) uint64 { return s.Streams.Dialled }),
	counter("stream_dial_errors_total", "Connections dialled or adopted that did not come about.",
		func(s *weir.Stats) uint64 { return s.Streams.DialErrors }),
	counter("stream_connections_closed_total", "Connections closed, without those that did not come about.",
		func(s *weir.Stats) uint64 { return s.Streams.Closed }),
	counter("stream_connections_broken_total", "Connections closed by an error, a time limit included.",
		func(s *weir.Stats) uint64 { return s.Streams.Broken }),
	counter("stream_timeouts_total", "Time limits of connections that were over.",
		func(s *weir.Stats) uint64 { return s.Streams.Timeouts }),
	counter("stream_read_bytes_total", "Bytes read from connections.",
		func(s *weir.Stats) uint64 { return s.Streams.ReadBytes }),
	counter("stream_discarded_bytes_total", "Bytes read and not delivered, as their connection was closed.",
		func(s *weir.Stats) uint64 { return s.Streams.Discarded }),
	counter("stream_read_calls_total", "System calls to read from connections.",
		func(s *weir.Stats) uint64 { return s.Streams.ReadCalls }),
	counter("stream_written_bytes_total", "Bytes taken by the kernel.",
		func(s *weir.Stats) uint64 { return s.Streams.WrittenBytes }),
	counter("stream_write_calls_total", "System calls to write to connections.",
		func(s *weir.Stats) uint64 { return s.Streams.WriteCalls }),
	counter("stream_unsent_bytes_total", "Bytes taken by Write, and still queued when their connection was closed.",
		func(s *weir.Stats) uint64 { return s.Streams.UnsentBytes }),
	counter("stream_writes_refused_total", "Writes that answered ErrWouldBlock.",
		func(s *weir.Stats) uint64 { return s.Streams.Refused }),
	counter("stream_bound_stops_total", "Visits of a listener or connection that ended because its share was used up.",
		func(s *weir.Stats) uint64 { return s.Streams.BoundStops }),
	counter("stream_files_received_total", "Descriptors that came over unix connections.",
		func(s *weir.Stats) uint64 { return s.Streams.FilesReceived }),
	counter("stream_files_sent_total", "Descriptors sent over unix connections.",
		func(s *weir.Stats) uint64 { return s.Streams.FilesSent }),

	gauge("stream_connections", "Connections that are open or on their way.",
		func(s *weir.Stats) int { return s.Streams.Open }),
	gauge("stream_queued_bytes", "Bytes taken by Write, and not by the kernel yet.",
		func(s *weir.Stats) int { return s.Streams.QueuedBytes }),
}

const sendErrorsHelp = "Answers of the kernel to sends, by what they mean: wait (the buffer was full), stale (about an earlier " +
	"datagram), offload (a train or traffic class was refused), size, lost, caller, dead."

// labelled is a counter with one more label.
type labelled struct{ desc *prometheus.Desc }

var sendErrors = labelled{describe("udp_send_errors_total", sendErrorsHelp, "class")}

// tellSendErrors has a value of the label for each field of SendErrors.
func (l labelled) tellSendErrors(name string, e weir.SendErrors, out chan<- prometheus.Metric) {
	for class, n := range map[string]uint64{
		"wait": e.Wait, "stale": e.Stale, "offload": e.Offload, "size": e.Size, "lost": e.Lost, "caller": e.Caller, "dead": e.Dead,
	} {
		out <- prometheus.MustNewConstMetric(l.desc, prometheus.CounterValue, float64(n), name, class)
	}
}
