//go:build unix

package main

import (
	"net"
	"sync/atomic"

	"github.com/weirnet/weir/lab/internal/meter"
)

func main() {
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		meter.Fail(err)
	}
	var received atomic.Uint64
	go meter.Serve(c.LocalAddr().String(), received.Load)
	for b := make([]byte, 2048); ; received.Add(1) {
		if _, _, err := c.ReadFromUDPAddrPort(b); err != nil {
			meter.Fail(err)
		}
	}
}
