package weirtls

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirnet/weir"
)

// program is what a side does once its handshake is done.
type program struct {
	first   []byte // it writes this before it reads anything
	writes  [][]byte
	half    bool // it ends its direction when all is written
	echo    bool // it writes back what comes
	halting bool // of weirtls: it pauses for a millisecond whenever something comes
	closeAt int  // it closes the connection when so many bytes have come; 0: when the peer has ended

	heard *atomic.Int64 // nil, or how many bytes have come
}

func (p *program) hear(n int) {
	if p.heard != nil {
		p.heard.Add(int64(n))
	}
}

// story is what a side has lived through.
type story struct {
	data  []byte
	shook bool // the handshake was done, with this outcome:
	state tls.ConnectionState
	ended bool // the peer has ended its direction as TLS wants it
	err   error
}

// outcome is how a connection ended, in words that the standard library and weirtls have in common.
func (s *story) outcome() string {
	err := s.err
	if e, ok := errors.AsType[*HandshakeError](err); ok {
		err = e.Err
	}
	if e, ok := errors.AsType[*weir.OpError](err); ok {
		err = e.Err
	}
	switch {
	case err == nil:
		return "closed"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "truncated"
	}
	return err.Error()
}

// summary is all of a story that can be compared.
func (s *story) summary() string {
	var b strings.Builder
	if st := s.state; s.shook {
		fmt.Fprintf(&b, "%s, %s, curve %v, resumed %v, retried %v, name %q, protocol %q, %d peer certificates, %d chains, ",
			tls.VersionName(st.Version), tls.CipherSuiteName(st.CipherSuite), st.CurveID, st.DidResume, st.HelloRetryRequest,
			st.ServerName, st.NegotiatedProtocol, len(st.PeerCertificates), len(st.VerifiedChains))
	} else {
		b.WriteString("no handshake, ")
	}
	fmt.Fprintf(&b, "%d bytes, ended %v, %s", len(s.data), s.ended, s.outcome())
	return b.String()
}

// runStd is a side of the standard library. It returns when the connection is over.
func runStd(c *tls.Conn, p program) (s *story) {
	s = &story{}
	defer func() { s.leave(c) }()
	if s.err = c.Handshake(); s.err != nil {
		return s
	}
	s.shook, s.state = true, c.ConnectionState()
	if _, s.err = c.Write(p.first); s.err != nil {
		return s
	}
	wrote := make(chan error, 1)
	go func() { wrote <- writeStd(c, p) }()
	s.readStd(c, p)
	if s.err != nil {
		s.leave(c) // ends a write
		<-wrote
		return s
	}
	s.err = <-wrote
	return s
}

// leave closes a connection so that no reset takes away what the peer has not read yet: it ends the own direction, and
// waits for the peer to end its.
func (s *story) leave(c *tls.Conn) {
	if s.err != nil {
		_ = c.NetConn().(*witness).CloseWrite() // there is no close_notify behind an alert
		_, _ = io.Copy(io.Discard, c.NetConn())
		_ = c.NetConn().Close()
		return
	}
	if !s.ended {
		_ = c.CloseWrite()
		_, _ = io.Copy(io.Discard, c)
	}
	_ = c.Close()
}

func writeStd(c *tls.Conn, p program) error {
	for _, b := range p.writes {
		if _, err := c.Write(b); err != nil {
			return err
		}
	}
	if p.half {
		return c.CloseWrite()
	}
	return nil
}

func (s *story) readStd(c *tls.Conn, p program) {
	b := make([]byte, 20_000)
	for p.closeAt == 0 || len(s.data) < p.closeAt {
		n, err := c.Read(b)
		s.data = append(s.data, b[:n]...)
		p.hear(n)
		if p.echo && n > 0 {
			if _, err := c.Write(b[:n]); err != nil {
				s.err = err
				return
			}
		}
		if err == io.EOF && c.NetConn().(*witness).ended.Load() {
			err = io.ErrUnexpectedEOF // crypto/tls takes both for the end
		}
		if err == io.EOF {
			s.ended = true
			return
		}
		if err != nil {
			s.err = err
			return
		}
	}
}

