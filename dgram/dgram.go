// Package dgram is batched UDP for goroutines.
package dgram

import (
	"context"
	"net"

	"github.com/weirnet/weir/fault"
	_ "golang.org/x/net/ipv4"
	"log/slog"
)

// Config is a Conn's. The zero Config works.
type Config struct {
	RecvBufferBytes int
	SendBufferBytes int
	ReuseAddr       bool
	ReusePort       bool
	Device          string
	Broadcast       bool
	TTL             int
	TrafficClass    int
	NoGSO           bool
	NoGRO           bool
	NoBatches       bool
	Sole            bool
	Faults          *fault.Injector
	Logger          *slog.Logger
}

// Conn is a UDP socket.
type Conn struct{ *net.UDPConn }

// Stats is what a Conn has done.
type Stats struct{ Received, Sent, SendLost, KernelDropped uint64 }

// Listen opens a socket.
func Listen(ctx context.Context, network, address string, cfg Config) (*Conn, error) {
	var lc net.ListenConfig
	pc, err := lc.ListenPacket(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &Conn{pc.(*net.UDPConn)}, nil
}

// Stats tells what the Conn has done so far.
func (c *Conn) Stats() Stats { return Stats{} }
