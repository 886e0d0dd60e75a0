package weirtls

import (
	"crypto/ed25519"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"crypto/rand"
	"crypto/x509"
	"math/big"

	"github.com/weirnet/weir"
)

// fixedIdentity signs with as many bytes each time, so that all sessions are of the same length.
var fixedIdentity = sync.OnceValue(func() tls.Certificate {
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<32, 0)}
	der, err := x509.CreateCertificate(rand.Reader, about, about, public, key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
})

// TestTruncation: a connection that is cut off anywhere is told as that, and an end only behind a close_notify.
func TestTruncation(t *testing.T) {
	t.Parallel()
	step := 29
	if longOracles {
		step = 1
	}
	truncateEach(t, step)
}

func truncateEach(t *testing.T, step int) {
	eachVersion(t, func(t *testing.T, version uint16) {
		for _, w := range []way{up, down} {
			t.Run([]string{"up", "down"}[w], func(t *testing.T) {
				session := truncated(t, version, w, []int{-1})
				whole := len(session)
				var cuts []int
				for _, r := range recordsOf(session) { // between records it is easily taken for an end
					cuts = append(cuts, 5+r.size)
					if n := len(cuts); n > 1 {
						cuts[n-1] += cuts[n-2]
					}
				}
				cuts[len(cuts)-1]-- // the close_notify without its last byte
				for at := 0; at < whole; at += step {
					cuts = append(cuts, at)
				}
				for group := range slices.Chunk(cuts, 200) {
					if got := truncated(t, version, w, append(slices.Clip(group), -1)); len(got) != whole {
						t.Fatalf("a session is of %d bytes, the first was of %d", len(got), whole)
					}
				}
			})
		}
	})
}

// truncated has a session for each cut, and is what was said in the longest.
func truncated(t *testing.T, version uint16, w way, cuts []int) (whole []byte) {
	message := pattern(700)
	playInMemory(t, func(s *scene) {
		serverConfig := serverTLS(version)
		serverConfig.Certificates = []tls.Certificate{fixedIdentity()}
		clientConfig := clientTLS(version)
		clientConfig.InsecureSkipVerify = true
		clientConfig.CurvePreferences = []tls.CurveID{tls.X25519} // whose keys are short
		var hears []*ear
		var relays []*relay
		for _, cut := range cuts {
			hearing, talking := newEar(t, fmt.Sprint("cut at ", cut)), newEar(t, "talking")
			talking.on("handshake", func(c *Conn) {
				_, _ = c.Write(message[:300])
				_, _ = c.Write(message[300:])
				_ = c.Close()
			})
			server, client := hearing, talking
			if w == down {
				server, client = talking, hearing
			}
			r, at := s.relay(s.listen(Config{TLS: serverConfig}, weir.ListenerConfig{}, server.handler()))
			r.ways[w].cut = cut
			s.dial(at, Config{TLS: clientConfig}, weir.ConnConfig{}, client.handler())
			hears, relays = append(hears, hearing), append(relays, r)
		}
		s.runFor(30 * time.Second)
		for i, cut := range cuts {
			e, seen := hears[i], relays[i].ways[w].seen
			if len(seen) > len(whole) {
				whole = seen
			}
			if cut < 0 {
				e.told("open handshake data end close", nil)
				same(t, e.name, e.data, message)
				continue
			}
			e.truncated(message)
		}
		s.nothingLeft()
	})
	return whole
}

// truncated fails unless the connection was told that it has been cut off, after a part of the message.
func (e *ear) truncated(message []byte) {
	e.t.Helper()
	if len(e.data) > len(message) {
		e.t.Errorf("%s: %d bytes came of %d", e.name, len(e.data), len(message))
		return
	}
	same(e.t, e.name, e.data, message[:len(e.data)])
	if slices.Contains(e.calls, "end") || e.closes != 1 {
		e.t.Errorf("%s: told %v, with %v", e.name, e.calls, e.err)
	}
	if !slices.Contains(e.calls, "handshake") {
		e.failed(KindGone)
	} else if !errors.Is(e.err, ErrTruncated) {
		e.t.Errorf("%s: OnClose has %v, want %v", e.name, e.err, ErrTruncated)
	}
	if !errors.Is(e.err, io.ErrUnexpectedEOF) {
		e.t.Errorf("%s: OnClose has %v, want one that is %v", e.name, e.err, io.ErrUnexpectedEOF)
	}
}
