package weirtls

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/weirnet/weir"
)

// TestReplay has weirtls and the standard library, which is the oracle, be sent the very same bytes: a peer's part of a
// connection, as it was recorded, however it is cut, and with all kinds of damage. As their random numbers are the same,
// too, they understand the same, tell the same story and answer the same bytes.
func TestReplay(t *testing.T) { replays(t, 25) }

func replays(t *testing.T, damages int) {
	certificates()
	for _, role := range []Role{AsServer, AsClient} {
		for _, version := range versions {
			t.Run(fmt.Sprintf("%v %s", role, versionName(version)), func(t *testing.T) {
				inMemory(t, weir.Config{}, func(t *testing.T, p *place) {
					rec := &recording{place: p, t: t, role: role, version: version}
					rec.record()
					rec.compare("as it was", rec.flights, asItIs)
					for _, c := range cuts {
						rec.compare(c.name, rec.flights, by(c.how(1)))
					}
					for n := range headerBytes + 2 {
						rec.compare(fmt.Sprintf("%d bytes into each record", n), rec.flights, into(n))
					}
					seed := rand.Uint64()
					r := rand.New(rand.NewPCG(seed, 0))
					for range damages {
						what, flights := damage(r, rec.flights)
						rec.compare(fmt.Sprintf("seed %d, %s", seed, what), flights, asItIs)
					}
				})
			})
		}
	}
}

var welcome = []byte("welcome")

// recording is what a peer has sent to a side, flight by flight. The random numbers are begun anew with each.
type recording struct {
	*place
	t       *testing.T
	role    Role
	version uint16
	flights [][]byte
}

// begin has a side wait for the first flight.
func (r *recording) begin(weirs bool, heard *atomic.Int64) (other *bridge, end func() *story) {
	cfg := roleTLS(r.role, r.version)
	cfg.SessionTicketsDisabled = true
	cryptotest.SetGlobalRandom(r.t, 0)
	c, end := r.side(weirs, r.role, cfg, weir.ConnConfig{}, program{first: welcome, heard: heard})
	synctest.Wait()
	return c.(*bridge), end
}

// record has a connection of the standard library on both sides.
func (r *recording) record() {
	side, end := r.begin(false, nil)
	peer := &flightConn{in: make(chan []byte, 1)}
	over := make(chan *story, 1)
	script := program{writes: [][]byte{[]byte("hello"), make([]byte, 20_000), {1}}, half: true}
	go func() {
		s := runStd(stdConn(opposite(r.role), peer, roleTLS(opposite(r.role), r.version)), script)
		over <- s
	}()
	for len(over) == 0 && len(r.flights) < 20 {
		synctest.Wait()
		peer.in <- side.take()
		synctest.Wait()
		r.flights = append(r.flights, peer.out)
		cryptotest.SetGlobalRandom(r.t, uint64(len(r.flights)))
		_, _ = side.Write(peer.out)
		peer.out = nil
	}
	s, at := <-over, end()
	if !bytes.Equal(s.data, welcome) || len(at.data) != 5+20_000+1 || s.err != nil || at.err != nil {
		r.t.Fatalf("the recording itself: %s; %s", s.summary(), at.summary())
	}
}

// replayed is what came of it.
type replayed struct {
	*story
	sent  []byte
	trace []int64 // the bytes delivered by when each piece had come
}

// replay sends flights to a side, each in pieces, and ends the direction.
func (r *recording) replay(weirs bool, flights [][][]byte) (re replayed) {
	var heard atomic.Int64
	side, end := r.begin(weirs, &heard)
	for i, f := range flights {
		cryptotest.SetGlobalRandom(r.t, uint64(i+1))
		for _, piece := range f {
			_, _ = side.Write(piece)
			synctest.Wait()
			re.trace = append(re.trace, heard.Load())
		}
	}
	_ = side.CloseWrite()
	synctest.Wait()
	re.sent = side.take()
	_ = side.Close()
	re.story = end()
	return re
}

