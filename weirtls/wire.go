package weirtls

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/weirnet/weir"
)

// wire is the net.Conn that crypto/tls has: a connection in memory. What the loop reads is put in, and is handed over
// record by record; what crypto/tls writes is always taken, as it cannot take a write back.
//
// Cutting at the borders of records keeps crypto/tls's own buffer small, and empty between them: nothing is hidden
// there that no event would tell of.
type wire struct {
	conn *Conn

	in     []byte // received, and not handed over: in kept, or, during a read of the loop, where that has read to
	kept   []byte // memory of its own, from spares
	spares *spares
	owned  bool // in is in kept
	ended  bool // the peer's direction of the transport is over: nothing follows in
	told   bool // crypto/tls has been told so

	left   int               // of the record that is being handed over
	head   [headerBytes]byte // the part of the next record's header that has been
	headed int

	records int // begun, in a handshake or since decrypt was called

	answered bool // something was written since the handshake last asked
	answers  answers
	refused  bool // a write was: the connection below is over, and tells why

	// Of a handshake; nil after it. With Config.Blocking all of the wire is its goroutine's while that runs.
	await func() bool // returns when there is more in, or false when the handshake is given up
	hold  *flight     // where writes go that must not touch the loop; nil: they go to it
}

// flight is what a handshake on a goroutine of its own has written, and who it does so for.
type flight struct {
	out           []byte
	local, remote netip.AddrPort
}

const (
	headerBytes = 5              // RFC 8446, section 5.1
	mostRecord  = 16<<10 + 2<<10 // what follows it at most, in TLS 1.2 (RFC 5246, section 6.2.3)
	mostPlain   = 16 << 10

	typeChangeCipherSpec = 20
	typeApplicationData  = 23
)

// empty is the answer of a Read that has nothing. crypto/tls goes on after it, later, because it is Temporary: an
// error that wraps this one, or a Timeout alone, would be its last.
type empty struct{}

func (empty) Error() string   { return "weirtls: nothing has been received" }
func (empty) Timeout() bool   { return false }
func (empty) Temporary() bool { return true }

var (
	errEmpty   error = empty{}
	errGivenUp       = errors.New("weirtls: the handshake is given up")
)

// put adds what was received. It is lent until keep.
func (w *wire) put(b []byte) {
	if len(w.in) == 0 {
		w.in, w.owned = b, false
		return
	}
	w.kept = append(w.kept[:copy(w.kept, w.in)], b...)
	w.in, w.owned = w.kept, true
}

// keep copies what is lent, and gives back memory that is not needed.
func (w *wire) keep() {
	switch {
	case len(w.in) == 0:
		w.spares.give(w.kept)
		w.in, w.kept, w.owned = nil, nil, false
	case !w.owned:
		if cap(w.kept) < len(w.in) {
			w.spares.give(w.kept)
			w.kept = w.spares.take(len(w.in))
		}
		w.kept = append(w.kept[:0], w.in...)
		w.in, w.owned = w.kept, true
	case cap(w.kept) > mostRecord && len(w.in) < cap(w.kept)/4: // a read was put behind the beginning of a record
		large := w.kept
		w.kept = append([]byte(nil), w.in...)
		w.in, w.owned = w.kept, true
		w.spares.give(large)
	}
}

// spares is memory for the rest of a read, of all connections of a loop: what is left when the share is used up is left
// again and again. Its methods are for nil, too.
type spares struct{ free [][]byte }

const (
	mostSpares = 16
	spareBytes = 64 << 10 // a read
)

// take returns memory for n bytes. What is short is not worth a large piece.
func (s *spares) take(n int) []byte {
	if s == nil || n <= mostPlain || n > spareBytes {
		return make([]byte, 0, n)
	}
	last := len(s.free) - 1
	if last < 0 {
		return make([]byte, 0, spareBytes)
	}
	b := s.free[last]
	s.free = s.free[:last]
	return b
}

func (s *spares) give(b []byte) {
	if s != nil && cap(b) == spareBytes && len(s.free) < mostSpares {
		s.free = append(s.free, b[:0])
	}
}

// pending tells that a Read would not answer errEmpty.
func (w *wire) pending() bool { return len(w.in) > 0 || w.ended && !w.told }

// whole tells that a record is there to its end, or all that there will ever be. What cannot be a record is whole as
// soon as that shows.
func (w *wire) whole() bool {
	if w.ended || w.left > 0 && len(w.in) > 0 {
		return true
	}
	if len(w.in) < headerBytes {
		return false
	}
	size := int(binary.BigEndian.Uint16(w.in[3:]))
	record := w.in[0] >= typeChangeCipherSpec && w.in[0] <= typeApplicationData && w.in[1] < 0x10 && size <= mostRecord
	return !record || len(w.in) >= headerBytes+size
}

