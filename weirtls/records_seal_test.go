package weirtls_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"
)

// sealer makes records of a client over TLS 1.3 that crypto/tls would not, with TLS_AES_128_GCM_SHA256.
type sealer struct {
	t      *testing.T
	server bool         // it is one
	log    bytes.Buffer // the client's KeyLogWriter
	secret []byte
	seq    uint64
}

// Types of records and messages.
const (
	handshakeRecord = 22
	dataRecord      = 23
)

// keyUpdate asks the peer for one of its own (RFC 8446, section 4.6.3).
var keyUpdate = []byte{24, 0, 0, 1, 1}

// expand is HKDF-Expand-Label (RFC 8446, section 7.1).
func (s *sealer) expand(label string, size int) []byte {
	info := binary.BigEndian.AppendUint16(nil, uint16(size))
	info = append(info, byte(len("tls13 ")+len(label)))
	info = append(append(info, "tls13 "+label...), 0)
	out, err := hkdf.Expand(sha256.New, s.secret, string(info), size)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// seal makes a record of the client, that has sent none itself after its handshake. What is behind a key update is
// under the next key.
func (s *sealer) seal(kind byte, data []byte) []byte {
	s.t.Helper()
	if s.secret == nil {
		label := "CLIENT_TRAFFIC_SECRET_0"
		if s.server {
			label = "SERVER_TRAFFIC_SECRET_0"
		}
		for line := range strings.Lines(s.log.String()) {
			if f := strings.Fields(line); f[0] == label {
				s.secret, _ = hex.DecodeString(f[2])
			}
		}
	}
	block, err := aes.NewCipher(s.expand("key", 16))
	if err != nil {
		s.t.Fatal(err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		s.t.Fatal(err)
	}
	nonce := s.expand("iv", aead.NonceSize())
	for i, b := range binary.BigEndian.AppendUint64(nil, s.seq) {
		nonce[4+i] ^= b
	}
	s.seq++
	header := binary.BigEndian.AppendUint16([]byte{dataRecord, 3, 3}, uint16(len(data)+1+aead.Overhead()))
	record := aead.Seal(header, nonce, append(bytes.Clone(data), kind), header)
	if kind == handshakeRecord && len(data) == len(keyUpdate) && data[0] == keyUpdate[0] {
		s.secret, s.seq = s.expand("traffic upd", sha256.Size), 0
	}
	return record
}
