package weirtls

import (
	"net/netip"

	"github.com/weirnet/weir"
)

// Listen accepts TLS connections at a local TCP address, as weir's ListenTCP does.
//
//   - Errors: a Config that makes no sense; those of ListenTCP.
func Listen(l *weir.Loop, local netip.AddrPort, cfg Config, listen weir.ListenerConfig, h ListenerHandler) (*weir.Listener, error) {
	below, err := h.below(cfg)
	if err != nil {
		return nil, err
	}
	return l.ListenTCP(local, listen, below)
}

// ListenUnix accepts TLS connections at a unix socket, as weir's ListenUnix does.
//
//   - Errors: a Config that makes no sense; those of ListenUnix.
func ListenUnix(l *weir.Loop, name string, cfg Config, listen weir.ListenerConfig, h ListenerHandler) (*weir.Listener, error) {
	below, err := h.below(cfg)
	if err != nil {
		return nil, err
	}
	return l.ListenUnix(name, listen, below)
}

func (h ListenerHandler) below(cfg Config) (weir.ListenerHandler, error) {
	conn, err := Accept(cfg, h.Conn)
	return weir.ListenerHandler{Conn: conn, OnError: h.OnError, OnClose: h.OnClose}, err
}

// Accept is a handler for the connections of any listener of weir, such as one that was adopted, or for one that is
// adopted or dialled itself: they begin with TLS as the server.
//
//   - Errors: a Config that makes no sense.
func Accept(cfg Config, h Handler) (weir.ConnHandler, error) {
	set, err := cfg.resolve(AsServer, h)
	if err != nil {
		return weir.ConnHandler{}, err
	}
	accept := func(raw *weir.Conn) *Conn {
		c := newConn(raw.Loop(), set)
		c.attach(raw)
		return c
	}
	conn := below(func(raw *weir.Conn) { accept(raw).open(raw) })
	conn.OnClose = func(raw *weir.Conn, err error) {
		if _, came := raw.Data.(*Conn); !came {
			accept(raw)
		}
		connOf(raw).closed(err)
	}
	return conn, nil
}
