package weirhttp

import (
	"crypto/rand"
	"net"
	"runtime"
	"testing"

	"github.com/quic-go/quic-go/quicvarint"
)

// flood sends to a server what costs it the most for the least.
type flood struct {
	t    *testing.T
	conn net.Conn
}

func newFlood(t *testing.T, addr string) *flood {
	t.Helper()
	c, err := net.Dial("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &flood{t, c}
}

// initial is one that begins a handshake, as its header is right (RFC 9000, section 17.2.2); nothing else is.
func (f *flood) initial() {
	p := append([]byte{0xc3, 0, 0, 0, 1, 8}, random(8)...) // QUIC version 1; the destination's connection ID
	p = append(p, 0, 0)                                    // no ID of the source, no token
	p = quicvarint.AppendWithLen(p, 1200-uint64(len(p))-2, 2)
	p = append(p, random(1200-len(p))...)
	_, _ = f.conn.Write(p) // may hear of an earlier one that was refused
}

// garbage is of all kinds, by its first byte, and of all sizes.
func (f *flood) garbage(i int) {
	p := random(1 + i*7%1400)
	if i%4 == 0 { // a long header, and a version that the server knows
		p = append([]byte{0xc0 | p[0]&0x3f, 0, 0, 0, 1}, p...)
	}
	_, _ = f.conn.Write(p)
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return b
}

// Garbage, and handshakes that come to nothing, leave an open connection at work, and what they cost is bounded.
func TestServerFlood(t *testing.T) {
	t.Parallel()
	const each = 3000
	v := serve(t, &Server{MaxHandshakes: 64, MaxHandshakesPerSource: 16}, hello)
	c := v.client("HTTP/3.0")
	v.get(c, "/")
	sources := []*flood{newFlood(t, v.addr), newFlood(t, v.addr)}
	most := 0
	for i := range each {
		for _, f := range sources {
			f.initial()
			f.garbage(i)
		}
		if i%300 == 0 {
			if body, _ := v.get(c, "/"); body != "hello HTTP/3.0" {
				t.Fatalf("after %d: %q", i, body)
			}
			most = max(most, v.Stats().QUIC.Open)
		}
	}
	st := v.Stats()
	// A source that has not shown its address has half of what a source may have; the open connection is one more.
	if most > 8+1 || st.QUIC.Open > 8+1 || st.QUIC.Handshakes > 8 {
		t.Errorf("%d connections at most: %+v", most, st.QUIC)
	}
	if st.QUIC.Retries == 0 || st.HTTP3.Conns != 1 {
		t.Errorf("Stats: %+v", st)
	}
	if n := runtime.NumGoroutine(); n > 2000 {
		t.Errorf("%d goroutines", n)
	}
	if body, _ := v.get(v.client("HTTP/3.0"), "/"); body != "hello HTTP/3.0" {
		t.Errorf("a new client: %q", body)
	}
}
