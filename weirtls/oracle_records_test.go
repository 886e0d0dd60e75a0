package weirtls

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"slices"
	"testing"

	"github.com/weirnet/weir"
)

// The handshake messages that come behind a handshake, or should not.
const (
	helloRequest       = 0
	clientHello        = 1
	newSessionTicket   = 4
	certificateRequest = 13
	finished           = 20
	keyUpdate          = 24
)

// message is a handshake message.
func message(kind byte, body ...byte) []byte {
	return slices.Concat([]byte{kind, 0, byte(len(body) >> 8), byte(len(body))}, body)
}

func alert(level, what byte) []byte { return []byte{level, what} }

var closeNotify = alert(1, 0)

// updateKeys sends KeyUpdates, and goes over to the next keys.
func (r *records) updateKeys(times int, requested byte) error {
	for range times {
		if err := r.send(handshakeRecord, message(keyUpdate, requested)); err != nil {
			return err
		}
		r.out.next(r.hash)
	}
	return nil
}

// raw writes bytes as they are.
func (r *records) raw(b ...[]byte) error {
	_, err := r.Write(slices.Concat(b...))
	return err
}

// hostile is what a peer sends that crypto/tls does not, or only by chance.
type hostile struct {
	name string
	only uint16 // the version
	send func(r *records) error
}

var hostiles = []hostile{
	{"close_notify", 0, func(r *records) error { return r.send(alertRecord, closeNotify) }},
	{"nothing", 0, func(*records) error { return nil }},
	{"data behind close_notify", 0, func(r *records) error {
		return r.raw(r.seal(alertRecord, closeNotify, 0), r.seal(dataRecord, []byte("lost"), 0))
	}},
	{"some empty records", 0, func(r *records) error {
		return r.send(dataRecord, nil, nil, nil, []byte("data"), nil)
	}},
	{"as many empty records as are ignored", 0, func(r *records) error {
		return r.send(dataRecord, append(make([][]byte, 16), []byte("data"))...)
	}},
	{"one empty record more", 0, func(r *records) error {
		return r.send(dataRecord, append(make([][]byte, 17), []byte("data"))...)
	}},
	{"tiny records", 0, func(r *records) error {
		return r.send(dataRecord, slices.Repeat([][]byte{{'x'}}, 300)...)
	}},
	{"tiny records between empty ones", 0, func(r *records) error {
		return r.send(dataRecord, slices.Repeat([][]byte{{'x'}, nil}, 100)...)
	}},
	{"the largest records", 0, func(r *records) error {
		return r.send(dataRecord, slices.Repeat([][]byte{make([]byte, 1<<14)}, 3)...)
	}},
	{"a record too large", 0, func(r *records) error {
		return r.send(dataRecord, []byte("data"), make([]byte, 1<<14+1), []byte("lost"))
	}},
	{"a length too large", 0, func(r *records) error {
		return r.raw(r.seal(dataRecord, []byte("data"), 0), []byte{dataRecord, 3, 3, 0x48, 0x01})
	}},
	{"a wrong tag", 0, func(r *records) error {
		bad := r.seal(dataRecord, []byte("bad"), 0)
		bad[len(bad)-1] ^= 1
		good := r.seal(dataRecord, []byte("lost"), 0)
		return r.raw(bad, good)
	}},
	{"a wrong tag behind data", 0, func(r *records) error {
		good, bad := r.seal(dataRecord, bytes.Repeat([]byte("good"), 4000), 0), r.seal(dataRecord, []byte("bad"), 0)
		bad[7] ^= 1
		return r.raw(good, bad)
	}},
	{"a record twice", 0, func(r *records) error {
		b := r.seal(dataRecord, []byte("once"), 0)
		return r.raw(b, b)
	}},
	{"a record too short", 0, func(r *records) error { return r.raw([]byte{dataRecord, 3, 3, 0, 1, 0}) }},
	{"a record of no bytes", 0, func(r *records) error { return r.raw([]byte{dataRecord, 3, 3, 0, 0}) }},
	{"another version", 0, func(r *records) error {
		b := r.seal(dataRecord, []byte("data"), 0)
		b[1] = 5
		return r.raw(b)
	}},
	{"a type that there is not", 0, func(r *records) error { return r.send(99, []byte("data")) }},
	{"HTTP", 0, func(r *records) error { return r.raw([]byte("GET / HTTP/1.1\r\n\r\n")) }},
	{"half a header", 0, func(r *records) error {
		return r.raw(r.seal(dataRecord, []byte("data"), 0), []byte{dataRecord, 3})
	}},
	{"half a record", 0, func(r *records) error {
		a, b := r.seal(dataRecord, []byte("data"), 0), r.seal(dataRecord, make([]byte, 1000), 0)
		return r.raw(a, b[:500])
	}},

	{"a fatal alert", 0, func(r *records) error { return r.send(alertRecord, alert(2, 40)) }},
	{"a fatal alert behind data", 0, func(r *records) error {
		return r.raw(r.seal(dataRecord, []byte("data"), 0), r.seal(alertRecord, alert(2, 80), 0))
	}},
	{"an alert that there is not", 0, func(r *records) error { return r.send(alertRecord, alert(2, 200)) }},
	{"a warning", 0, func(r *records) error {
		return r.raw(r.seal(alertRecord, alert(1, 90), 0), r.seal(dataRecord, []byte("data"), 0))
	}},
	{"many warnings", 0, func(r *records) error {
		return r.send(alertRecord, slices.Repeat([][]byte{alert(1, 90)}, 40)...)
	}},
	{"an alert of a level that there is not", 0, func(r *records) error { return r.send(alertRecord, alert(7, 90)) }},
	{"half an alert", 0, func(r *records) error { return r.send(alertRecord, []byte{2}) }},
	{"two alerts in a record", 0, func(r *records) error { return r.send(alertRecord, []byte{1, 0, 1, 0}) }},
	{"an empty alert", 0, func(r *records) error { return r.send(alertRecord, nil) }},

	{"ClientHello", 0, func(r *records) error { return r.send(handshakeRecord, message(clientHello, make([]byte, 50)...)) }},
	{"Finished", 0, func(r *records) error { return r.send(handshakeRecord, message(finished, make([]byte, 32)...)) }},
	{"a message that there is not", 0, func(r *records) error { return r.send(handshakeRecord, message(77)) }},
	{"an empty handshake record", 0, func(r *records) error { return r.send(handshakeRecord, nil) }},
	{"a message too long", 0, func(r *records) error { return r.send(handshakeRecord, []byte{newSessionTicket, 255, 255, 255}) }},
	{"half a message, and data", 0, func(r *records) error {
		return r.raw(r.seal(handshakeRecord, []byte{keyUpdate, 0}, 0), r.seal(dataRecord, []byte("data"), 0))
	}},
	{"ChangeCipherSpec", 0, func(r *records) error { return r.send(ccsRecord, []byte{1}) }},
	{"ChangeCipherSpec as it is", 0, func(r *records) error { return r.raw([]byte{ccsRecord, 3, 3, 0, 1, 1}) }},
	{"HelloRequest", 0, func(r *records) error {
		return r.raw(r.seal(dataRecord, []byte("data"), 0), r.seal(handshakeRecord, message(helloRequest), 0))
	}},

	{"padding", tls.VersionTLS13, func(r *records) error {
		return r.raw(r.seal(dataRecord, []byte("data"), 1000), r.seal(dataRecord, nil, 1000), r.seal(dataRecord, []byte("more"), 1<<14-4))
	}},
	{"nothing but padding", tls.VersionTLS13, func(r *records) error { return r.raw(r.seal(0, nil, 100)) }},
	{"KeyUpdate", tls.VersionTLS13, func(r *records) error {
		if err := r.updateKeys(1, 0); err != nil {
			return err
		}
		return r.send(dataRecord, []byte("in new keys"))
	}},
	{"KeyUpdate that wants an answer", tls.VersionTLS13, func(r *records) error {
		if err := r.updateKeys(1, 1); err != nil {
			return err
		}
		return r.send(dataRecord, []byte("in new keys"))
	}},
	{"KeyUpdates between data", tls.VersionTLS13, func(r *records) error {
		for range 50 {
			if err := r.updateKeys(1, 1); err != nil {
				return err
			}
			if err := r.send(dataRecord, []byte("data")); err != nil {
				return err
			}
		}
		return nil
	}},
	{"too many KeyUpdates", tls.VersionTLS13, func(r *records) error { return r.updateKeys(40, 0) }},
	{"a KeyUpdate in pieces", tls.VersionTLS13, func(r *records) error {
		m := message(keyUpdate, 0)
		if err := r.send(handshakeRecord, m[:1], m[1:4], m[4:]); err != nil {
			return err
		}
		r.out.next(r.hash)
		return r.send(dataRecord, []byte("in new keys"))
	}},
	{"data in old keys", tls.VersionTLS13, func(r *records) error {
		return r.raw(r.seal(handshakeRecord, message(keyUpdate, 0), 0), r.seal(dataRecord, []byte("old"), 0))
	}},
	{"two KeyUpdates in a record", tls.VersionTLS13, func(r *records) error {
		return r.send(handshakeRecord, append(message(keyUpdate, 0), message(keyUpdate, 0)...))
	}},
	{"a KeyUpdate that wants 2", tls.VersionTLS13, func(r *records) error { return r.send(handshakeRecord, message(keyUpdate, 2)) }},
	{"NewSessionTicket", tls.VersionTLS13, func(r *records) error {
		ticket := []byte{0, 0, 0, 9, 0, 0, 0, 1, 1, 1, 0, 2, 7, 7, 0, 0}
		return r.raw(r.seal(handshakeRecord, message(newSessionTicket, ticket...), 0), r.seal(dataRecord, []byte("data"), 0))
	}},
	{"CertificateRequest", tls.VersionTLS13, func(r *records) error {
		return r.send(handshakeRecord, message(certificateRequest, 0, 0, 8, 0, 13, 0, 4, 0, 2, 4, 3))
	}},
}

