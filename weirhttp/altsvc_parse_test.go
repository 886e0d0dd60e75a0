package weirhttp

import (
	"testing"
	"time"
)

func TestParseAltSvc(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, c := range []struct {
		value string
		want  alternative
		clear bool
	}{
		{`h3=":443"`, alternative{"", "443", day}, false},
		{`h3=":443"; ma=60`, alternative{"", "443", time.Minute}, false},
		{`h3=":443";ma="60";persist=1`, alternative{"", "443", time.Minute}, false},
		{`h3="alt.example:8443"; MA=60`, alternative{"alt.example", "8443", time.Minute}, false},
		{`h3="[::1]:443"`, alternative{"::1", "443", day}, false}, // weir:port nothing is opened
		{`h2=":443", h3-29=":443", h3=":444"`, alternative{"", "444", day}, false},
		{`h3=":443"; ma=0, h3=":444"`, alternative{"", "444", day}, false},
		{`h3=":443"; ma=99999999999999999999999`, alternative{"", "443", longestMaxAge}, false},
		{`h3="\:44\3"`, alternative{"", "443", day}, false},
		{`h2="a,b;c:1", h3=":443"`, alternative{"", "443", day}, false},
		{` clear `, alternative{}, true},
		{`h2=":443"`, alternative{}, true},
		{`h3=":443"; ma=0`, alternative{}, true},
		{`h3=":443"; ma=x`, alternative{}, true},
		{``, alternative{}, false},
		{`h3`, alternative{}, false},
		{`h3=`, alternative{}, false},
		{`h3=443`, alternative{}, false},
		{`h3=":0"`, alternative{}, false},
		{`h3=":65536"`, alternative{}, false},
		{`h3="x"`, alternative{}, false},
		{`h3="::1:443"`, alternative{}, false},
		{`h3="user@host:443"`, alternative{}, false},
		{`h3=":443`, alternative{}, false},
		{"h3=\":443\xff\"", alternative{}, false},
	} {
		if got, clear := parseAltSvc([]string{c.value}); got != c.want || clear != c.clear {
			t.Errorf("%s: %+v, clear %v; want %+v, clear %v", c.value, got, clear, c.want, c.clear)
		}
	}
}

// FuzzAltSvc: whatever a server says, an alternative has a port, and an age in bounds.
func FuzzAltSvc(f *testing.F) {
	for _, s := range []string{`h3=":443"; ma=60`, `h3="[::1]:443", h2=":1"`, `clear`, `h3="\`, `;;,,=`} { // weir:port nothing is opened
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		alt, clear := parseAltSvc([]string{s})
		if alt == (alternative{}) {
			return
		}
		if clear || alt.port == "" || alt.port == "0" || alt.maxAge <= 0 || alt.maxAge > longestMaxAge {
			t.Errorf("%q: %+v, clear %v", s, alt, clear)
		}
	})
}