func (r *recording) compare(name string, flights [][]byte, pieces func([]byte) [][]byte) {
	r.t.Helper()
	var cut [][][]byte
	for _, f := range flights {
		cut = append(cut, pieces(f))
	}
	want, got := r.replay(false, cut), r.replay(true, cut)
	sameStory(r.t, name, got.story, want.story)
	if n := firstDifference(got.sent, want.sent); n >= 0 {
		r.t.Errorf("%s: %d bytes come back, from the oracle %d; they are the same until %d; the end was %s",
			name, len(got.sent), len(want.sent), n, want.summary())
	}
	for i, n := range want.trace { // which keeps data back when a piece of an alert is behind it
		if got.trace[i] < n {
			r.t.Errorf("%s: piece %d of %d has %d bytes delivered, with the oracle %d", name, i, len(want.trace), got.trace[i], n)
			break
		}
	}
}

// firstDifference is negative where there is none.
func firstDifference(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	if len(a) != len(b) {
		return min(len(a), len(b))
	}
	return -1
}

func asItIs(f []byte) [][]byte { return [][]byte{f} }

func by(how cut) func([]byte) [][]byte {
	return func(f []byte) (pieces [][]byte) {
		for len(f) > 0 {
			size, _ := how(len(f))
			pieces = append(pieces, f[:size])
			f = f[size:]
		}
		return pieces
	}
}

// into has each piece end so many bytes behind the beginning of a record, the last of a flight excepted.
func into(n int) func([]byte) [][]byte {
	return func(f []byte) (pieces [][]byte) {
		from := 0
		for _, at := range bounds(f) {
			if to := min(at+n, len(f)); to > from {
				pieces = append(pieces, f[from:to])
				from = to
			}
		}
		return append(pieces, f[from:])
	}
}

// damage is one change to what a peer sends.
func damage(r *rand.Rand, flights [][]byte) (what string, damaged [][]byte) {
	damaged = make([][]byte, len(flights))
	var full []int
	for i, f := range flights {
		if damaged[i] = slices.Clone(f); len(f) > 0 {
			full = append(full, i)
		}
	}
	i := full[r.IntN(len(full))]
	f := damaged[i]
	at := r.IntN(len(f))
	if records := bounds(f); r.IntN(2) == 0 { // the beginnings of records have more to say than their middle
		at = min(records[r.IntN(len(records))]+r.IntN(12), len(f)-1)
	}
	what = fmt.Sprintf("flight %d of %d bytes, at %d: ", i, len(f), at)
	switch r.IntN(6) {
	case 0:
		bit := byte(1) << r.IntN(8)
		f[at] ^= bit
		return what + fmt.Sprintf("bit %d", bit), damaged
	case 1:
		f[at] = byte(r.Uint32())
		return what + fmt.Sprintf("byte %d", f[at]), damaged
	case 2:
		damaged[i] = f[:at]
		return what + "the end", damaged[:i+1]
	case 3:
		n := min(1+r.IntN(20), len(f)-at)
		damaged[i] = slices.Delete(f, at, at+n)
		return what + fmt.Sprintf("%d bytes less", n), damaged
	case 4:
		more := make([]byte, 1+r.IntN(20))
		for k := range more {
			more[k] = byte(r.Uint32())
		}
		damaged[i] = slices.Insert(f, at, more...)
		return what + fmt.Sprintf("%d bytes more", len(more)), damaged
	default:
		b := append(bounds(f), len(f))
		k := r.IntN(len(b) - 1)
		damaged[i] = slices.Insert(f, b[k+1], slices.Clone(f[b[k]:b[k+1]])...)
		return what + fmt.Sprintf("record %d twice", k), damaged
	}
}

// bounds are where records begin.
func bounds(b []byte) (at []int) {
	for i := 0; i+5 <= len(b); i += 5 + int(b[i+3])<<8 + int(b[i+4]) {
		at = append(at, i)
	}
	return at
}

// flightConn is a connection whose bytes wait until they are taken.
type flightConn struct {
	net.Conn
	in   chan []byte
	rest []byte
	out  []byte // read while the writer waits
}

func (f *flightConn) Read(b []byte) (int, error) {
	for len(f.rest) == 0 {
		f.rest = <-f.in
	}
	n := copy(b, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

func (f *flightConn) Write(b []byte) (int, error) {
	f.out = append(f.out, b...)
	return len(b), nil
}

func (*flightConn) CloseWrite() error                { return nil }
func (*flightConn) Close() error                     { return nil }
func (*flightConn) SetDeadline(time.Time) error      { return nil }
func (*flightConn) SetReadDeadline(time.Time) error  { return nil }
func (*flightConn) SetWriteDeadline(time.Time) error { return nil }

var _ peer = (*flightConn)(nil)
