package weirtls

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weirnet/weir"
	"github.com/weirnet/weir/weirtest"
)

// sweptEcho is a scenario: a server, and clients on the same loop, whose messages come back.
type sweptEcho struct {
	blocking bool
	patient  bool // connections may wait at the end, until the loop is stopped
}

// sweptLimit is long for a connection in memory, and short for who looks at it each 30 ms.
const sweptLimit = time.Second

var sweptConn = weir.ConnConfig{CloseTimeout: sweptLimit}

func (x sweptEcho) config(cfg *tls.Config) Config {
	return Config{TLS: cfg, Blocking: x.blocking, HandshakeTimeout: sweptLimit, CloseTimeout: sweptLimit}
}

// sweptPair is both ends of a connection, as far as they were told.
type sweptPair struct {
	server, client sweptEnd
}

type sweptEnd struct {
	opened, done, ended bool
	wrote               int // bytes that Write took
	got                 []byte
	closes              int
	err                 error
	wrong               error
}

func (x sweptEcho) setup(l *weir.Loop) (func(error) error, error) {
	message := pattern(40_000)
	pairs := []*sweptPair{{}, {}}
	stuck := 0
	for i, p := range pairs {
		if err := x.pair(l, p, message, i == 0); err != nil {
			return nil, err
		}
	}
	if !x.patient {
		l.AfterFunc(4*sweptLimit, func() { stuck = l.Stats().Streams.Open })
	}
	return func(ended error) error {
		var all []error
		for i, p := range pairs {
			if err := p.check(message, x.patient); err != nil {
				all = append(all, fmt.Errorf("connection %d: %w", i, err))
			}
		}
		if stuck > 0 {
			all = append(all, fmt.Errorf("%d connections wait for ever", stuck))
		}
		s, h := l.Stats().Streams, HandshakesOf(l).Stats()
		if s.Open != 0 || s.QueuedBytes != 0 || h.InProgress != 0 || h.Waiting != 0 {
			all = append(all, fmt.Errorf("at the end %d connections are open, %d bytes queued, handshakes: %+v", s.Open, s.QueuedBytes, h))
		}
		clean := ended == nil && !slices.ContainsFunc(pairs, func(p *sweptPair) bool { return !p.clean() || x.patient && !p.server.ended })
		if clean && s.WrittenBytes != s.ReadBytes {
			all = append(all, fmt.Errorf("%d bytes written, but %d read", s.WrittenBytes, s.ReadBytes))
		}
		return errors.Join(all...)
	}, nil
}

// pair has a server for one client. That one ends its direction, or its connection, when all is back.
func (x sweptEcho) pair(l *weir.Loop, p *sweptPair, message []byte, half bool) error {
	server := p.server.handler()
	echo := server.OnData
	server.OnData = func(c *Conn, b []byte) {
		echo(c, b)
		n, _ := c.Write(b)
		p.server.wrote += n
	}
	ln, err := Listen(l, loopback, x.config(serverTLS(0)), weir.ListenerConfig{Conn: sweptConn}, ListenerHandler{Conn: server})
	if err != nil {
		return err
	}
	client := p.client.handler()
	client.OnHandshake = func(c *Conn, _ tls.ConnectionState) {
		p.client.done = true
		n, _ := c.Write(message)
		p.client.wrote = n
	}
	read := client.OnData
	client.OnData = func(c *Conn, b []byte) {
		read(c, b)
		if len(p.client.got) < len(message) {
			return
		}
		if half {
			_ = c.CloseWrite()
		} else {
			_ = c.Close()
		}
	}
	_, err = Dial(l, "tcp", ln.Addr().String(), x.config(clientTLS(0)), sweptConn, client)
	return err
}

func (e *sweptEnd) handler() Handler {
	return Handler{
		OnOpen:      func(*Conn) { e.opened = true },
		OnHandshake: func(*Conn, tls.ConnectionState) { e.done = true },
		OnData: func(_ *Conn, b []byte) {
			if e.got = append(e.got, b...); e.closes > 0 || e.ended || !e.done {
				e.wrong = errors.New("OnData out of order")
			}
		},
		OnEnd: func(c *Conn) {
			e.ended = true
			_ = c.Close()
		},
		OnClose: func(_ *Conn, err error) {
			e.closes++
			e.err = err
		},
	}
}

// clean tells that neither end was told of anything bad.
func (p *sweptPair) clean() bool {
	return p.server.closes == 1 && p.client.closes == 1 && p.server.err == nil && p.client.err == nil
}

func (p *sweptPair) check(message []byte, patient bool) error {
	var all []error
	for name, e := range map[string]*sweptEnd{"server": &p.server, "client": &p.client} {
		all = append(all, e.wrong)
		if e.closes > 1 || e.closes == 0 && (e.opened || name == "client") {
			all = append(all, fmt.Errorf("%s: OnClose was called %d times", name, e.closes))
		}
		if !isTold(e.err) {
			all = append(all, fmt.Errorf("%s: OnClose has %w (%T)", name, e.err, e.err))
		}
		if len(e.got) > len(message) || !slices.Equal(e.got, message[:len(e.got)]) {
			all = append(all, fmt.Errorf("%s: %d bytes that were never sent so", name, len(e.got)))
		}
	}
	if over := p.server.ended || !patient; over && p.clean() && (len(p.server.got) != p.client.wrote || len(p.client.got) != p.server.wrote) {
		all = append(all, fmt.Errorf("%d bytes went out, %d of them arrived; %d went back, %d arrived; and nobody was told",
			p.client.wrote, len(p.server.got), p.server.wrote, len(p.client.got)))
	}
	return errors.Join(all...)
}

// TestSweepTLSEcho holds of TLS "each call, each errno that it can give: returns, nothing leaks, no spin, nothing
// accepted is lost without being told".
func TestSweepTLSEcho(t *testing.T) {
	certificates()
	for _, c := range []struct {
		name                       string
		machine, lasting, blocking bool
		soak                       bool
	}{
		{"memory", false, false, false, false},
		{"memory lasting", false, true, false, false},
		{"memory blocking", false, false, true, false},
		{"machine", true, false, false, true},
		{"machine lasting", true, true, false, true},
		{"machine blocking", true, false, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.soak && !longOracles {
				t.Skip("make soak has it")
			}
			s := weirtest.Scenario{
				Setup:   sweptEcho{c.blocking, c.lasting || c.machine}.setup,
				Machine: c.machine, Lasting: c.lasting, Quick: !longOracles, MaxQuietCalls: 400,
			}
			if !c.machine {
				s.Settle = 5 * sweptLimit
			}
			weirtest.Sweep(t, s)
		})
	}
}
