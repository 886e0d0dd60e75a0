package weirhttp

import (
	"context"
	"net"
	"net/netip"
	"strconv"
)

// maxAddrs is how many addresses of a name are tried.
const maxAddrs = 8

// resolve finds the addresses of a host, in the order of the resolver (RFC 6724), but those of the two families in turns
// (RFC 8305 section 4).
func resolve(ctx context.Context, at originKey) ([]netip.AddrPort, error) {
	port, err := strconv.ParseUint(at.port, 10, 16)
	if err != nil || port == 0 {
		return nil, &net.AddrError{Err: "no port", Addr: at.String()}
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", at.host)
	if err != nil {
		return nil, err
	}
	addrs := make([]netip.AddrPort, 0, len(ips))
	for _, ip := range ips {
		addrs = append(addrs, netip.AddrPortFrom(ip.Unmap(), uint16(port)))
	}
	return inTurns(addrs, maxAddrs), nil
}

// inTurns takes up to n addresses, of the first one's family and the other in turns.
func inTurns(addrs []netip.AddrPort, n int) (out []netip.AddrPort) {
	var queues [2][]netip.AddrPort
	for _, a := range addrs {
		family := 0
		if a.Addr().Is4() != addrs[0].Addr().Is4() {
			family = 1
		}
		queues[family] = append(queues[family], a)
	}
	for i := 0; len(out) < min(n, len(addrs)); i++ {
		if q := &queues[i%2]; len(*q) > 0 {
			out, *q = append(out, (*q)[0]), (*q)[1:]
		}
	}
	return out
}
