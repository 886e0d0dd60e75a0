package weirhttp

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// RFC 8305 section 4: "The first address … should be of the first address family … the addresses of the other family …
// alternate".
func TestInTurns(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                            "",
		"::1":                         "::1",
		"1.0.0.1 ::1":                 "1.0.0.1 ::1",
		"::1 ::2 ::3 1.0.0.1 1.0.0.2": "::1 1.0.0.1 ::2 1.0.0.2 ::3",
		"1.0.0.1 1.0.0.2 1.0.0.3":     "1.0.0.1 1.0.0.2 1.0.0.3",
		"1.0.0.1 1.0.0.2 ::1":         "1.0.0.1 ::1 1.0.0.2",
		"::1 ::2 ::3 ::4 ::5 ::6":     "::1 ::2 ::3 ::4 ::5",
	} {
		var addrs []netip.AddrPort
		for s := range strings.FieldsSeq(in) {
			addrs = append(addrs, netip.AddrPortFrom(netip.MustParseAddr(s), 1))
		}
		var got []string
		for _, a := range inTurns(addrs, 5) {
			got = append(got, a.Addr().String())
		}
		if g := strings.Join(got, " "); g != want {
			t.Errorf("%s: %s, want %s", in, g, want)
		}
	}
}

func TestResolvePort(t *testing.T) {
	t.Parallel()
	for _, port := range []string{"", "0", "65536", "https", "-1"} {
		if _, err := resolve(t.Context(), originKey{"127.0.0.1", port}); err == nil || !strings.Contains(fmt.Sprint(err), "127.0.0.1:"+port) {
			t.Errorf("port %q: %v", port, err)
		}
	}
	if got, err := resolve(t.Context(), originKey{"::ffff:127.0.0.1", "1"}); err != nil || len(got) != 1 || !got[0].Addr().Is4() {
		t.Errorf("IPv4 in IPv6: %v, %v", got, err)
	}
}
