package weirtls

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net/netip"
	"testing"
	"time"

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

// TestClientBeforeOpen: TLS that is begun on a connection on its way begins when it is there, and not where it is paused
// then; and the connection goes back to the lane that it was moved to.
func TestClientBeforeOpen(t *testing.T) {
	t.Parallel()
	onEachKernel(t, weir.Config{}, func(t *testing.T, p *place) {
		to, accept := p.listen()
		over, heard := make(chan error, 1), make(chan int, 1)
		do(t, p.loop, func() {
			lane := p.loop.NewLane()
			raw, err := p.loop.DialTCP(loopback, to, weir.ConnConfig{}, weir.ConnHandler{})
			if err != nil {
				t.Error(err)
				return
			}
			raw.SetLane(lane)
			_, err = Client(raw, Config{TLS: clientTLS(0)}, Handler{
				OnOpen: func(c *Conn) {
					c.Pause()
					p.loop.AfterFunc(20*time.Millisecond, func() {
						heard <- c.Raw().Stats().Queued + int(c.Raw().Stats().Written)
						c.Resume()
					})
				},
				OnHandshake: func(c *Conn, _ tls.ConnectionState) {
					if raw.Lane() != lane {
						t.Error("it is not in its lane")
					}
					_ = c.Close()
				},
				OnClose: func(_ *Conn, err error) { over <- err },
			})
			if err != nil || raw.Open() {
				t.Errorf("Client answers %v; open %v", err, raw.Open())
			}
		})
		c := stdConn(AsServer, accept(), serverTLS(0))
		go func() {
			_ = c.Handshake()
			_, _ = c.Read(make([]byte, 1))
			_ = c.Close()
		}()
		if n := <-heard; n > 0 {
			t.Errorf("%d bytes were sent by one that is paused", n)
		}
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
}
