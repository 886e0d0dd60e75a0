package weirhttp

import (
	"fmt"
	"net/http"
	"strings"
)

// checkRequest tells what HTTP/3 cannot send. http3 would not say: it would wait for a response to what it did not write.
func checkRequest(req *http.Request) error {
	if req.Method != "" && !isToken(req.Method) {
		return fmt.Errorf("weirhttp: method %q is none", req.Method)
	}
	for _, host := range []string{req.URL.Host, req.Host} {
		if strings.ContainsFunc(host, func(r rune) bool { return !isHostByte(r) }) {
			return fmt.Errorf("weirhttp: host %q is not as HTTP/3 has it: names are in ASCII", host)
		}
	}
	if path := req.URL.RequestURI(); !strings.HasPrefix(path, "/") && path != "*" {
		return fmt.Errorf("weirhttp: path %q does not begin with /", path)
	}
	if up := req.Header.Get("Upgrade"); up != "" { // http3 would leave it out (RFC 9114 section 4.5)
		return fmt.Errorf("weirhttp: HTTP/3 has no upgrade, to %q or anything else", up)
	}
	for _, h := range []http.Header{req.Header, req.Trailer} {
		for name, values := range h {
			if !isToken(name) {
				return fmt.Errorf("weirhttp: header name %q is none", name)
			}
			for _, v := range values {
				if strings.ContainsFunc(v, isControl) {
					return fmt.Errorf("weirhttp: value %q of header %s has control characters", v, name)
				}
			}
		}
	}
	return nil
}

// isToken tells whether s is one (RFC 9110 section 5.6.2).
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !isTokenByte(r) })
}

func isTokenByte(r rune) bool {
	return isAlphanumeric(r) || strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

// isHostByte tells whether a host with a port may have r (RFC 3986 section 3.2.2).
func isHostByte(r rune) bool {
	return isAlphanumeric(r) || strings.ContainsRune("!$%&'()*+,-.:;=[]_~", r)
}

func isAlphanumeric(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
