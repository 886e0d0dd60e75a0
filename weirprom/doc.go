// Package weirprom shows what event loops do to Prometheus.
//
//	reg.MustRegister(weirprom.NewCollector(map[string]*weir.Loop{"dns": loop}))
//
// A Collector reads [weir.Loop.Stats] when it is collected, and keeps nothing: a loop that nobody scrapes pays
// nothing for it. Each loop has its metrics under its name, as the label "loop", and goes on to have them after
// it has ended. What Stats sums over sockets is a sum here, too.
//
//   - weir_loop_…: turns, timers, slow callbacks, posted functions. weir_loop_timer_lag_seconds tells first
//     when a loop does not keep up; weir_loop_turn_seconds is the time at work, without waits.
//   - weir_udp_…: datagrams, system calls, and what was lost where. Of received datagrams,
//     weir_udp_datagrams_kernel_dropped_total counts those that the receive buffer had no room for; of sent ones,
//     weir_udp_send_errors_total tells by its label "class" what the kernel answered, in the words of
//     [weir.SendErrors].
//   - weir_tls_…: handshakes, and by its label "kind" why they failed, of loops that SetTLS was told of.
//   - weir_dgram_…: what weir_udp_… tells, of sockets of package dgram that SetDgram was told of, by their label "conn".
//
// Names get a prefix, and metrics more labels, by prometheus.WrapRegistererWith and its relatives.
//
// Limits: histograms have a bucket for each power of two, from a microsecond to a second. Sockets have no
// metrics of their own but by SetDgram: they come and go, and a label for each would make series without end.
// What weirhttp.Server.Stats counts has no metrics here: prometheus.NewCounterFunc makes one of each that is wanted.
package weirprom
