package sock

import (
	"errors"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"testing"
)

func TestZones(t *testing.T) {
	t.Parallel()
	interfaces, err := net.Interfaces()
	if err != nil || len(interfaces) == 0 {
		t.Skip("no network interface to name: ", err)
	}
	named, number := interfaces[0].Name, strconv.Itoa(interfaces[0].Index)
	for _, c := range []struct {
		name, addr, want string
		numeric, fails   bool
	}{
		{name: "no zone", addr: "[fe80::1]:0", want: "[fe80::1]:0", numeric: true},
		{name: "IPv4", addr: "127.0.0.1:0", want: "127.0.0.1:0", numeric: true},
		{name: "a number", addr: "[fe80::1%7]:0", want: "[fe80::1%7]:0", numeric: true},
		{name: "a name", addr: "[fe80::1%" + named + "]:0", want: "[fe80::1%" + number + "]:0"},
		{name: "no such name", addr: "[fe80::1%no-such-interface]:0", fails: true},
	} {
		addr := netip.MustParseAddrPort(c.addr)
		if err := CheckZone(addr); (err == nil) != c.numeric || err != nil && !errors.Is(err, syscall.EINVAL) {
			t.Errorf("%s: CheckZone: %v", c.name, err)
		}
		got, err := ResolveZone(addr)
		if (err != nil) != c.fails || err == nil && got != netip.MustParseAddrPort(c.want) {
			t.Errorf("%s: ResolveZone: %v, %v", c.name, got, err)
		}
	}
}
