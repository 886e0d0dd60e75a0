package weirtls

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/weirnet/weir"
)

// pairing is how two sides are configured. It is made anew for each time that they meet, and times over for that.
type pairing struct {
	name           string
	configs        func(version uint16) (server, client *tls.Config)
	times          int
	resumed, fails bool // the last time
	retried        bool // over TLS 1.3, by a HelloRetryRequest
}

var pairings = []pairing{
	{name: "plain", configs: func(v uint16) (s, c *tls.Config) { return serverTLS(v), clientTLS(v) }},
	{name: "tickets", times: 3, resumed: true, configs: func(v uint16) (s, c *tls.Config) {
		s, c = serverTLS(v), clientTLS(v)
		c.ClientSessionCache = tls.NewLRUClientSessionCache(1)
		return s, c
	}},
	{name: "tickets off", times: 2, configs: func(v uint16) (s, c *tls.Config) {
		s, c = serverTLS(v), clientTLS(v)
		s.SessionTicketsDisabled = true
		c.ClientSessionCache = tls.NewLRUClientSessionCache(1)
		return s, c
	}},
	{name: "tickets and client certificates", times: 2, resumed: true, configs: func(v uint16) (s, c *tls.Config) {
		s, c = askingTLS(v), clientTLS(v)
		c.Certificates = []tls.Certificate{certificates().client}
		c.ClientSessionCache = tls.NewLRUClientSessionCache(1)
		return s, c
	}},

	{name: "a client's certificate", configs: func(v uint16) (s, c *tls.Config) {
		s, c = askingTLS(v), clientTLS(v)
		c.Certificates = []tls.Certificate{certificates().client}
		return s, c
	}},
	{name: "a client's certificate with a long chain", configs: func(v uint16) (s, c *tls.Config) {
		s, c = askingTLS(v), clientTLS(v)
		c.Certificates = []tls.Certificate{certificates().chain}
		return s, c
	}},
	{name: "a client without a certificate", fails: true, configs: func(v uint16) (s, c *tls.Config) {
		return askingTLS(v), clientTLS(v)
	}},
	{name: "a client of another authority", fails: true, configs: func(v uint16) (s, c *tls.Config) {
		s, c = askingTLS(v), clientTLS(v)
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certificates().stranger, nil }
		return s, c
	}},
	{name: "a client's certificate that may be left out", configs: func(v uint16) (s, c *tls.Config) {
		s, c = askingTLS(v), clientTLS(v)
		s.ClientAuth = tls.VerifyClientCertIfGiven
		return s, c
	}},
	{name: "a client that fails to choose", fails: true, configs: func(v uint16) (s, c *tls.Config) {
		s, c = askingTLS(v), clientTLS(v)
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return nil, errRefused }
		return s, c
	}},

	{name: "a server that nobody knows", fails: true, configs: func(v uint16) (s, c *tls.Config) {
		s, c = serverTLS(v), clientTLS(v)
		c.RootCAs = x509.NewCertPool()
		return s, c
	}},
	{name: "a server of another name", fails: true, configs: func(v uint16) (s, c *tls.Config) {
		s, c = serverTLS(v), clientTLS(v)
		c.ServerName = otherName
		return s, c
	}},
	{name: "a client that refuses", fails: true, configs: func(v uint16) (s, c *tls.Config) {
		s, c = serverTLS(v), clientTLS(v)
		c.VerifyConnection = func(tls.ConnectionState) error { return errRefused }
		return s, c
	}},
	{name: "a server that refuses", fails: true, configs: func(v uint16) (s, c *tls.Config) {
		s, c = serverTLS(v), clientTLS(v)
		s.VerifyConnection = func(tls.ConnectionState) error { return errRefused }
		return s, c
	}},

	{name: "a name by GetCertificate", configs: func(v uint16) (s, c *tls.Config) {
		s, c = serverTLS(v), clientTLS(v)
		s.Certificates, s.GetCertificate = nil, byName
		c.ServerName = otherName
		return s, c
	}},
	{name: "a name by GetConfigForClient", configs: func(v uint16) (s, c *tls.Config) {
		s, c = serverTLS(v), clientTLS(v)
		s.GetConfigForClient = func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			cfg := serverTLS(v)
			cfg.NextProtos = []string{"of " + h.ServerName}
			cfg.Certificates = []tls.Certificate{certificates().other}
			return cfg, nil
		}
		c.ServerName, c.NextProtos = otherName, []string{"of " + otherName}
		return s, c
	}},
	{name: "GetConfigForClient that has none", configs: func(v uint16) (s, c *tls.Config) {
		s, c = serverTLS(v), clientTLS(v)
		s.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, nil }
		return s, c
	}},
	{name: "GetConfigForClient that refuses", fails: true, configs: func(v uint16) (s, c *tls.Config) {
		s, c = serverTLS(v), clientTLS(v)
		s.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, errRefused }
		return s, c
	}},
	{name: "GetCertificate that refuses", fails: true, configs: func(v uint16) (s, c *tls.Config) {
		s, c = serverTLS(v), clientTLS(v)
		s.Certificates = nil
		s.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, errRefused }
		return s, c
	}},

	{name: "ALPN", configs: func(v uint16) (s, c *tls.Config) {
		s, c = serverTLS(v), clientTLS(v)
		s.NextProtos, c.NextProtos = []string{"one", "two"}, []string{"none", "two", "one"}
		return s, c
	}},
	{name: "ALPN without a choice", fails: true, configs: func(v uint16) (s, c *tls.Config) {
		s, c = serverTLS(v), clientTLS(v)
		s.NextProtos, c.NextProtos = []string{"one"}, []string{"two"}
		return s, c
	}},
	{name: "ALPN of the client alone", configs: func(v uint16) (s, c *tls.Config) {
		s, c = serverTLS(v), clientTLS(v)
		c.NextProtos = []string{"two"}
		return s, c
	}},

	{name: "another curve", retried: true, configs: func(v uint16) (s, c *tls.Config) {
		s, c = serverTLS(v), clientTLS(v)
		s.CurvePreferences, c.CurvePreferences = []tls.CurveID{tls.CurveP384}, []tls.CurveID{tls.X25519, tls.CurveP384}
		return s, c
	}},
	{name: "no curve in common", fails: true, configs: func(v uint16) (s, c *tls.Config) {
		s, c = serverTLS(v), clientTLS(v)
		s.CurvePreferences, c.CurvePreferences = []tls.CurveID{tls.CurveP384}, []tls.CurveID{tls.X25519}
		return s, c
	}},
	{name: "an old client", fails: true, configs: func(v uint16) (s, c *tls.Config) {
		c = clientTLS(v)
		c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
		return serverTLS(v), c
	}},
	{name: "another version", fails: true, configs: func(v uint16) (s, c *tls.Config) {
		return serverTLS(v), clientTLS(tls.VersionTLS12 + tls.VersionTLS13 - v)
	}},
	{name: "another suite", configs: func(v uint16) (s, c *tls.Config) { // in TLS 1.3 they are not chosen
		s, c = serverTLS(v), clientTLS(v)
		s.CipherSuites = []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384}
		c.CipherSuites = []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}
		return s, c
	}},
}

