package weirhttp

import "github.com/weirnet/weir/dgram"

// TransportStats is what a Transport has done so far, and what is so now.
type TransportStats struct {
	HTTP1 uint64 // responses, by protocol
	HTTP2 uint64
	HTTP3 uint64

	Repeats   uint64 // requests that were sent again, each time
	Fallbacks TransportFallbacks

	Dials       uint64 // QUIC handshakes that were begun, each with all addresses of an origin
	DialsFailed uint64

	Origins int // that are remembered
	AltSvc  int // of Origins: have announced HTTP/3
	Conns   int // QUIC connections that are open
	UDP     dgram.Stats
}

// TransportFallbacks counts the requests that were to go by HTTP/3 and went by TCP, by reason.
type TransportFallbacks struct {
	Late   uint64 // the handshake took longer than FallbackDelay
	Failed uint64 // it failed while the request waited
	Broken uint64 // it had failed before, and HTTP/3 rests
}

// Stats tells what the Transport has done so far.
func (t *Transport) Stats() TransportStats {
	t.mu.Lock()
	c := t.core
	t.mu.Unlock()
	if c == nil {
		return TransportStats{}
	}
	return c.stats()
}

func (c *transportCore) stats() TransportStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, now := c.counts, c.now()
	s.Origins, s.Conns = c.recent.Len(), len(c.conns)
	for e := c.recent.Front(); e != nil; e = e.Next() {
		if e.Value.(*origin).announced(now) {
			s.AltSvc++
		}
	}
	if c.udp != nil {
		s.UDP = c.udp.Stats()
	}
	return s
}

// count changes the counters.
func (c *transportCore) count(f func(*TransportStats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.counts)
}
