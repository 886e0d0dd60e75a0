package weirtls

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirnet/weir"
)

var opensslVersions = map[uint16]string{tls.VersionTLS12: "-tls1_2", tls.VersionTLS13: "-tls1_3"}

// eachOpenSSL runs a test for both versions, with weirtls, and with the standard library, whose story is to be the same.
func eachOpenSSL(t *testing.T, test func(t *testing.T, p *place, version uint16, weirs bool) *story) {
	need(t, "openssl")
	for _, version := range versions {
		t.Run(versionName(version), func(t *testing.T) {
			t.Parallel()
			p := onMachine(t, weir.Config{})
			want := test(t, p, version, false)
			sameStory(t, "with openssl", test(t, p, version, true), want)
		})
	}
}

// sClient is a client that knows the authority.
func sClient(t *testing.T, files pemFiles, at netip.AddrPort, version uint16, more ...string) *command {
	t.Helper()
	return start(t, "openssl", append([]string{
		"s_client", "-connect", at.String(), opensslVersions[version], "-CAfile", files.ca, "-verify_return_error",
	}, more...)...)
}

// TestOpenSSLClient has openssl's client name a host, agree on a protocol and show a certificate.
func TestOpenSSLClient(t *testing.T) {
	eachOpenSSL(t, func(t *testing.T, p *place, version uint16, weirs bool) *story {
		files := writePEM(t)
		cfg := askingTLS(version)
		cfg.GetCertificate, cfg.NextProtos = byName, []string{"two", "one"}
		at, end := p.overNet(weirs, cfg, program{echo: true})
		c := sClient(t, files, at, version, "-servername", otherName, "-verify_hostname", otherName,
			"-alpn", "none,one", "-cert", files.client)
		c.wait("ALPN protocol: one")
		c.wait("Verify return code: 0 (ok)")
		c.say("hello")
		c.wait("hello")
		c.say("Q")
		c.finish()
		s := end()
		if st := s.state; st.ServerName != otherName || st.NegotiatedProtocol != "one" || len(st.PeerCertificates) == 0 || string(s.data) != "hello\n" {
			t.Errorf("the server has %s", s.summary())
		}
		return s
	})
}

// TestOpenSSLClientRefused has the certificate be one of another authority. Over TLS 1.3 openssl learns of it behind its
// handshake.
func TestOpenSSLClientRefused(t *testing.T) {
	eachOpenSSL(t, func(t *testing.T, p *place, version uint16, weirs bool) *story {
		files := writePEM(t)
		at, end := p.overNet(weirs, askingTLS(version), program{echo: true})
		c := sClient(t, files, at, version, "-servername", serverName, "-cert", files.stranger)
		s := end()
		c.wait("alert")
		if e, ok := errors.AsType[*HandshakeError](s.err); weirs && (!ok || e.Kind != KindCertificate) {
			t.Errorf("OnClose has %v", s.err)
		}
		return s
	})
}

// TestOpenSSLResumes has openssl's client come back with a ticket.
func TestOpenSSLResumes(t *testing.T) {
	eachOpenSSL(t, func(t *testing.T, p *place, version uint16, weirs bool) (s *story) {
		files := writePEM(t)
		cfg := serverTLS(version)
		session := filepath.Join(t.TempDir(), "session")
		for i, args := range [][]string{{"-sess_out", session}, {"-sess_in", session}} {
			at, end := p.overNet(weirs, cfg, program{echo: true})
			c := sClient(t, files, at, version, append(args, "-servername", serverName)...)
			c.say("hello")
			c.wait([]string{"New, TLSv1.", "Reused, TLSv1."}[i])
			c.wait("hello")
			c.say("Q")
			c.finish()
			if s = end(); s.state.DidResume != (i == 1) {
				t.Errorf("time %d: the server has %s", i, s.summary())
			}
		}
		return s
	})
}

// TestOpenSSLKeys has openssl's client change its keys over TLS 1.3, and want those of the server changed; over TLS 1.2
// it wants to negotiate again, which is refused.
func TestOpenSSLKeys(t *testing.T) {
	eachOpenSSL(t, func(t *testing.T, p *place, version uint16, weirs bool) *story {
		files := writePEM(t)
		at, end := p.overNet(weirs, serverTLS(version), program{echo: true})
		c := sClient(t, files, at, version, "-servername", serverName, "-msg")
		c.say("hello")
		c.wait("hello")
		if version == tls.VersionTLS12 {
			c.say("R")
			c.wait("RENEGOTIATING")
			c.wait("alert")
			s := end()
			if !strings.Contains(s.outcome(), "tls: ") {
				t.Errorf("the server has %s", s.summary())
			}
			return s
		}
		for _, k := range []string{"K", "k", "K"} {
			c.say(k)
			c.wait("KEYUPDATE")
			if k == "K" {
				c.wait("<<< TLS 1.3, Handshake [length 0005], KeyUpdate")
			}
			c.say("again " + k)
			c.wait("again " + k)
		}
		c.say("Q")
		c.finish()
		return end()
	})
}

