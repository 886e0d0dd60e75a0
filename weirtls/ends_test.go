package weirtls

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/weirnet/weir"
)

// eachEnd runs a test for weirtls in each role, over each version, on each kernel.
func eachEnd(t *testing.T, test func(t *testing.T, p *place, role Role, version uint16)) {
	for _, role := range []Role{AsServer, AsClient} {
		for _, version := range versions {
			t.Run(fmt.Sprintf("%v %s", role, versionName(version)), func(t *testing.T) {
				onEachKernel(t, weir.Config{}, func(t *testing.T, p *place) { test(t, p, role, version) })
			})
		}
	}
}

// meetStd connects a side of weirtls with that handler to one of the standard library.
func (p *place) meetStd(role Role, version uint16, h Handler) *tls.Conn {
	p.t.Helper()
	var other peer
	if cfg := (Config{TLS: roleTLS(role, version)}); role == AsServer {
		other = p.dial(p.serve(cfg, weir.ConnConfig{}, h))
	} else {
		at, accept := p.listen()
		p.call(at, cfg, weir.ConnConfig{}, h)
		other = accept()
	}
	return stdConn(opposite(role), other, roleTLS(opposite(role), version))
}

// TestHalting has what came with the end, or before, be delivered by and by to one that pauses each time.
func TestHalting(t *testing.T) {
	eachEnd(t, func(t *testing.T, p *place, role Role, version uint16) {
		a := newActor(program{halting: true})
		const size = 300_000
		s := runStd(p.meetStd(role, version, a.handler()), program{first: make([]byte, size), half: true})
		if mine := <-a.over; len(mine.data) != size || !mine.ended || mine.err != nil || s.err != nil {
			t.Errorf("weirtls has %s, the other end %s", mine.summary(), s.summary())
		}
	})
}

// TestWriteEarly holds of Write "Before the handshake is done nothing is taken, and OnDrain follows OnHandshake".
func TestWriteEarly(t *testing.T) {
	eachEnd(t, func(t *testing.T, p *place, role Role, version uint16) {
		a := newActor(program{})
		h := a.handler()
		h.OnOpen = func(c *Conn) {
			if n, err := c.Write([]byte("early")); n != 0 || !errors.Is(err, weir.ErrWouldBlock) {
				a.wrong = fmt.Errorf("an early Write answers %d, %v", n, err)
			}
		}
		h.OnDrain = func(c *Conn) {
			if !a.shook {
				a.wrong = errors.New("OnDrain before OnHandshake")
			}
			_, _ = c.Write([]byte("hello"))
		}
		s := runStd(p.meetStd(role, version, h), program{closeAt: len("hello")})
		if mine := <-a.over; string(s.data) != "hello" || s.err != nil || mine.err != nil {
			t.Errorf("weirtls has %s, the other end %s", mine.summary(), s.summary())
		}
	})
}

// TestOnEnd holds of it "Over TLS 1.3 writing goes on, until CloseWrite or Close; over TLS 1.2, which has no half-closed
// connections, the connection is closed after it".
func TestOnEnd(t *testing.T) {
	eachEnd(t, func(t *testing.T, p *place, role Role, version uint16) {
		closed := make(chan error, 1)
		c := p.meetStd(role, version, Handler{
			OnEnd: func(c *Conn) {
				c.Loop().AfterFunc(10*time.Millisecond, func() {
					_, err := c.Write([]byte("late"))
					if (err == nil) != (version == tls.VersionTLS13) {
						t.Errorf("Write behind OnEnd answers %v", err)
					}
					_ = c.CloseWrite()
				})
			},
			OnClose: func(_ *Conn, err error) { closed <- err },
		})
		defer c.Close()
		if err := errors.Join(c.Handshake(), c.CloseWrite()); err != nil {
			t.Fatal(err)
		}
		want := map[uint16]string{tls.VersionTLS12: "", tls.VersionTLS13: "late"}[version]
		if b, err := io.ReadAll(c); string(b) != want || err != nil {
			t.Errorf("%q and %v come back, want %q", b, err, want)
		}
		_ = c.Close()
		if err := <-closed; err != nil {
			t.Errorf("OnClose has %v", err)
		}
		time.Sleep(20 * time.Millisecond) // the timer is over
	})
}
