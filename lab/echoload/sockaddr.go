//go:build linux

package main

import (
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

func sockaddr(addr string) (unix.Sockaddr, error) {
	a, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, err
	}
	if !a.Addr().Is4() {
		return nil, fmt.Errorf("%v is no IPv4 address", a)
	}
	return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}, nil
}