// sServer is a server for one connection.
func sServer(t *testing.T, files pemFiles, version uint16, more ...string) (c *command, at netip.AddrPort) {
	t.Helper()
	c = start(t, "openssl", append([]string{
		"s_server", "-accept", "127.0.0.1:0", "-naccept", "1", opensslVersions[version], "-cert", files.server,
	}, more...)...)
	at, err := netip.ParseAddrPort(c.wait("ACCEPT "))
	if err != nil {
		t.Fatal(err)
	}
	return c, at
}

// TestOpenSSLServer has openssl's server ask for a certificate, and be one of several names, or choose a protocol, which it
// cannot do for the second name.
func TestOpenSSLServer(t *testing.T) {
	for name, protocol := range map[string]string{otherName: "", serverName: "one"} {
		t.Run(name, func(t *testing.T) {
			eachOpenSSL(t, func(t *testing.T, p *place, version uint16, weirs bool) *story {
				files := writePEM(t)
				c, at := sServer(t, files, version, "-servername", otherName, "-cert2", files.other, "-key2", files.other,
					"-alpn", "two,one", "-Verify", "1", "-CAfile", files.ca, "-verify_return_error")
				cfg := clientTLS(version)
				cfg.ServerName, cfg.NextProtos, cfg.Certificates = name, []string{"one"}, []tls.Certificate{certificates().client}
				end := p.toNet(weirs, at, cfg, program{first: []byte("hello\n"), closeAt: len("world\n")})
				c.wait("hello")
				c.say("world")
				s := end()
				c.finish()
				if st := s.state; st.NegotiatedProtocol != protocol || string(s.data) != "world\n" {
					t.Errorf("the client has %s", s.summary())
				}
				return s
			})
		})
	}
}

// TestOpenSSLServerRefuses has openssl's server want a certificate that the client has none of. Over TLS 1.3 the client
// learns of it behind its handshake.
func TestOpenSSLServerRefuses(t *testing.T) {
	eachOpenSSL(t, func(t *testing.T, p *place, version uint16, weirs bool) *story {
		files := writePEM(t)
		_, at := sServer(t, files, version, "-Verify", "1", "-CAfile", files.ca, "-verify_return_error")
		s := p.toNet(weirs, at, clientTLS(version), program{})()
		if s.shook != (version == tls.VersionTLS13) || !strings.HasPrefix(s.outcome(), "remote error: tls: ") {
			t.Errorf("the client has %s", s.summary())
		}
		return s
	})
}

// TestOpenSSLServerResumes has the client come back to openssl's server with a ticket.
func TestOpenSSLServerResumes(t *testing.T) {
	eachOpenSSL(t, func(t *testing.T, p *place, version uint16, weirs bool) (s *story) {
		files := writePEM(t)
		c, at := sServer(t, files, version, "-naccept", "2")
		cfg := clientTLS(version)
		cfg.ClientSessionCache = tls.NewLRUClientSessionCache(1)
		for i := range 2 {
			end := p.toNet(weirs, at, cfg, program{first: fmt.Appendf(nil, "hello %d\n", i), closeAt: len("world\n")})
			c.wait(fmt.Sprint("hello ", i))
			c.say("world")
			if s = end(); s.state.DidResume != (i == 1) {
				t.Errorf("time %d: the client has %s", i, s.summary())
			}
		}
		if said := c.finish(); !strings.Contains(said, "Reused session-id") {
			t.Errorf("openssl said:\n%s", said)
		}
		return s
	})
}

// TestOpenSSLServerKeys has openssl's server change its keys over TLS 1.3, and want those of the client changed; over TLS
// 1.2 it wants to negotiate again, which is refused.
func TestOpenSSLServerKeys(t *testing.T) {
	eachOpenSSL(t, func(t *testing.T, p *place, version uint16, weirs bool) *story {
		files := writePEM(t)
		c, at := sServer(t, files, version, "-msg")
		end := p.toNet(weirs, at, clientTLS(version), program{echo: true, first: []byte("hello\n"), closeAt: len("again K\nagain k\nagain K\n")})
		c.wait("hello")
		if version == tls.VersionTLS12 {
			c.say("R")
			s := end()
			c.wait("no_renegotiation")
			if s.outcome() != "local error: tls: no renegotiation" {
				t.Errorf("the client has %s", s.summary())
			}
			return s
		}
		for _, k := range []string{"K", "k", "K"} {
			c.say(k)
			c.wait(">>> TLS 1.3, Handshake [length 0005], KeyUpdate") // it drops what it reads together with a command
			if k == "K" {
				c.wait("<<< TLS 1.3, Handshake [length 0005], KeyUpdate")
			}
			c.say("again " + k)
			c.wait("again " + k)
		}
		return end()
	})
}