var errRefused = errors.New("tls: refused by the test")

// askingTLS is that of a server that wants a certificate.
func askingTLS(version uint16) *tls.Config {
	s := serverTLS(version)
	s.ClientAuth, s.ClientCAs = tls.RequireAndVerifyClientCert, certificates().roots
	return s
}

func byName(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if h.ServerName == otherName {
		return &certificates().other, nil
	}
	return &certificates().server, nil
}

// TestHandshakeOracle has two sides of all configurations meet, with weirtls at one end, and with the standard library at
// both, which is the oracle: both sides have the same story.
func TestHandshakeOracle(t *testing.T) {
	for _, role := range []Role{AsServer, AsClient} {
		for _, version := range append(versions, 0) {
			for _, c := range cuts {
				t.Run(fmt.Sprintf("%v %s %s", role, versionName(version), c.name), func(t *testing.T) {
					onEachKernel(t, weir.Config{}, func(t *testing.T, p *place) {
						p.skipCut(t, c.name)
						for _, pair := range pairings {
							if version == 0 && pair.name == "another version" {
								continue
							}
							got, want := p.meetings(pair, role, version, c.how), p.meetings(pair, 0, version, c.how)
							got.same(t, pair, role, want, c.name == "whole")
						}
					})
				})
			}
		}
	}
}

// TestBlockingOracle is TestHandshakeOracle for handshakes on goroutines of their own.
func TestBlockingOracle(t *testing.T) {
	for _, role := range []Role{AsServer, AsClient} {
		t.Run(role.String(), func(t *testing.T) {
			onEachKernel(t, weir.Config{}, func(t *testing.T, p *place) {
				p.blocking = true
				for _, pair := range pairings {
					p.meetings(pair, role, 0, cuts[0].how).same(t, pair, role, p.meetings(pair, 0, 0, cuts[0].how), true)
				}
			})
		})
	}
}

// meetings are the stories of both sides, time after time.
type meetings map[Role][]*story

func (p *place) meetings(pair pairing, weirs Role, version uint16, how func(uint64) cut) meetings {
	p.t.Helper()
	m := make(meetings)
	s, c := pair.configs(version)
	for range max(pair.times, 1) {
		server, client := p.converse(weirs, s, c, weir.ConnConfig{},
			program{writes: [][]byte{[]byte("hello")}}, program{closeAt: len("hello")}, how(1), how(2))
		m[AsServer], m[AsClient] = append(m[AsServer], server), append(m[AsClient], client)
	}
	return m
}

