package weirtls

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strings"
	"testing"
)

// The types of records.
const (
	ccsRecord       = 20
	alertRecord     = 21
	handshakeRecord = 22
	dataRecord      = 23
)

// records is the record layer of a peer whose handshake crypto/tls has done, for what crypto/tls itself never sends.
type records struct {
	peer
	version uint16
	hash    func() hash.Hash
	in, out direction
	read    recordReader
}

// direction is what protects one.
type direction struct {
	secret []byte // of TLS 1.3
	aead   cipher.AEAD
	iv     []byte
	seq    uint64
}

// suite12 is the one of TLS 1.2 that is spoken here.
const suite12 = tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256

// shake does a handshake, and is the record layer behind it.
func shake(c peer, r Role, cfg *tls.Config) (*records, error) {
	rec := &records{peer: c, read: recordReader{from: c}}
	var keys bytes.Buffer
	cfg = cfg.Clone()
	cfg.KeyLogWriter, cfg.CipherSuites, cfg.SessionTicketsDisabled = &keys, []uint16{suite12}, true
	hello := &helloConn{peer: c, read: &rec.read}
	std := stdConn(r, hello, cfg)
	if err := std.Handshake(); err != nil {
		return nil, err
	}
	state := std.ConnectionState()
	rec.version = state.Version
	return rec, rec.takeOver(r, state.CipherSuite, keys.String(), hello)
}

var errSuite = errors.New("a cipher suite that is not spoken here")

func (r *records) takeOver(role Role, suite uint16, keyLog string, hello *helloConn) error {
	size := 16
	switch suite {
	case tls.TLS_AES_128_GCM_SHA256, suite12:
		r.hash = sha256.New
	case tls.TLS_AES_256_GCM_SHA384:
		r.hash, size = sha512.New384, 32
	default:
		return errSuite
	}
	client, server := &r.out, &r.in
	if role == AsServer {
		client, server = server, client
	}
	if r.version == tls.VersionTLS13 {
		client.secret, server.secret = secretOf(keyLog, "CLIENT_TRAFFIC_SECRET_0"), secretOf(keyLog, "SERVER_TRAFFIC_SECRET_0")
		for _, d := range []*direction{client, server} {
			d.expand(r.hash, size)
		}
		return nil
	}
	randoms := map[Role][]byte{role: hello.sent, opposite(role): hello.got}
	seed := slices.Concat([]byte("key expansion"), randoms[AsServer], randoms[AsClient])
	block := expand12(secretOf(keyLog, "CLIENT_RANDOM"), seed, 2*16+2*4)
	client.use(block[:16], block[32:36])
	server.use(block[16:32], block[36:])
	client.seq, server.seq = 1, 1 // behind Finished
	return nil
}

// secretOf finds a secret of a connection in a key log (SSLKEYLOGFILE).
func secretOf(keyLog, label string) []byte {
	for line := range strings.Lines(keyLog) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == label {
			if b, err := hex.DecodeString(f[2]); err == nil {
				return b
			}
		}
	}
	return nil
}

func (d *direction) use(key, iv []byte) {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err)
	}
	if d.aead, err = cipher.NewGCM(block); err != nil {
		panic(err)
	}
	d.iv, d.seq = iv, 0
}

// expand makes the keys of a secret (RFC 8446, section 7.3).
func (d *direction) expand(h func() hash.Hash, size int) {
	d.use(expandLabel(h, d.secret, "key", size), expandLabel(h, d.secret, "iv", 12))
}

// next goes over to the next secret (RFC 8446, section 7.2).
func (d *direction) next(h func() hash.Hash) {
	d.secret = expandLabel(h, d.secret, "traffic upd", h().Size())
	d.expand(h, map[int]int{32: 16, 48: 32}[h().Size()])
}

func expandLabel(h func() hash.Hash, secret []byte, label string, size int) []byte {
	label = "tls13 " + label
	info := binary.BigEndian.AppendUint16(nil, uint16(size))
	info = append(append(info, byte(len(label))), label...)
	b, err := hkdf.Expand(h, secret, string(append(info, 0)), size)
	if err != nil {
		panic(err)
	}
	return b
}

// expand12 is P_hash of TLS 1.2 (RFC 5246, section 5).
func expand12(secret, seed []byte, size int) (out []byte) {
	sum := func(b ...[]byte) []byte {
		m := hmac.New(sha256.New, secret)
		m.Write(slices.Concat(b...))
		return m.Sum(nil)
	}
	for a := sum(seed); len(out) < size; a = sum(a) {
		out = append(out, sum(a, seed)...)
	}
	return out[:size]
}

// nonce is that of the next record.
func (r *records) nonce(d *direction) (explicit, nonce []byte) {
	seq := binary.BigEndian.AppendUint64(nil, d.seq)
	if r.version == tls.VersionTLS12 {
		return seq, slices.Concat(d.iv, seq)
	}
	nonce = slices.Clone(d.iv)
	for i, b := range seq {
		nonce[4+i] ^= b
	}
	return nil, nonce
}

