package weirtls

import (
	"net/netip"

	"github.com/weirnet/weir"
)

// way is a direction through a relay.
type way int

const (
	up   way = iota // from the client
	down            // from the server
)

// relay is somebody between a client and a server, on their loop.
type relay struct {
	ways [2]relayWay
	held [2]*weir.Conn // the one that a way's bytes come from
}

// relayWay is what passes, and what becomes of it.
type relayWay struct {
	seen   []byte
	cut    int                        // the way ends behind so many bytes; negative: as it does
	change func(offset int, b []byte) // in place, if not nil
	split  func() int                 // the size of the next piece, if not nil; each goes out in a turn of its own
	over   bool                       // nothing passes any more
	queue  []byte                     // what was not passed on yet
}

// relay has one between its address and that of a server, for one connection.
func (s *scene) relay(to netip.AddrPort) (*relay, netip.AddrPort) {
	r := &relay{ways: [2]relayWay{{cut: -1}, {cut: -1}}}
	at := s.listenPlain(weir.ListenerConfig{}, weir.ConnHandler{OnOpen: func(c *weir.Conn) {
		r.held[up] = c
		r.held[down] = s.dialPlain(to, weir.ConnConfig{}, r.handler(s, down))
		c.SetHandler(r.handler(s, up))
	}})
	return r, at
}

func (r *relay) handler(s *scene, w way) weir.ConnHandler {
	return weir.ConnHandler{
		OnData: func(_ *weir.Conn, b []byte) { r.pass(s, w, b) },
		OnEnd: func(*weir.Conn) {
			if x := &r.ways[w]; !x.over && len(x.queue) == 0 {
				r.end(w)
			} else {
				x.cut = len(x.seen) // behind what waits
			}
		},
		OnClose: func(_ *weir.Conn, err error) {
			if err != nil {
				_ = r.held[1-w].Reset()
			} else {
				_ = r.held[1-w].Close()
			}
		},
	}
}

// end tells the other side that there is no more.
func (r *relay) end(w way) {
	r.ways[w].over = true
	_ = r.held[1-w].CloseWrite()
}

func (r *relay) pass(s *scene, w way, b []byte) {
	x := &r.ways[w]
	if x.change != nil {
		x.change(len(x.seen), b)
	}
	x.seen = append(x.seen, b...)
	if x.over {
		return
	}
	end := x.cut >= 0 && len(x.seen) >= x.cut
	if end {
		b = b[:max(len(b)-(len(x.seen)-x.cut), 0)]
	}
	if x.split == nil {
		_ = r.held[1-w].Enqueue(b)
		if end {
			r.end(w)
		}
		return
	}
	if x.queue = append(x.queue, b...); len(x.queue) == len(b) && len(b) > 0 {
		r.passPiece(s, w)
	}
}

// passPiece passes a piece of what waits, and the next one in the next turn.
func (r *relay) passPiece(s *scene, w way) {
	x := &r.ways[w]
	n := min(max(x.split(), 1), len(x.queue))
	_ = r.held[1-w].Enqueue(x.queue[:n])
	x.queue = x.queue[n:]
	switch {
	case len(x.queue) > 0:
		s.l.NextTurn(func() { r.passPiece(s, w) })
	case x.cut >= 0 && len(x.seen) >= x.cut:
		r.end(w)
	}
}

// recordsOf are the types and lengths of the records in b, which they are all of.
func recordsOf(b []byte) (all []record) {
	for len(b) >= 5 {
		n := int(b[3])<<8 | int(b[4])
		all = append(all, record{b[0], n})
		b = b[min(5+n, len(b)):]
	}
	if len(b) > 0 {
		all = append(all, record{kind: 0, size: len(b)})
	}
	return all
}

type record struct {
	kind byte
	size int
}
