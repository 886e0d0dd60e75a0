package weirhttp

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestParseAltSvc(t *testing.T) {
	t.Parallel()
	day := defaultAge
	one := func(host, port string, age time.Duration) []alternative { return []alternative{{host, port, age}} }
	for _, tt := range []struct {
		name   string
		fields []string
		want   []alternative
		ok     bool
	}{
		{"plain", []string{`h3=":443"`}, one("", "443", day), true},
		{"age", []string{`h3=":443"; ma=60`}, one("", "443", time.Minute), true},
		{"age quoted, name in capitals", []string{`h3=":443";MA="60"`}, one("", "443", time.Minute), true},
		{"age of none", []string{`h3=":443"; ma=0`}, one("", "443", 0), true},
		{"age beyond all", []string{`h3=":443"; ma=99999999999999999999999`}, one("", "443", maxAltSvcAge), true},
		{"persist and what is not known", []string{`h3=":443"; persist=1; ma=60; x="a,\"b;"; y=z`}, one("", "443", time.Minute), true},
		{"host", []string{`h3="Alt.Example.COM:8443"`}, one("alt.example.com", "8443", day), true},
		{"IPv4", []string{`h3="192.0.2.1:1"`}, one("192.0.2.1", "1", day), true},
		{"IPv6", []string{`h3="[2001:DB8::1]:1"`}, one("2001:db8::1", "1", day), true},
		{"zeros", []string{`h3=":0443"`}, one("", "443", day), true},
		{"escaped", []string{`h3="\:\4\43"`}, one("", "443", day), true},
		{"several", []string{`h3=":1", h2=":2",h3=":3" , h3-29=":4"`}, []alternative{{"", "1", day}, {"", "3", day}}, true},
		{"several fields", []string{`h2=":1"`, `h3=":2"`}, one("", "2", day), true},
		{"empty elements", []string{`, ,h3=":1", ,`}, one("", "1", day), true},
		{"clear", []string{" clear "}, nil, true},
		{"Clear is not clear", []string{"Clear"}, nil, false},
		{"clear among others", []string{`clear, h3=":1"`}, one("", "1", day), true},
		{"no HTTP/3", []string{`h2=":1"`}, nil, true},
		{"protocol in capitals", []string{`H3=":1"`}, nil, true},
		{"empty", []string{""}, nil, false},
		{"not quoted", []string{`h3=:443`}, nil, false},
		{"no port", []string{`h3="host"`}, nil, false},
		{"port 0", []string{`h3=":0"`}, nil, false},
		{"port beyond", []string{`h3=":65536"`}, nil, false},
		{"port with a sign", []string{`h3=":+443"`}, nil, false},
		{"port without digits", []string{`h3=":"`}, nil, false},
		{"host with a space", []string{`h3="a b:1"`}, nil, false},
		{"host with a zone", []string{`h3="[fe80::1%eth0]:1"`}, nil, false},
		{"IPv4 in brackets", []string{`h3="[192.0.2.1]:1"`}, nil, false},
		{"IPv6 without brackets", []string{`h3="::1:1"`}, nil, false},
		{"bracket left open", []string{`h3="[::1:1"`}, nil, false},
		{"host too long", []string{`h3="` + strings.Repeat("a", 256) + `:1"`}, nil, false},
		{"quote left open", []string{`h3=":443`}, nil, false},
		{"quote left open behind a good one", []string{`h3=":1", h3=":2`}, one("", "1", day), true},
		{"what is malformed ends at the comma", []string{`h3=":1" x, h3="a,b", h3=":2"`}, one("", "2", day), true},
		{"age that is none", []string{`h3=":1"; ma=-1, h3=":2"; ma=, h3=":3"; ma`}, nil, false},
		{"too long", []string{`h3=":1"`, strings.Repeat(" ", maxAltSvcBytes)}, nil, false},
		{"too many", []string{strings.Repeat(`h2=":1",`, maxAltSvcValues) + `h3=":1"`}, nil, true},
	} {
		got, ok := parseAltSvc(tt.fields)
		if !slices.Equal(got, tt.want) || ok != tt.ok {
			t.Errorf("%s: %q is %v, %t, want %v, %t", tt.name, tt.fields, got, ok, tt.want, tt.ok)
		}
	}
}

func FuzzAltSvc(f *testing.F) {
	for _, s := range []string{
		`h3=":443"; ma=2592000,h3-29=":443"; ma=2592000`,
		`h3="[2001:db8::1]:443"; persist=1`,
		`clear`,
		`h3="a\"b:1", h2=":2"; x="\\"`,
		`h3=":1";;ma=1`,
		"h3=\":1\x00\"\n",
		`w=":2181"; ma=99999999999999999999,h3`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, field string) {
		got, ok := parseAltSvc([]string{field})
		if len(got) > 0 && !ok || len(got) > maxAltSvcValues {
			t.Fatalf("%q: %v, %t", field, got, ok)
		}
		for _, a := range got {
			again := `h3="` + authorityOf(a) + `"; ma="` + seconds(a.maxAge) + `"`
			if twice, ok := parseAltSvc([]string{again}); !ok || !slices.Equal(twice, []alternative{a}) {
				t.Fatalf("%q has %+v, which is %q, which is %+v", field, a, again, twice)
			}
			if a.maxAge < 0 || a.maxAge > maxAltSvcAge || len(a.host) > maxHostBytes {
				t.Fatalf("%q has %+v, which is beyond the limits", field, a)
			}
		}
		split, okSplit := parseAltSvc(strings.Split(field, ","))
		if !slices.Equal(split, got) || okSplit != ok {
			t.Fatalf("%q is %v, and %v in fields of their own", field, got, split)
		}
	})
}

func authorityOf(a alternative) string {
	if strings.Contains(a.host, ":") {
		return "[" + a.host + "]:" + a.port
	}
	return a.host + ":" + a.port
}

func seconds(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }
