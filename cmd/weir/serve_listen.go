package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"github.com/weirnet/weir/dgram"
	"github.com/weirnet/weir/weirhttp"
)

// sockets are all that is listened on: a pair for each address, all with one port.
type sockets struct {
	address address // with the port that was chosen
	pairs   []socketPair
}

type socketPair struct {
	tcp net.Listener
	udp *dgram.Conn // nil without HTTP/3
}

// packets is the UDP socket as an interface that is nil where there is none.
func (p socketPair) packets() net.PacketConn {
	if p.udp == nil {
		return nil
	}
	return p.udp
}

func (s *sockets) close() {
	for _, p := range s.pairs {
		_ = p.tcp.Close() // its server may have closed it
		if p.udp != nil {
			_ = p.udp.Close()
		}
	}
}

// portTries is how often a free port is chosen again, as another program has it for the other address.
const portTries = 16

// listen opens the sockets. Where the port is chosen, it is one that all of them can have.
func listen(ctx context.Context, a address, udp bool) (s *sockets, err error) {
	for range portTries {
		if s, err = listenOnce(ctx, a, udp); a.port != 0 || !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	return s, err
}

func listenOnce(ctx context.Context, a address, udp bool) (*sockets, error) {
	s := &sockets{address: a}
	for i, host := range hosts(a.host) {
		err := s.add(ctx, host, udp)
		if i > 0 && isMissing(err) {
			break // a machine without IPv6
		}
		if err != nil {
			s.close()
			return nil, listenError(err, s.address)
		}
	}
	return s, nil
}

// hosts are the addresses that a name in --addr stands for.
func hosts(name string) []string {
	if name == "localhost" {
		return []string{"127.0.0.1", "::1"}
	}
	return []string{name}
}

// add opens a pair. The first one chooses the port, and the address where the host is a name.
func (s *sockets) add(ctx context.Context, host string, udp bool) error {
	var p socketPair
	var err error
	if at := net.JoinHostPort(host, strconv.Itoa(s.address.port)); udp {
		p.tcp, p.udp, err = weirhttp.Listen(ctx, at, dgram.Config{})
	} else {
		p.tcp, err = new(net.ListenConfig).Listen(ctx, "tcp", at)
	}
	if err != nil {
		return err
	}
	s.address.port = p.tcp.Addr().(*net.TCPAddr).Port
	s.pairs = append(s.pairs, p)
	return nil
}

// isMissing says that the machine does not have the address, or its family.
func isMissing(err error) bool {
	return errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT)
}

// listenError says in words what can be mended.
func listenError(err error, a address) error {
	network, host := "TCP", a.host
	var op *net.OpError
	if errors.As(err, &op) {
		if len(op.Net) > 2 && op.Net[:3] == "udp" {
			network = "UDP"
		}
		if op.Addr != nil {
			host = op.Addr.String()
		}
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("the %s port of %s is taken by another program; --addr %s takes one that is free: %w",
			network, host, address{a.host, 0}, syscall.EADDRINUSE)
	case errors.Is(err, syscall.EACCES) && a.port > 0 && a.port < 1024:
		return fmt.Errorf("no permission for the %s port of %s, as it is below 1024; --addr %s needs none: %w",
			network, host, address{a.host, 8443}, syscall.EACCES)
	}
	if op != nil {
		return op // which socket it is stands there, too
	}
	return err
}

// isUnspecified says that the host is an address that stands for all interfaces.
func isUnspecified(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsUnspecified()
}
