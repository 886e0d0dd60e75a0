package dgram

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/weirnet/weir/fault"
	"github.com/weirnet/weir/internal/sock"
	"github.com/weirnet/weir/internal/sys"
)

// Config is a Conn's. The zero Config works.
type Config struct {
	// RecvBufferBytes and SendBufferBytes ask for buffers of the kernel (SO_RCVBUF, SO_SNDBUF). It grants
	// up to its limit, to the privileged more (SO_RCVBUFFORCE), and Stats tells what it granted. Default: the
	// system's.
	RecvBufferBytes int
	SendBufferBytes int

	// ReuseAddr and ReusePort set SO_REUSEADDR and SO_REUSEPORT, for Listen and Dial. For UDP on Linux both let
	// sockets share a port: with ReuseAddr the last one bound gets everything, with ReusePort each a part of the
	// senders. A QUIC server wants neither: a client that changes its address would reach another socket.
	ReuseAddr bool
	ReusePort bool

	// Device keeps the socket to a network interface by its name (SO_BINDTODEVICE), for Listen and Dial.
	Device string

	// Broadcast allows sending to broadcast addresses (SO_BROADCAST).
	Broadcast bool

	// TTL is the time to live, over IPv6 the hop limit, of unicast datagrams, 1 to 255; MulticastTTL that of
	// multicast. Default: the system's.
	TTL          int
	MulticastTTL int

	// TrafficClass is the byte of that name in what is sent, over IPv4 TOS, 0 to 255.
	TrafficClass int

	// NoGSO, NoGRO and NoBatches switch fast paths off: trains in one send, trains in one receive, recvmmsg and
	// sendmmsg. The environment's WEIR_DISABLE, a list of gso, gro and mmsg, does so, too.
	NoGSO     bool
	NoGRO     bool
	NoBatches bool

	// Sole is for Adopt: the caller promises that nobody else reads the socket, so that it may be read ahead.
	Sole bool

	// Faults has system calls of the Conn fail as the plan says, for tests; Conn.Faults tells what was hit. Calls
	// that package net makes for it (socket, bind, connect, close) are not asked about. Default: none, at no cost.
	Faults fault.Plan

	// Logger hears, once each, of fast paths that the system refuses. Its handler must not read the Conn. Default: nobody.
	Logger *slog.Logger
}

// resolve checks c, fills in what it leaves open, and makes the kernel that the Conn calls.
func (c Config) resolve() (_ Config, k sys.Kernel, in *fault.Injector, err error) {
	for _, f := range []struct {
		name        string
		value, most int
	}{
		{"RecvBufferBytes", c.RecvBufferBytes, 1 << 30},
		{"SendBufferBytes", c.SendBufferBytes, 1 << 30},
		{"TTL", c.TTL, 255},
		{"MulticastTTL", c.MulticastTTL, 255},
		{"TrafficClass", c.TrafficClass, 255},
	} {
		if err := sock.InRange("dgram: Config."+f.name, f.value, 0, f.most); err != nil {
			return c, nil, nil, err
		}
	}
	off, err := sock.DisabledByEnvironment()
	if err != nil {
		return c, nil, nil, fmt.Errorf("dgram: %w", err)
	}
	c.NoGSO = c.NoGSO || off.GSO
	c.NoGRO = c.NoGRO || off.GRO
	c.NoBatches = c.NoBatches || off.Batches
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	k = sys.New()
	if c.NoBatches {
		k = sys.NewSingle()
	}
	if len(c.Faults.Rules) > 0 {
		if in, err = fault.NewInjector(c.Faults); err != nil {
			return c, nil, nil, fmt.Errorf("dgram: Config.Faults: %w", err)
		}
		k = sys.WithFaults(k, in)
	}
	return c, k, in, nil
}

// claim sets what has to be set before the socket is bound.
func (c *Config) claim(k sys.Options, fd int) error {
	return nameField(sock.Claim(k, fd, sock.UDPOptions{ReuseAddr: c.ReuseAddr, ReusePort: c.ReusePort, Device: c.Device}))
}

// apply sets the rest.
func (c *Config) apply(k sys.Options, fd int, family sys.Family) error {
	s := sock.UDPSettings{
		Broadcast:    c.Broadcast,
		TTL:          c.TTL,
		TrafficClass: c.TrafficClass,
		MulticastTTL: c.MulticastTTL,
	}
	return nameField(s.Apply(k, fd, family))
}

// nameField has the error of an option that this system does not have name the field of Config.
func nameField(err error) error {
	if errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("Config.%w", err)
	}
	return err
}
