package weirhttp

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
)

const (
	defaultConns               = 65536
	defaultConnsPerSource      = 1024
	defaultHandshakes          = 1024
	defaultHandshakesPerSource = 64
)

// limits are those of a gate, with their defaults.
type limits struct{ conns, connsPerSource, handshakes, handshakesPerSource int }

// limits has no source fill what is for all, and no handshakes what is for connections.
func (s *Server) limits() limits {
	half := func(n int) int { return max(n/2, 1) }
	l := limits{conns: limitOr(s.MaxConns, defaultConns)}
	l.connsPerSource = limitOr(s.MaxConnsPerSource, min(defaultConnsPerSource, half(l.conns)))
	l.handshakes = min(limitOr(s.MaxHandshakes, defaultHandshakes), half(l.conns))
	l.handshakesPerSource = min(limitOr(s.MaxHandshakesPerSource, defaultHandshakesPerSource), half(l.handshakes), half(l.connsPerSource))
	return l
}

// gate counts the connections of TCP, or of QUIC, and their handshakes, by source.
type gate struct {
	limits
	slots chan struct{} // one in it for each handshake in progress

	mu      sync.Mutex
	open    int                    // guarded by mu
	sources map[netip.Addr]*source // guarded by mu; those with something open

	refused refusals
	retries atomic.Uint64
	done    atomic.Uint64
	failed  atomic.Uint64
}

// source is who connects from an address.
type source struct {
	open  int           // guarded by the gate's mu
	slots chan struct{} // as the gate's
}

func newGate(l limits) *gate {
	return &gate{limits: l, slots: make(chan struct{}, l.handshakes), sources: map[netip.Addr]*source{}}
}

// enter counts a connection, or returns nil and the count of why it cannot come in.
func (g *gate) enter(remote net.Addr) (*admission, *atomic.Uint64) {
	key := sourceOf(remote)
	g.mu.Lock()
	defer g.mu.Unlock()
	src := g.sources[key]
	switch {
	case g.open >= g.conns:
		return nil, &g.refused.conns
	case src != nil && key.IsValid() && src.open >= g.connsPerSource:
		return nil, &g.refused.source
	case src == nil:
		slots := g.handshakesPerSource
		if !key.IsValid() { // not of the network: nobody's
			slots = g.handshakes
		}
		src = &source{slots: make(chan struct{}, slots)}
		g.sources[key] = src
	}
	g.open++
	src.open++
	return &admission{gate: g, key: key, source: src}, nil
}

// crowded says whether more handshakes than half are in progress, of all or of the source.
func (g *gate) crowded(remote net.Addr) bool {
	full := func(slots chan struct{}) bool { return 2*len(slots) >= cap(slots) }
	if full(g.slots) {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	src := g.sources[sourceOf(remote)]
	return src != nil && full(src.slots)
}

// opened is how many connections there are, and of how many sources.
func (g *gate) opened() (conns, sources int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open, len(g.sources)
}

// admission is a connection that was let in. Its methods are called one after the other.
type admission struct {
	gate   *gate
	key    netip.Addr
	source *source
	began  bool // has its slots
}

// wait waits for a slot for the connection's handshake.
func (a *admission) wait(ctx context.Context) error {
	select {
	case a.source.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case a.gate.slots <- struct{}{}:
	case <-ctx.Done():
		<-a.source.slots
		return ctx.Err()
	}
	a.began = true
	return nil
}

// try begins the handshake at once, or not at all.
func (a *admission) try() bool {
	select {
	case a.source.slots <- struct{}{}:
	default:
		return false
	}
	select {
	case a.gate.slots <- struct{}{}:
	default:
		<-a.source.slots
		return false
	}
	a.began = true
	return true
}

// shaken tells how the handshake ended, if it was in progress.
func (a *admission) shaken(well bool) {
	if !a.began {
		return
	}
	a.began = false
	<-a.gate.slots
	<-a.source.slots
	if well {
		a.gate.done.Add(1)
	} else {
		a.gate.failed.Add(1)
	}
}

// leave is called once.
func (a *admission) leave() {
	a.gate.mu.Lock()
	defer a.gate.mu.Unlock()
	a.gate.open--
	if a.source.open--; a.source.open == 0 {
		delete(a.gate.sources, a.key)
	}
}