// Read is crypto/tls's. In a handshake it waits.
func (w *wire) Read(p []byte) (n int, err error) {
	for w.await != nil && (!w.whole() || w.stepEnds()) {
		if !w.await() {
			return 0, errGivenUp
		}
	}
	switch {
	case w.await == nil && w.stops():
		return 0, errEmpty
	case len(w.in) > 0:
		return w.take(p), nil
	case w.ended:
		w.told = true
		return 0, io.EOF
	default:
		return 0, errEmpty
	}
}

// stepEnds tells, between records, that a step of the handshake has had enough of them: a message can be cut into
// thousands.
func (w *wire) stepEnds() bool {
	if w.left > 0 || w.headed > 0 || len(w.in) == 0 {
		return false
	}
	w.records++
	return w.records%stepRecords == 0
}

// stepRecords are more than any handshake needs that is meant well.
const stepRecords = 32

// stops tells, between records, that the share of the visit is used up. It is here because crypto/tls reads on and on
// while what it reads are key updates and tickets.
func (w *wire) stops() bool {
	if w.left > 0 || w.headed > 0 || len(w.in) == 0 {
		return false
	}
	w.records++
	return w.records%lookEvery == 0 && w.conn.Loop().Expired()
}

// lookEvery is how many records are handed over before a look at the clock: so many of the smallest take some
// microseconds, and so many key updates that ask for one a tenth of a millisecond.
const lookEvery = 8

// take hands over bytes of one record at most.
func (w *wire) take(p []byte) (n int) {
	if w.left == 0 {
		seen := w.headed + copy(w.head[w.headed:], w.in)
		if seen < headerBytes { // its length is not known yet
			n = copy(p, w.in)
			w.headed += n
			w.in = w.in[n:]
			return n
		}
		w.left = headerBytes - w.headed + int(binary.BigEndian.Uint16(w.head[3:]))
		w.headed = 0
	}
	n = copy(p, w.in[:min(len(w.in), w.left)])
	w.left -= n
	w.in = w.in[n:]
	return n
}

// Write takes all of b, or answers that the connection takes nothing more.
func (w *wire) Write(b []byte) (n int, err error) {
	w.answered = true
	switch {
	case w.hold != nil:
		w.hold.out = append(w.hold.out, b...)
		return len(b), nil
	case w.conn.endSent:
		// Nothing follows a close_notify (RFC 8446, section 6.1). The answer to a key update would, and crypto/tls takes
		// on the peer's new key only if that is written.
		return len(b), nil
	case w.answers.wanted:
		w.answers.add(w.conn.raw.Stats(), len(b))
	}
	if err := w.conn.raw.Enqueue(b); err != nil {
		w.refused = true
		return 0, err
	}
	return len(b), nil
}

// answers is what crypto/tls writes while it reads: to a key update that asks for one, as often as the peer likes. No
// Write is there to be refused where the peer takes none of them.
type answers struct {
	wanted bool   // crypto/tls reads
	bytes  int    // queued since the first
	until  uint64 // bytes written to the connection below when that has gone out
}

// mostAnswers are some 600, before the first of them has gone out.
const mostAnswers = 16 << 10

var errAnswers = errors.New("weirtls: the peer takes no answers, and asks for more")

func (a *answers) add(below weir.ConnStats, n int) {
	if below.Written >= a.until {
		a.bytes, a.until = 0, below.Written+uint64(below.Queued)
	}
	a.bytes += n
}

func (a *answers) tooMany() bool { return a.bytes > mostAnswers }

// Close does nothing: crypto/tls does not decide when the connection is over.
func (w *wire) Close() error { return nil }

// LocalAddr is for callbacks of Config.TLS, which see the wire as ClientHelloInfo.Conn.
func (w *wire) LocalAddr() net.Addr {
	if w.hold != nil {
		return netAddr(w.hold.local)
	}
	return netAddr(w.conn.raw.LocalAddr())
}

// RemoteAddr is as LocalAddr.
func (w *wire) RemoteAddr() net.Addr {
	if w.hold != nil {
		return netAddr(w.hold.remote)
	}
	return netAddr(w.conn.raw.RemoteAddr())
}

// netAddr is package net's form of an address; that of a unix socket has no name here.
func netAddr(a netip.AddrPort) net.Addr {
	if !a.IsValid() {
		return &net.UnixAddr{Net: "unix"}
	}
	return net.TCPAddrFromAddrPort(a)
}

// SetDeadline and the others do nothing: the loop has its own time limits.
func (w *wire) SetDeadline(time.Time) error { return nil }

// SetReadDeadline does nothing: see SetDeadline.
func (w *wire) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing: see SetDeadline.
func (w *wire) SetWriteDeadline(time.Time) error { return nil }
