package weirtls

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"

	"github.com/weirnet/weir"
)

// TestStartTLS has TLS begin in the middle of a connection's life, behind a line that the client says. What it sends then
// may have been read with the line, in part or all of it.
func TestStartTLS(t *testing.T) {
	for _, version := range versions {
		t.Run(versionName(version), func(t *testing.T) {
			onEachKernel(t, weir.Config{}, func(t *testing.T, p *place) {
				for _, with := range []int{0, 1, 4, 5, 6, 100, 10_000} {
					want := program{writes: [][]byte{[]byte("hello")}}
					a := newActor(want)
					c := &lineFirst{peer: p.dial(p.serveLine(version, a)), with: with}
					s := runStd(stdConn(AsClient, c, clientTLS(version)), program{closeAt: 5})
					if mine := <-a.over; string(s.data) != "hello" || s.err != nil || mine.err != nil || !mine.shook {
						t.Errorf("%d bytes with the line: the server has %s; the client %s", with, mine.summary(), s.summary())
					}
				}
			})
		})
	}
}

const line = "STARTTLS\n"

// serveLine begins TLS behind a line. What was queued before goes out before.
func (p *place) serveLine(version uint16, a *actor) (at netip.AddrPort) {
	do(p.t, p.loop, func() {
		var got []byte
		ln, err := p.loop.ListenTCP(loopback, weir.ListenerConfig{}, weir.ListenerHandler{Conn: weir.ConnHandler{
			OnOpen: func(c *weir.Conn) { c.Data = "mine" },
			OnData: func(raw *weir.Conn, b []byte) {
				got = append(got, b...)
				_, rest, ok := bytes.Cut(got, []byte(line))
				if !ok {
					return
				}
				_, _ = raw.Write([]byte("go\n"))
				c, err := StartTLS(raw, AsServer, rest, Config{TLS: serverTLS(version)}, a.handler())
				if err != nil || c.Data != "mine" || c.Raw() != raw {
					a.wrong = fmt.Errorf("StartTLS answers %v", err)
				}
				clear(got) // rest is copied
			},
		}})
		if err != nil {
			p.t.Error(err)
			return
		}
		at = ln.Addr()
	})
	return at
}

// lineFirst says the line with the first bytes of TLS behind it, waits for the answer, and goes on.
type lineFirst struct {
	peer
	with int
	said bool
}

func (l *lineFirst) Write(b []byte) (int, error) {
	if l.said {
		return l.peer.Write(b)
	}
	l.said = true
	n := min(l.with, len(b))
	if _, err := l.peer.Write(append([]byte(line), b[:n]...)); err != nil {
		return 0, err
	}
	answer := make([]byte, len("go\n"))
	for i := range answer {
		if _, err := l.Read(answer[i : i+1]); err != nil {
			return 0, err
		}
	}
	if string(answer) != "go\n" {
		return 0, fmt.Errorf("the answer is %q", answer)
	}
	rest, err := l.peer.Write(b[n:])
	return n + rest, err
}