// TestOracleRecords has a peer send what it should not, or need not, to weirtls and to the standard library, which is the
// oracle: what is delivered, how it ends and what the peer is told is the same.
func TestOracleRecords(t *testing.T) {
	for _, role := range []Role{AsServer, AsClient} {
		for _, version := range versions {
			for _, c := range cuts {
				t.Run(fmt.Sprintf("%v %s %s", role, versionName(version), c.name), func(t *testing.T) {
					onEachKernel(t, weir.Config{}, func(t *testing.T, p *place) {
						p.skipCut(t, c.name)
						for _, h := range hostiles {
							if h.only == 0 || h.only == version {
								want := p.meet(role, version, false, h, c.how(1))
								p.meet(role, version, true, h, c.how(1)).same(t, h.name, want, p.peers != nil)
							}
						}
					})
				})
			}
		}
	}
}

// encounter is what such a peer, and who it met, have to tell.
type encounter struct {
	*story
	data  []byte // that the peer was sent back
	heard string // what else
}

// meet has a side meet such a peer, which ends its direction then, and reads on.
func (p *place) meet(role Role, version uint16, weirs bool, h hostile, out cut) (e encounter) {
	p.t.Helper()
	cfg := roleTLS(role, version)
	cfg.SessionTicketsDisabled = true
	other, end := p.side(weirs, role, cfg, weir.ConnConfig{}, program{echo: true})
	defer other.Close()
	r := shakeOrSkip(p.t, &splitter{peer: other, in: whole, out: out}, opposite(role), roleTLS(opposite(role), version))
	_ = h.send(r) // which the side may end in the middle
	_ = r.CloseWrite()
	e.data, e.heard = r.heard()
	e.story = end()
	return e
}

// same compares with the oracle's. A reset on a machine takes some of what was sent with it, so that exact is for memory.
func (e encounter) same(t *testing.T, name string, want encounter, exact bool) {
	t.Helper()
	sameStory(t, name+": who was met", e.story, want.story)
	if !exact {
		return
	}
	if e.heard != want.heard {
		t.Errorf("%s: the peer heard %s; from the oracle %s", name, e.heard, want.heard)
	}
	if want.outcome() == "closed" && !bytes.Equal(e.data, want.data) {
		t.Errorf("%s: %d bytes came back, from the oracle %d", name, len(e.data), len(want.data))
	}
}
