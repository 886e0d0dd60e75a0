package weirhttp

import (
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Limits of an Alt-Svc header field; what is beyond them is not looked at.
const (
	maxAltSvcBytes  = 8 << 10
	maxAltSvcValues = 32
	maxHostBytes    = 255
	maxAltSvcAge    = 366 * 24 * time.Hour
	defaultAge      = 24 * time.Hour // RFC 7838 section 3.1
)

// alternative is where an origin has HTTP/3, as it says.
type alternative struct {
	host   string // in lower case, without brackets; "": the origin's
	port   string
	maxAge time.Duration
}

// parseAltSvc reads the Alt-Svc fields of a response (RFC 7838 section 3), and returns the alternatives with HTTP/3. What is
// malformed is passed over up to the next comma; persist and what is not known are ignored.
//
//   - Shape: ok tells that there was a value, so that it replaces what was known; none with HTTP/3 means that there is none.
func parseAltSvc(fields []string) (out []alternative, ok bool) {
	all := strings.Join(fields, ",")
	if len(all) > maxAltSvcBytes {
		return nil, false
	}
	if strings.Trim(all, " \t") == "clear" {
		return nil, true
	}
	s := altSvcScanner{rest: all}
	for range maxAltSvcValues {
		if s.space(); s.rest == "" {
			break
		}
		protocol, alt, good := s.value()
		if good {
			ok = true
			if protocol == "h3" {
				out = append(out, alt)
			}
		}
		s.toComma()
	}
	return out, ok
}

// altSvcScanner reads from the left.
type altSvcScanner struct{ rest string }

// value reads protocol-id "=" alt-authority *( OWS ";" OWS parameter ).
func (s *altSvcScanner) value() (protocol string, alt alternative, ok bool) {
	if protocol = s.token(); protocol == "" || !s.take('=') {
		return "", alternative{}, false
	}
	authority, ok := s.quoted()
	if ok {
		alt, ok = parseAuthority(authority)
	}
	if !ok {
		return "", alternative{}, false
	}
	alt.maxAge = defaultAge
	for {
		if s.space(); !s.take(';') {
			return protocol, alt, s.rest == "" || s.rest[0] == ','
		}
		s.space()
		name, value, ok := s.parameter()
		if ok && strings.EqualFold(name, "ma") {
			alt.maxAge, ok = parseAge(value)
		}
		if !ok {
			return "", alternative{}, false
		}
	}
}

// parameter reads token "=" ( token / quoted-string ).
func (s *altSvcScanner) parameter() (name, value string, ok bool) {
	if name = s.token(); name == "" || !s.take('=') {
		return "", "", false
	}
	if strings.HasPrefix(s.rest, `"`) {
		value, ok = s.quoted()
		return name, value, ok
	}
	value = s.token()
	return name, value, value != ""
}

func (s *altSvcScanner) space() { s.rest = strings.TrimLeft(s.rest, " \t") }

func (s *altSvcScanner) take(b byte) bool {
	if s.rest == "" || s.rest[0] != b {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

func (s *altSvcScanner) token() (t string) {
	n := 0
	for n < len(s.rest) && isTokenByte(rune(s.rest[n])) {
		n++
	}
	t, s.rest = s.rest[:n], s.rest[n:]
	return t
}

// quoted reads a quoted-string. One that does not end takes the rest.
func (s *altSvcScanner) quoted() (string, bool) {
	if !s.take('"') {
		return "", false
	}
	var b strings.Builder
	for i := 0; i < len(s.rest); i++ {
		switch s.rest[i] {
		case '"':
			s.rest = s.rest[i+1:]
			return b.String(), true
		case '\\':
			if i++; i == len(s.rest) {
				continue
			}
		}
		b.WriteByte(s.rest[i])
	}
	s.rest = ""
	return "", false
}

// toComma goes behind the next comma that is not quoted.
func (s *altSvcScanner) toComma() {
	for s.rest != "" && !s.take(',') {
		if s.rest[0] == '"' {
			_, _ = s.quoted()
		} else {
			s.rest = s.rest[1:]
		}
	}
}

// parseAuthority reads [ uri-host ] ":" port.
func parseAuthority(s string) (alt alternative, ok bool) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return alternative{}, false
	}
	host, port := s[:i], s[i+1:]
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || !isDigits(port) || len(host) > maxHostBytes {
		return alternative{}, false
	}
	if inner, found := strings.CutPrefix(host, "["); found {
		if host, found = strings.CutSuffix(inner, "]"); !found {
			return alternative{}, false
		}
		ip, err := netip.ParseAddr(host)
		return alternative{host: ip.String(), port: strconv.FormatUint(n, 10)}, err == nil && ip.Is6() && ip.Zone() == ""
	}
	for _, r := range host {
		if !isAlphanumeric(r) && r != '-' && r != '.' && r != '_' {
			return alternative{}, false
		}
	}
	return alternative{host: strings.ToLower(host), port: strconv.FormatUint(n, 10)}, true
}

// parseAge reads a number of seconds.
func parseAge(s string) (time.Duration, bool) {
	if !isDigits(s) {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n > uint64(maxAltSvcAge/time.Second) {
		return maxAltSvcAge, true // more digits than any age
	}
	return time.Duration(n) * time.Second, true
}

func isDigits(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
}
