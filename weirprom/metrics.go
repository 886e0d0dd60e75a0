package weirprom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirnet/weir"
)

// metric is a number of Stats. A field of Stats that has none fails TestEveryField.
type metric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*weir.Stats) float64
}

func counter(name, help string, value func(*weir.Stats) uint64) metric {
	return metric{describe(name, help), prometheus.CounterValue, func(s *weir.Stats) float64 { return float64(value(s)) }}
}

func gauge(name, help string, value func(*weir.Stats) int) metric {
	return metric{describe(name, help), prometheus.GaugeValue, func(s *weir.Stats) float64 { return float64(value(s)) }}
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("weir_"+name, help, append([]string{"loop"}, labels...), nil)
}

// metrics are in the order of the fields of Stats, and say what their comments say.
var metrics = []metric{
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

// sendErrors is a counter with a label for each field of SendErrors.
var sendErrors = struct {
	desc    *prometheus.Desc
	classes []class
}{
	describe("udp_send_errors_total",
		"Answers of the kernel to sends, by what they mean: wait (the buffer was full), stale (about an earlier datagram), "+
			"offload (a train or traffic class was refused), size, lost, caller, dead.", "class"),
	[]class{
		{"wait", func(e *weir.SendErrors) uint64 { return e.Wait }},
		{"stale", func(e *weir.SendErrors) uint64 { return e.Stale }},
		{"offload", func(e *weir.SendErrors) uint64 { return e.Offload }},
		{"size", func(e *weir.SendErrors) uint64 { return e.Size }},
		{"lost", func(e *weir.SendErrors) uint64 { return e.Lost }},
		{"caller", func(e *weir.SendErrors) uint64 { return e.Caller }},
		{"dead", func(e *weir.SendErrors) uint64 { return e.Dead }},
	},
}

// class is a value of the label.
type class struct {
	name  string
	count func(*weir.SendErrors) uint64
}
