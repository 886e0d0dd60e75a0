package weirhttp

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/quic-go/quic-go"
)

// guard makes the connection ids of a server, and refuses datagrams that cannot be for it before QUIC sees them: each of
// those would else cost a look into a locked table, and often an answer (Stateless Reset, Version Negotiation). An id says
// by its last two bytes whether it is the server's, to who has the key.
//
// What it keeps out is what anybody can send. Who has a connection knows ids that pass; what comes with those is that
// connection's matter.
type guard struct {
	key   cipher.Block
	clock func() time.Time

	// Of pass, which one goroutine at a time calls.
	block  [aes.BlockSize]byte // here, as a local one is garbage each time
	second int64
	answer int // datagrams that may be answered without a connection, in this second
}

const (
	idRandomBytes = 6
	idBytes       = idRandomBytes + 2

	// maxAnswers is how many clients a second are told which versions of QUIC there are.
	maxAnswers = 200

	// What RFC 9000 says: the shortest datagram with a client's Initial packet (14.1), and the shortest packet that can be
	// told from a Stateless Reset (10.3).
	minInitialBytes = 1200
	minShortBytes   = 21
)

func newGuard() *guard {
	var key [16]byte
	_, _ = rand.Read(key[:]) // never fails
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // of a wrong length alone
	}
	return &guard{key: block, clock: time.Now}
}

// GenerateConnectionID is for quic.
func (g *guard) GenerateConnectionID() (quic.ConnectionID, error) {
	var id [idBytes]byte
	_, _ = rand.Read(id[:idRandomBytes])
	var block [aes.BlockSize]byte
	copy(id[idRandomBytes:], g.tag(&block, id[:]))
	return quic.ConnectionIDFromBytes(id[:]), nil
}

// ConnectionIDLen is for quic.
func (g *guard) ConnectionIDLen() int { return idBytes }

// tag is what the last two bytes of an id are to be, in block.
func (g *guard) tag(block *[aes.BlockSize]byte, id []byte) []byte {
	clear(block[copy(block[:], id[:idRandomBytes]):])
	g.key.Encrypt(block[:], block[:])
	return block[:idBytes-idRandomBytes]
}

func (g *guard) ours(id []byte) bool {
	if len(id) != idBytes {
		return false
	}
	return subtle.ConstantTimeCompare(g.tag(&g.block, id), id[idRandomBytes:]) == 1
}

// pass is a filter of datagrams.
func (g *guard) pass(b []byte, _ netip.AddrPort) bool {
	switch {
	case len(b) < minShortBytes:
		return false
	case b[0]&0x80 == 0: // short header (RFC 9000 section 17.3)
		return b[0]&0x40 != 0 && g.ours(b[1:1+idBytes])
	}
	// Long header (RFC 8999 section 5.1): version, then the id of whom it is for with its length in front.
	version, length := binary.BigEndian.Uint32(b[1:]), int(b[5])
	if length > 20 || len(b) < 6+length {
		return false
	}
	id, kind := b[6:6+length], int(b[0]>>4&3)
	switch version {
	case 0: // Version Negotiation, which servers send
		return false
	case uint32(quic.Version1):
	case uint32(quic.Version2):
		kind = (kind + 3) & 3 // RFC 9369 section 3.2
	default:
		return len(b) >= minInitialBytes && g.mayAnswer()
	}
	switch kind {
	case 0: // Initial
		return b[0]&0x40 != 0 && len(b) >= minInitialBytes
	case 2: // Handshake
		return b[0]&0x40 != 0 && g.ours(id)
	default: // 0-RTT, which is not taken, and Retry, which servers send
		return false
	}
}

// mayAnswer counts a datagram that is answered without a connection.
func (g *guard) mayAnswer() bool {
	if second := g.clock().Unix(); second != g.second {
		g.second, g.answer = second, 0
	}
	g.answer++
	return g.answer <= maxAnswers
}
