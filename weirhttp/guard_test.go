package weirhttp

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
)

// TestGuard: what may be for a connection, or begin one, passes; what cannot be does not.
func TestGuard(t *testing.T) {
	t.Parallel()
	g := newGuard()
	id, err := g.GenerateConnectionID()
	if err != nil {
		t.Fatal(err)
	}
	forged := append([]byte(nil), id.Bytes()...)
	forged[0]++
	long := func(first byte, version uint32, id []byte, size int) []byte {
		b := make([]byte, size)
		b[0] = first
		binary.BigEndian.PutUint32(b[1:], version)
		b[5] = byte(len(id))
		copy(b[6:], id)
		return b
	}
	short := func(first byte, id []byte, size int) []byte {
		b := make([]byte, size)
		b[0] = first
		copy(b[1:], id)
		return b
	}
	v1, v2, theirs := uint32(quic.Version1), uint32(quic.Version2), make([]byte, 18)
	for name, c := range map[string]struct {
		b    []byte
		pass bool
	}{
		"short header":              {short(0x40, id.Bytes(), 40), true},
		"shortest":                  {short(0x40, id.Bytes(), 21), true},
		"too short":                 {short(0x40, id.Bytes(), 20), false},
		"of nobody":                 {short(0x40, forged, 40), false},
		"without the fixed bit":     {short(0x00, id.Bytes(), 40), false},
		"Initial":                   {long(0xc0, v1, theirs, 1200), true},
		"Initial, version 2":        {long(0xd0, v2, theirs, 1200), true},
		"small Initial":             {long(0xc0, v1, theirs, 1199), false},
		"0-RTT":                     {long(0xd0, v1, theirs, 1200), false},
		"Handshake":                 {long(0xe0, v1, id.Bytes(), 100), true},
		"Handshake, version 2":      {long(0xf0, v2, id.Bytes(), 100), true},
		"Handshake of nobody":       {long(0xe0, v1, forged, 100), false},
		"Handshake, id of 18 bytes": {long(0xe0, v1, theirs, 100), false},
		"Retry":                     {long(0xf0, v1, id.Bytes(), 100), false},
		"Version Negotiation":       {long(0xc0, 0, id.Bytes(), 1200), false},
		"other version":             {long(0xc0, 0x0a0a0a0a, theirs, 1200), true},
		"other version, small":      {long(0xc0, 0x0a0a0a0a, theirs, 1199), false},
		"id longer than there is":   {long(0xc0, v1, make([]byte, 21), 1200), false},
		"id behind the end":         {long(0xe0, v1, make([]byte, 20), 26)[:25], false},
		"empty":                     {nil, false},
	} {
		if got := g.pass(c.b, netip.AddrPort{}); got != c.pass {
			t.Errorf("%s: passes: %v, want %v", name, got, c.pass)
		}
	}
}

// TestGuardAnswers: no more than maxAnswers clients a second are told of versions.
func TestGuardAnswers(t *testing.T) {
	t.Parallel()
	g := newGuard()
	now := time.Unix(1, 0)
	g.clock = func() time.Time { return now }
	b := make([]byte, 1200)
	b[0], b[1] = 0xc0, 0x0a
	for range 2 {
		passed := 0
		for range 3 * maxAnswers {
			if g.pass(b, netip.AddrPort{}) {
				passed++
			}
		}
		if passed != maxAnswers {
			t.Errorf("%d datagrams of another version passed in a second, want %d", passed, maxAnswers)
		}
		now = now.Add(time.Second)
	}
}

// TestGuardNoise: of noise nothing comes through but what would be told of versions.
func TestGuardNoise(t *testing.T) {
	t.Parallel()
	g := newGuard()
	g.clock = func() time.Time { return time.Unix(1, 0) }
	g.answer, g.second = maxAnswers, 1
	noise := rand.NewChaCha8([32]byte{})
	passed, b := 0, make([]byte, 1300)
	const n = 100_000
	for range n {
		_, _ = noise.Read(b[:32])
		if g.pass(b, netip.AddrPort{}) {
			passed++
		}
	}
	if passed > n/1000 { // an id of two bytes' worth is guessed once in 65,536
		t.Errorf("%d of %d datagrams of noise passed", passed, n)
	}
}

func BenchmarkGuard(b *testing.B) {
	g := newGuard()
	id, _ := g.GenerateConnectionID()
	p := append([]byte{0x40}, make([]byte, 1200)...)
	copy(p[1:], id.Bytes())
	b.ReportAllocs()
	for b.Loop() {
		if !g.pass(p, netip.AddrPort{}) {
			b.Fatal("refused")
		}
	}
}
