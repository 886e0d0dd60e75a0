package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/weirnet/weir/dgram"
)

// summary tells where the folder is served, by what, and under which certificate: two lines.
func summary(cfg serveConfig, f *folder, s *sockets, c *certificate) string {
	where := s.address.url()
	if s.address.host == "" || isUnspecified(s.address.host) {
		where += ", on all interfaces,"
	}
	protocols := "HTTP/1.1 and 2"
	if !cfg.noHTTP3 {
		protocols = "HTTP/1.1, 2 and 3"
		if fast := fastPaths(s.pairs[0].udp.Stats().Paths); fast != "" {
			protocols += " (UDP with " + fast + ")"
		}
	}
	return fmt.Sprintf("serving %s on %s over %s\n%s\n", word(f.path), where, protocols, c.text())
}

// text is the certificate in a line.
func (c *certificate) text() string {
	return fmt.Sprintf("certificate %s, until %s, SHA-256 %s, SPKI %s", c.origin,
		c.pair.Leaf.NotAfter.UTC().Format(time.DateOnly), c.fingerprint(), c.spki())
}

// fastPaths are those that the socket has on.
func fastPaths(on dgram.FastPaths) string {
	var names []string
	for _, p := range []struct {
		on   bool
		name string
	}{{on.BatchedReceives, "recvmmsg"}, {on.BatchedSends, "sendmmsg"}, {on.GSO, "GSO"}, {on.GRO, "GRO"}} {
		if p.on {
			names = append(names, p.name)
		}
	}
	return strings.Join(names, ", ")
}
