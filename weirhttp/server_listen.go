package weirhttp

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/weirnet/weir/dgram"
)

// Listen opens a TCP listener and a UDP socket on the same host and port, for Server.Serve: for who needs the port before
// it is served, or the socket, as weirprom's SetDgram does.
//
//   - Shape: address is host:port, "" is ":https"; port 0 is one that is free for both.
//   - Owner: the caller, until Serve has them.
//   - Errors: which of the two could not be opened, and the address.
func Listen(ctx context.Context, address string, cfg dgram.Config) (net.Listener, *dgram.Conn, error) {
	for try := 1; ; try++ {
		tcp, err := listenTCP(ctx, address)
		if err != nil {
			return nil, nil, err
		}
		udp, err := dgram.Listen(ctx, "udp", besides(address, tcp.Addr()), cfg)
		if err == nil {
			return tcp, udp, nil
		}
		_ = tcp.Close()
		// Where any port will do, another may be free of UDP, too.
		if !anyPort(address) || try == maxPorts || ctx.Err() != nil {
			return nil, nil, fmt.Errorf("weirhttp: listening on UDP: %w", err)
		}
	}
}

// maxPorts is how many ports Listen tries.
const maxPorts = 16

func listenTCP(ctx context.Context, address string) (net.Listener, error) {
	if address == "" {
		address = ":https"
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("weirhttp: listening on TCP: %w", err)
	}
	return l, nil
}

// besides is where UDP goes with a listener for address: to its port, and to the one address that a name came to.
func besides(address string, l net.Addr) string {
	bound, err := netip.ParseAddrPort(l.String())
	if err != nil {
		return address
	}
	host, _, _ := net.SplitHostPort(address)
	if _, err := netip.ParseAddr(host); err != nil && host != "" {
		host = bound.Addr().String()
	}
	return net.JoinHostPort(host, fmt.Sprint(bound.Port()))
}

func anyPort(address string) bool {
	_, port, err := net.SplitHostPort(address)
	return err == nil && (port == "0" || port == "")
}