// same compares with the oracle's. Who is told of a failure while it still writes may not come to read why, so that where
// the stream is cut what failed is compared at the side that is weirtls alone.
func (m meetings) same(t *testing.T, pair pairing, weirs Role, want meetings, exact bool) {
	t.Helper()
	for role, stories := range m {
		if !exact && pair.fails && role != weirs {
			continue
		}
		for i, s := range stories {
			sameStory(t, fmt.Sprintf("%s: the %v, time %d", pair.name, role, i), s, want[role][i])
		}
	}
	oracle := want[AsServer][len(want[AsServer])-1]
	st := oracle.state
	if st.DidResume != pair.resumed || (oracle.err != nil) != pair.fails || st.HelloRetryRequest != (pair.retried && st.Version == tls.VersionTLS13) {
		t.Errorf("%s: the oracle itself tells %s", pair.name, oracle.summary())
	}
	for _, mine := range m[weirs] {
		if _, ok := errors.AsType[*HandshakeError](mine.err); ok == mine.shook && mine.err != nil {
			t.Errorf("%s: OnClose has %v, the handshake was done: %v", pair.name, mine.err, mine.shook)
		}
	}
}

// TestKinds has failed handshakes be of the kind that they are.
func TestKinds(t *testing.T) {
	kinds := map[string]map[Role]Kind{
		"a client of another authority": {AsServer: KindCertificate},
		"a server that nobody knows":    {AsServer: KindAlert, AsClient: KindCertificate},
		"a server of another name":      {AsServer: KindAlert, AsClient: KindCertificate},
		"a client that refuses":         {AsServer: KindAlert, AsClient: KindProtocol},
		"ALPN without a choice":         {AsServer: KindProtocol, AsClient: KindAlert},
		"an old client":                 {AsServer: KindProtocol},
	}
	onEachKernel(t, weir.Config{}, func(t *testing.T, p *place) {
		for _, pair := range pairings {
			for role, kind := range kinds[pair.name] {
				s, c := pair.configs(tls.VersionTLS13)
				server, client := p.converse(role, s, c, weir.ConnConfig{}, program{}, program{}, whole, whole)
				mine := server
				if role == AsClient {
					mine = client
				}
				e, ok := errors.AsType[*HandshakeError](mine.err)
				if !ok || e.Kind != kind || e.Role != role || !e.Addr.IsValid() {
					t.Errorf("%s, as %v: OnClose has %v, %+v, want the kind %v", pair.name, role, mine.err, e, kind)
				}
				for target, of := range map[error]Kind{new(tls.CertificateVerificationError): KindCertificate, tls.AlertError(0): KindAlert} {
					if got := matches(mine.err, target); ok && got != (kind == of) {
						t.Errorf("%s, as %v: that %v matches %T is %v", pair.name, role, mine.err, target, got)
					}
				}
			}
		}
	})
}

// matches tells whether there is an error of that type.
func matches(err, target error) bool {
	switch target.(type) {
	case *tls.CertificateVerificationError:
		_, ok := errors.AsType[*tls.CertificateVerificationError](err)
		return ok
	default:
		_, ok := errors.AsType[tls.AlertError](err)
		return ok
	}
}

// TestKeyExchange has both ends agree on X25519MLKEM768 where nothing is said.
func TestKeyExchange(t *testing.T) {
	onEachKernel(t, weir.Config{}, func(t *testing.T, p *place) {
		for _, role := range []Role{AsServer, AsClient} {
			server, client := p.converse(role, serverTLS(0), clientTLS(0), weir.ConnConfig{}, program{}, program{half: true}, whole, whole)
			for _, s := range []*story{server, client} {
				if s.state.CurveID != tls.X25519MLKEM768 || s.state.Version != tls.VersionTLS13 {
					t.Errorf("as %v: %s", role, s.summary())
				}
			}
		}
	})
}

// TestKeyLog has both ends of a connection log the same secrets.
func TestKeyLog(t *testing.T) {
	for _, role := range []Role{AsServer, AsClient} {
		for _, version := range versions {
			t.Run(fmt.Sprintf("%v %s", role, versionName(version)), func(t *testing.T) {
				onEachKernel(t, weir.Config{}, func(t *testing.T, p *place) {
					server, client := serverTLS(version), clientTLS(version)
					var atServer, atClient keyLog
					server.KeyLogWriter, client.KeyLogWriter = &atServer, &atClient
					p.converse(role, server, client, weir.ConnConfig{}, program{}, program{half: true}, whole, whole)
					a, b := atServer.lines(), atClient.lines()
					if want := map[uint16]int{tls.VersionTLS12: 1, tls.VersionTLS13: 4}[version]; len(a) != want || len(b) != want {
						t.Errorf("the server logs %d secrets, the client %d, want %d", len(a), len(b), want)
					}
					for line := range a {
						if !b[line] {
							t.Errorf("the server alone logs %s", line)
						}
					}
				})
			})
		}
	}
}

// keyLog may be written to by a goroutine and read by another.
type keyLog struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

func (k *keyLog) Write(b []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.b.Write(b)
}

func (k *keyLog) lines() map[string]bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := make(map[string]bool)
	for line := range bytes.Lines(k.b.Bytes()) {
		all[string(line)] = true
	}
	return all
}
