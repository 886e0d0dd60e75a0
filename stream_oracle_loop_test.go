package weir

import (
	"crypto/sha256"
	"errors"
	"hash"
	"math/rand/v2"
	"net"
	"slices"
	"time"
)

// echoer writes back what comes, and reads no more while that does not go.
type echoer struct {
	rest  []byte
	ended bool
}

func (e *echoer) serve(c *Conn) {
	c.SetHandler(ConnHandler{
		OnData: func(c *Conn, b []byte) {
			third := len(b) / 3
			n, err := c.Writev([][]byte{b[:third], nil, b[third:]})
			if err != nil {
				e.rest = append(e.rest, b[n:]...)
				c.Pause()
			}
		},
		OnDrain: func(c *Conn) {
			n, err := c.Write(e.rest)
			if e.rest = slices.Delete(e.rest, 0, n); err != nil {
				return
			}
			c.Resume()
			if e.ended {
				_ = c.CloseWrite()
			}
		},
		OnEnd: func(c *Conn) {
			if e.ended = true; len(e.rest) == 0 {
				_ = c.CloseWrite()
			}
		},
	})
}

// loopClient follows a script on a loop.
type loopClient struct {
	script
	conn   *Conn
	rand   *rand.Rand
	next   int // of the writes
	offset int // in that
	want   int
	answer answer
	hash   hash.Hash
	done   chan error
}

// overLoop follows the script with a connection of the loop.
func (s script) overLoop(l *Loop, to net.Addr) (answer, error) {
	x := &loopClient{
		script: s, rand: rand.New(rand.NewPCG(s.seed[0], ^s.seed[1])), want: s.sum().bytes,
		hash: sha256.New(), done: make(chan error, 1),
	}
	if err := l.Post(func() { x.dial(l, to) }); err != nil {
		return answer{}, err
	}
	select {
	case err := <-x.done:
		return x.answer, err
	case <-time.After(2 * oracleTimeout):
		return answer{}, errors.New("it hangs")
	}
}

func (x *loopClient) dial(l *Loop, to net.Addr) {
	cfg := ConnConfig{WriteBufferBytes: 1 + x.rand.IntN(200_000)}
	c, err := l.Dial(to.Network(), to.String(), cfg, ConnHandler{
		OnData:  func(_ *Conn, b []byte) { x.read(b) },
		OnDrain: func(*Conn) { x.write() },
		OnEnd: func(c *Conn) {
			if !x.half || x.answer.bytes != x.want {
				_ = c.Reset()
			}
		},
		OnClose: func(_ *Conn, err error) {
			x.hash.Sum(x.answer.sum[:0])
			x.done <- err
		},
	})
	if err != nil {
		x.done <- err
		return
	}
	x.conn = c
	c.SetDeadline(time.Now().Add(oracleTimeout))
	x.write()
}

// write goes on with the script, until it has a pause or there is no room.
func (x *loopClient) write() {
	for x.next < len(x.writes) {
		n, err := x.conn.Write(x.writes[x.next][x.offset:])
		x.offset += n
		if err != nil {
			return // OnDrain follows, or OnClose
		}
		d := x.pauses[x.next]
		x.next, x.offset = x.next+1, 0
		if d > 0 {
			x.conn.Loop().AfterFunc(d, x.write)
			return
		}
	}
	if x.half {
		_ = x.conn.CloseWrite()
	}
}

func (x *loopClient) read(b []byte) {
	x.hash.Write(b)
	x.answer.bytes += len(b)
	if !x.half && x.answer.bytes >= x.want {
		_ = x.conn.Close()
		return
	}
	if d := pause(x.rand, 20); d > 0 {
		x.conn.Pause()
		x.conn.Loop().AfterFunc(d, x.conn.Resume)
	}
}
