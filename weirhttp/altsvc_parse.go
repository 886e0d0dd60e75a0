package weirhttp

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// alternative is where an origin has HTTP/3, as an Alt-Svc header says (RFC 7838 section 3). Empty parts are the origin's.
type alternative struct {
	host   string
	port   string
	maxAge time.Duration
}

const (
	defaultMaxAge  = 24 * time.Hour      // RFC 7838 section 3.1
	longestMaxAge  = 30 * 24 * time.Hour // no server is believed for longer
	maxAltSvcBytes = 8 << 10
)

// parseAltSvc finds the first alternative that is HTTP/3. clear says that what was said before holds no more: the header
// says so, or names no HTTP/3 among what it has instead. What is not well formed is passed over.
func parseAltSvc(values []string) (first alternative, clear bool) {
	sound := false
	for _, v := range values {
		if len(v) > maxAltSvcBytes || !utf8.ValidString(v) {
			continue
		}
		if strings.TrimSpace(v) == "clear" {
			return alternative{}, true
		}
		for _, entry := range split(v, ',') {
			parts := split(entry, ';')
			protocol, authority, ok := strings.Cut(strings.TrimSpace(parts[0]), "=")
			if !ok {
				continue
			}
			alt, ok := parseAuthority(authority)
			if !ok {
				continue
			}
			sound = true
			if protocol != "h3" {
				continue
			}
			if alt.maxAge = maxAgeOf(parts[1:]); alt.maxAge > 0 {
				return alt, false
			}
		}
	}
	return alternative{}, sound
}

// parseAuthority reads the quoted host:port of an alternative; the host may be empty.
func parseAuthority(s string) (alternative, bool) {
	s, ok := unquote(s)
	if !ok {
		return alternative{}, false
	}
	at := strings.LastIndexByte(s, ':')
	if at < 0 {
		return alternative{}, false
	}
	host, port := s[:at], s[at+1:]
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return alternative{}, false
	}
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
	} else if strings.ContainsAny(host, ":[]/@ ") {
		return alternative{}, false
	}
	return alternative{host: host, port: port}, true
}

// maxAgeOf is the value of ma among the parameters; one that makes no sense is no age.
func maxAgeOf(parameters []string) time.Duration {
	for _, p := range parameters {
		name, value, _ := strings.Cut(strings.TrimSpace(p), "=")
		if !strings.EqualFold(name, "ma") {
			continue
		}
		if unquoted, ok := unquote(value); ok {
			value = unquoted
		}
		seconds, err := strconv.ParseUint(value, 10, 63)
		switch {
		case err != nil && strings.Trim(value, "0123456789") != "":
			return 0
		case err != nil, seconds > uint64(longestMaxAge/time.Second):
			return longestMaxAge
		}
		return time.Duration(seconds) * time.Second
	}
	return defaultMaxAge
}

// split cuts s at a separator, but not within quotes.
func split(s string, separator byte) (parts []string) {
	quoted, from := false, 0
	for i := 0; i < len(s); i++ {
		switch {
		case quoted && s[i] == '\\':
			i++
		case s[i] == '"':
			quoted = !quoted
		case s[i] == separator && !quoted:
			parts = append(parts, s[from:i])
			from = i + 1
		}
	}
	return append(parts, s[from:])
}

// unquote reads a quoted-string (RFC 9110 section 5.6.4).
func unquote(s string) (string, bool) {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return "", false
	}
	var b strings.Builder
	for s = s[1 : len(s)-1]; s != ""; s = s[1:] {
		switch s[0] {
		case '"':
			return "", false
		case '\\':
			if len(s) == 1 {
				return "", false
			}
			s = s[1:]
		}
		b.WriteByte(s[0])
	}
	return b.String(), true
}