// actor is a side of weirtls.
type actor struct {
	program
	story
	pending [][]byte
	closes  int
	wrong   error // of what is called when
	over    chan *story
}

func newActor(p program) *actor {
	return &actor{program: p, over: make(chan *story, 1)}
}

// handler is for a connection that the actor is to be at.
func (a *actor) handler() Handler {
	return Handler{
		OnHandshake: func(c *Conn, state tls.ConnectionState) {
			a.shook, a.state = true, state
			a.pending = append([][]byte{a.first}, a.writes...)
			a.write(c)
		},
		OnData: a.onData,
		OnDrain: func(c *Conn) {
			c.Resume()
			a.write(c)
		},
		OnEnd: func(c *Conn) {
			a.ended = true
			a.write(c)
		},
		OnClose: func(_ *Conn, err error) {
			if a.closes++; a.closes > 1 {
				panic("OnClose is called again")
			}
			s := a.story
			s.err = errors.Join(a.wrong, err)
			if a.wrong == nil {
				s.err = err
			}
			a.over <- &s
		},
	}
}

func (a *actor) onData(c *Conn, b []byte) {
	if !a.shook || a.ended || c.Paused() || a.closes > 0 || len(b) == 0 {
		a.wrong = fmt.Errorf("OnData of %d bytes, handshake %v, ended %v, paused %v, closed %d times", len(b), a.shook, a.ended, c.Paused(), a.closes)
	}
	a.data = append(a.data, b...)
	a.hear(len(b))
	if a.halting {
		c.Pause()
		c.Loop().AfterFunc(time.Millisecond, c.Resume)
	}
	if a.echo {
		a.pending = append(a.pending, append([]byte(nil), b...))
		a.write(c)
	}
	if a.closeAt > 0 && len(a.data) >= a.closeAt {
		_ = c.Close()
	}
}

// write writes as far as there is room, and does what comes behind the last byte.
func (a *actor) write(c *Conn) {
	for len(a.pending) > 0 {
		b := a.pending[0]
		n, err := c.Write(b)
		a.pending[0] = b[n:]
		if errors.Is(err, weir.ErrWouldBlock) {
			c.Pause()
			return
		}
		if err != nil {
			return // OnClose tells why
		}
		if n == len(b) {
			a.pending = a.pending[1:]
		}
	}
	switch {
	case a.ended:
		_ = c.Close()
	case a.half:
		_ = c.CloseWrite()
	}
}

// side runs a program at one end of a connection of a place, as weirtls or the standard library, and returns the other
// end, and what tells the story when it is over.
func (p *place) side(weirs bool, r Role, cfg *tls.Config, conn weir.ConnConfig, what program) (other peer, end func() *story) {
	p.t.Helper()
	if !weirs {
		at, accept := p.listen()
		other = p.dial(at)
		c := stdConn(r, accept(), cfg)
		over := make(chan *story, 1)
		go func() { over <- runStd(c, what) }()
		return other, func() *story { return <-over }
	}
	a := newActor(what)
	if r == AsServer {
		other = p.dial(p.serve(Config{TLS: cfg}, conn, a.handler()))
	} else {
		at, accept := p.listen()
		p.call(at, Config{TLS: cfg}, conn, a.handler())
		other = accept()
	}
	return other, func() *story { return <-a.over }
}

// converse has a client and a server talk, each weirtls or the standard library, through a splitter.
func (p *place) converse(weirs Role, server, client *tls.Config, conn weir.ConnConfig, atServer, atClient program, in, out cut) (s, c *story) {
	p.t.Helper()
	subject, mine, theirs := AsServer, atServer, atClient
	if weirs == AsClient {
		subject, mine, theirs = AsClient, atClient, atServer
	}
	configs := map[Role]*tls.Config{AsServer: server, AsClient: client}
	other, end := p.side(weirs != 0, subject, configs[subject], conn, mine)
	std := stdConn(opposite(subject), &splitter{peer: other, in: in, out: out}, configs[opposite(subject)])
	s, c = runStd(std, theirs), nil
	mineStory := end()
	if subject == AsServer {
		return mineStory, s
	}
	return s, mineStory
}