// seal makes a record. Over TLS 1.3 so many zeros pad it.
func (r *records) seal(kind byte, data []byte, padding int) []byte {
	d := &r.out
	explicit, nonce := r.nonce(d)
	outer := kind
	if r.version == tls.VersionTLS13 {
		outer = dataRecord
		data = slices.Concat(data, []byte{kind}, make([]byte, padding))
	}
	header := []byte{outer, 3, 3, 0, 0}
	binary.BigEndian.PutUint16(header[3:], uint16(len(explicit)+len(data)+d.aead.Overhead()))
	sealed := d.aead.Seal(nil, nonce, data, r.additional(d, header, len(data)))
	d.seq++
	return slices.Concat(header, explicit, sealed)
}

// additional is what is authenticated besides the data.
func (r *records) additional(d *direction, header []byte, size int) []byte {
	if r.version == tls.VersionTLS13 {
		return header
	}
	b := binary.BigEndian.AppendUint64(nil, d.seq)
	b = append(b, header[:3]...)
	return binary.BigEndian.AppendUint16(b, uint16(size))
}

// send writes records of those pieces, in one go.
func (r *records) send(kind byte, pieces ...[]byte) error {
	var all []byte
	for _, b := range pieces {
		all = append(all, r.seal(kind, b, 0)...)
	}
	_, err := r.Write(all)
	return err
}

// next reads a record.
func (r *records) next() (kind byte, data []byte, err error) {
	header, sealed, err := r.read.record()
	if err != nil {
		return 0, nil, err
	}
	d := &r.in
	_, nonce := r.nonce(d)
	size := len(sealed) - d.aead.Overhead()
	if r.version == tls.VersionTLS12 {
		size -= 8
		nonce, sealed = slices.Concat(d.iv, sealed[:8]), sealed[8:]
	}
	data, err = d.aead.Open(nil, nonce, sealed, r.additional(d, header, size))
	if err != nil {
		return 0, nil, fmt.Errorf("record %d: %w", d.seq, err)
	}
	d.seq++
	if r.version == tls.VersionTLS12 {
		return header[0], data, nil
	}
	data = bytes.TrimRight(data, "\x00")
	return data[len(data)-1], data[:len(data)-1], nil
}

// heard is what came until the end: the data, and the other records in words. It follows a KeyUpdate.
func (r *records) heard() (data []byte, rest string) {
	var b strings.Builder
	for {
		kind, piece, err := r.next()
		switch {
		case err == io.EOF:
			return data, b.String() + "end"
		case err != nil:
			return data, b.String() + err.Error()
		case kind == dataRecord:
			data = append(data, piece...)
		case kind == alertRecord:
			fmt.Fprintf(&b, "alert %d, ", piece)
		case kind == handshakeRecord:
			fmt.Fprintf(&b, "handshake message %d, ", piece[0])
			if piece[0] == keyUpdate {
				r.in.next(r.hash)
			}
		default:
			fmt.Fprintf(&b, "record of type %d, ", kind)
		}
	}
}

// recordReader reads no more than one record, however the stream is cut.
type recordReader struct {
	from io.Reader
	left []byte // of the record that has been begun
}

func (r *recordReader) record() (header, sealed []byte, err error) {
	header = make([]byte, 5)
	if _, err := io.ReadFull(r.from, header); err != nil {
		return nil, nil, err
	}
	sealed = make([]byte, binary.BigEndian.Uint16(header[3:]))
	_, err = io.ReadFull(r.from, sealed)
	return header, sealed, err
}

func (r *recordReader) Read(b []byte) (int, error) {
	if len(r.left) == 0 {
		header, sealed, err := r.record()
		if err != nil {
			return 0, err
		}
		r.left = append(header, sealed...)
	}
	n := copy(b, r.left)
	r.left = r.left[n:]
	return n, nil
}

// helloConn keeps the randoms of the handshake that goes through it.
type helloConn struct {
	peer
	read      *recordReader
	sent, got []byte
}

func (h *helloConn) Read(b []byte) (int, error) {
	fresh := len(h.read.left) == 0
	n, err := h.read.Read(b)
	if fresh && h.got == nil && err == nil {
		h.got = randomOf(append(slices.Clone(b[:n]), h.read.left...))
	}
	return n, err
}

func (h *helloConn) Write(b []byte) (int, error) {
	if h.sent == nil {
		h.sent = randomOf(b)
	}
	return h.peer.Write(b)
}

// randomOf is where ClientHello and ServerHello have it: behind the headers of the record and the message, and a version.
func randomOf(b []byte) []byte {
	if len(b) < 11+32 || b[0] != handshakeRecord {
		return nil
	}
	return slices.Clone(b[11 : 11+32])
}

// shakeOrSkip is shake in a test.
func shakeOrSkip(t *testing.T, c peer, r Role, cfg *tls.Config) *records {
	t.Helper()
	rec, err := shake(c, r, cfg)
	if errors.Is(err, errSuite) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return rec
}
