package weirhttp

import (
	"sync/atomic"

	"github.com/weirnet/weir/dgram"
)

// Stats is what a Server has done, and what is so now.
type Stats struct {
	HTTP1, HTTP2, HTTP3 ProtocolStats
	TCP, QUIC           SourceStats

	Panics uint64 // of handlers

	// UDP is of the sockets that are a *dgram.Conn, in the order they were served in.
	UDP []dgram.Stats
}

// ProtocolStats is about one version of HTTP.
type ProtocolStats struct {
	Requests uint64 // that came to the handler
	Conns    uint64 // that came out of their handshake
	Open     int    // of Conns: now
}

// SourceStats is about who connects.
type SourceStats struct {
	Open       int    // connections now, those in their handshake included
	Sources    int    // of Open: how many different ones
	Handshakes int    // in progress now
	Done       uint64 // handshakes
	Failed     uint64 // handshakes
	Retries    uint64 // QUIC: datagrams of clients that have to show first that their address is theirs

	Refused Refused
}

// Refused is how many connections were not let in, by why. QUIC counts each datagram that would have begun one.
type Refused struct {
	Conns      uint64 // MaxConns
	Source     uint64 // MaxConnsPerSource
	Handshakes uint64 // MaxHandshakes or MaxHandshakesPerSource, with TCP after a wait in vain
	Stopping   uint64 // the Server was shutting down
}

// Versions of HTTP, as counters has them.
const (
	kindHTTP1 = iota
	kindHTTP2
	kindHTTP3
	kinds
)

type counters struct {
	requests, conns [kinds]atomic.Uint64
	open            [kinds]atomic.Int64
	panics          atomic.Uint64
}

type refusals struct{ conns, source, handshakes, stopping atomic.Uint64 }

// Stats is how the Server stands.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.core
	if c == nil {
		return Stats{}
	}
	st := Stats{
		HTTP1: c.counts.protocol(kindHTTP1), HTTP2: c.counts.protocol(kindHTTP2), HTTP3: c.counts.protocol(kindHTTP3),
		TCP: c.tcp.stats(), QUIC: c.quic.stats(), Panics: c.counts.panics.Load(),
	}
	for _, e := range s.endpoints {
		if e.quic == nil {
			continue
		}
		if u, ok := e.quic.socket.(interface{ Stats() dgram.Stats }); ok {
			st.UDP = append(st.UDP, u.Stats())
		}
	}
	return st
}

func (c *counters) protocol(p int) ProtocolStats {
	return ProtocolStats{Requests: c.requests[p].Load(), Conns: c.conns[p].Load(), Open: int(c.open[p].Load())}
}

// opened counts a connection until the function that it returns is called.
func (c *counters) opened(p int) (closed func()) {
	c.conns[p].Add(1)
	c.open[p].Add(1)
	return func() { c.open[p].Add(-1) }
}

func (g *gate) stats() SourceStats {
	conns, sources := g.opened()
	return SourceStats{
		Open: conns, Sources: sources, Handshakes: len(g.slots),
		Done: g.done.Load(), Failed: g.failed.Load(), Retries: g.retries.Load(),
		Refused: Refused{
			Conns: g.refused.conns.Load(), Source: g.refused.source.Load(),
			Handshakes: g.refused.handshakes.Load(), Stopping: g.refused.stopping.Load(),
		},
	}
}
