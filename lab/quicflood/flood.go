//go:build unix

package main

import (
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/net/ipv4"
)

// batch is how many datagrams one system call sends, from one port.
const batch = 32

// flood sends its datagrams in turn.
type flood struct {
	to      atomic.Pointer[net.UDPAddr] // nil: rest
	sent    atomic.Uint64
	packets [][]byte
	rate    int
	socks   []*ipv4.PacketConn
	next    int // the packet that is next
}

func newFlood(packets [][]byte, rate, ports int) (*flood, error) {
	f := &flood{packets: packets, rate: rate}
	for range ports {
		c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			return nil, err
		}
		f.socks = append(f.socks, ipv4.NewPacketConn(c))
	}
	return f, nil
}

func (f *flood) run() {
	ms := make([]ipv4.Message, batch)
	for i := range ms {
		ms[i].Buffers = make([][]byte, 1)
	}
	for {
		to := f.to.Load()
		if to == nil {
			time.Sleep(time.Millisecond)
			continue
		}
		f.burst(ms, to)
	}
}

// burst sends for as long as the target is the same. It sleeps once it is ahead of its rate.
func (f *flood) burst(ms []ipv4.Message, to *net.UDPAddr) {
	sent := 0
	for i, began := 0, time.Now(); f.to.Load() == to; i++ {
		due := int(time.Since(began).Seconds()*float64(f.rate)) - sent
		if due <= 0 {
			time.Sleep(time.Millisecond)
			continue
		}
		n := min(due, batch)
		for j := range ms[:n] {
			ms[j].Buffers[0], ms[j].Addr = f.packets[f.next], to
			f.next = (f.next + 1) % len(f.packets)
		}
		// An error is the target's answer to what was sent before: it has nothing to say about these.
		n, _ = f.socks[i%len(f.socks)].WriteBatch(ms[:n], 0)
		sent += max(n, 0)
		f.sent.Add(uint64(max(n, 0)))
	}
}
