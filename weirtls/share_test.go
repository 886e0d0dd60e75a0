package weirtls_test

import (
	"crypto/tls"
	"testing"
	"time"

	"github.com/weirnet/weir"
	"github.com/weirnet/weir/weirtls"
)

// slowCache is a ClientSessionCache that takes its time.
type slowCache struct{ took time.Duration }

func (slowCache) Get(string) (*tls.ClientSessionState, bool) { return nil, false }
func (c slowCache) Put(string, *tls.ClientSessionState)      { time.Sleep(c.took) }

// ticket is a NewSessionTicket (RFC 8446, section 4.6.1).
var ticket = []byte{4, 0, 0, 15, 0, 0, 0, 60, 0, 0, 0, 0, 1, 0, 0, 1, 'x', 0, 0}

// TestTicketFlood has a server send a client tickets in masses: whatever else there is to do has its turn when the share
// of a visit is used up, though nothing is delivered between them.
func TestTicketFlood(t *testing.T) {
	const took, most = 100 * time.Microsecond, 4 * time.Millisecond // 2 ms of credit, and some records
	play(t, func(s *script) {
		seal := &sealer{t: t, server: true}
		got, worst := 0, time.Duration(0)
		at := s.serve(weirtls.Config{TLS: &tls.Config{SessionTicketsDisabled: true}}, weir.ConnConfig{}, weirtls.Handler{
			OnHandshake: func(c *weirtls.Conn, _ tls.ConnectionState) {
				var flood []byte
				for range 100 {
					for range 16 { // as many as crypto/tls takes without data
						flood = append(flood, seal.seal(handshakeRecord, ticket)...)
					}
					flood = append(flood, seal.seal(dataRecord, []byte{0})...)
				}
				_ = c.Raw().Enqueue(flood)
			},
		})
		config := &tls.Config{KeyLogWriter: &seal.log, ClientSessionCache: slowCache{took}}
		s.dial(at, config, weirtls.Handler{
			OnHandshake: func(c *weirtls.Conn, _ tls.ConnectionState) {
				last := time.Now()
				s.loop.Work(func() (more bool) {
					now := time.Now()
					worst, last = max(worst, now.Sub(last)), now
					return got < 100
				}).Again()
			},
			OnData: func(_ *weirtls.Conn, b []byte) { got += len(b) },
		})
		s.end()
		s.Cleanup(func() {
			if got != 100 || worst > most {
				t.Errorf("got %d of 100, and others waited up to %v", got, worst)
			}
		})
	})
}
