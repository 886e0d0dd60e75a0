package dgram

import (
	"context"
	"fmt"
	"net"
	"os"
	"syscall"

	"github.com/weirnet/weir/internal/sock"
	"github.com/weirnet/weir/internal/sys"
)

// Listen opens a socket at a local address that any peer may send to.
//
//   - Shape: network is "udp", "udp4" or "udp6"; address is "host:port", as for net.ListenPacket.
//   - Errors: *net.OpError; of a value of cfg that is out of its range one that names the field.
func Listen(ctx context.Context, network, address string, cfg Config) (*Conn, error) {
	return open(cfg, false, func(_ *Conn, control controlFunc) (net.Conn, error) {
		if err := checkNetwork("listen", network); err != nil {
			return nil, err
		}
		listen := net.ListenConfig{Control: control}
		socket, err := listen.ListenPacket(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return socket.(net.Conn), nil
	})
}

// Dial opens a socket that sends to one peer, and takes datagrams of that peer alone. ctx is for the lookup of its name.
//
//   - Shape: as Listen's; address as for net.Dial. WriteTo fails, as after net.DialUDP: a library that names the peer with
//     each datagram, as quic-go does, needs Listen also for a client.
//   - Errors: as Listen's.
func Dial(ctx context.Context, network, address string, cfg Config) (*Conn, error) {
	return open(cfg, false, func(_ *Conn, control controlFunc) (net.Conn, error) {
		if err := checkNetwork("dial", network); err != nil {
			return nil, err
		}
		dialer := net.Dialer{Control: control}
		return dialer.DialContext(ctx, network, address)
	})
}

// Wrap makes a Conn of a socket that the program has opened. The Conn owns it: conn is not to be used any more, and
// Close closes it.
//
//   - Errors: one that names the option that cannot be set; conn is then still the caller's, and receives as it did.
func Wrap(conn *net.UDPConn, cfg Config) (*Conn, error) {
	if conn == nil {
		return nil, &net.OpError{Op: "wrap", Net: "udp", Err: syscall.EINVAL} // as package net says of all that a nil one is asked
	}
	return open(cfg, true, func(*Conn, controlFunc) (net.Conn, error) { return conn, nil })
}

// Adopt makes a Conn of a descriptor that is a UDP socket, which another process may share: it is read one datagram a
// system call, without GRO, so that closing loses nothing, unless Config.Sole says that nobody else reads it. The Conn has
// a descriptor of its own; fd stays the caller's, but calls on it do not block any more.
//
//   - Errors: EBADF, ENOTSOCK, EPROTOTYPE for what is no UDP socket, EAFNOSUPPORT.
//   - Platforms: Linux.
func Adopt(fd int, cfg Config) (*Conn, error) {
	return open(cfg, false, func(c *Conn, _ controlFunc) (net.Conn, error) {
		c.shared = !cfg.Sole
		own, _, err := sock.AdoptUDP(c.kernel, fd)
		if err != nil {
			return nil, &net.OpError{Op: "adopt", Net: "udp", Err: err}
		}
		file := os.NewFile(uintptr(own), "")
		defer file.Close() // FilePacketConn makes a descriptor of its own
		socket, err := net.FilePacketConn(file)
		if err != nil {
			return nil, &net.OpError{Op: "adopt", Net: "udp", Err: err}
		}
		return socket.(net.Conn), nil
	})
}

type controlFunc = func(network, address string, raw syscall.RawConn) error

// open makes a Conn of what socket opens, which is closed where that fails, unless it is foreign.
func open(cfg Config, foreign bool, socket func(*Conn, controlFunc) (net.Conn, error)) (*Conn, error) {
	cfg, kernel, injector, err := cfg.resolve()
	if err != nil {
		return nil, err
	}
	c := &Conn{kernel: kernel, faults: injector, single: cfg.NoBatches, logger: cfg.Logger}
	udp, err := socket(c, func(_, _ string, raw syscall.RawConn) error {
		return control(raw, func(fd int) error { return cfg.claim(kernel, fd) })
	})
	if err != nil {
		return nil, err
	}
	if err := c.start(udp.(*net.UDPConn), cfg); err != nil {
		if !foreign {
			_ = udp.Close()
		}
		return nil, err
	}
	return c, nil
}

// start sets the socket's options and makes ready what reads and sends.
func (c *Conn) start(udp *net.UDPConn, cfg Config) error {
	raw, err := udp.SyscallConn()
	if err != nil {
		return err
	}
	c.udp, c.raw = udp, raw
	c.local, _ = udp.LocalAddr().(*net.UDPAddr)
	c.peer, _ = udp.RemoteAddr().(*net.UDPAddr)
	c.family = familyOf(c.local)
	c.recv.init(c)
	c.send.init(c)
	if err := control(raw, func(fd int) error { return c.prepare(fd, cfg) }); err != nil {
		return c.opError("open", nil, err)
	}
	if err := c.askBuffers(cfg); err != nil {
		return err
	}
	c.counters.keepDrops(c)
	return control(raw, func(fd int) error {
		c.takeTrains(fd, cfg)
		return nil
	})
}

func (c *Conn) askBuffers(cfg Config) error {
	if cfg.RecvBufferBytes > 0 {
		if err := c.SetReadBuffer(cfg.RecvBufferBytes); err != nil {
			return err
		}
	}
	if cfg.SendBufferBytes > 0 {
		return c.SetWriteBuffer(cfg.SendBufferBytes)
	}
	return nil
}

func (c *Conn) prepare(fd int, cfg Config) error {
	// An IPv6 socket may have an address of IPv4; where the system does not tell, the address has to do.
	if d, err := c.kernel.Describe(fd); err == nil && d.Family != 0 {
		c.family = d.Family
	}
	return cfg.apply(c.kernel, fd, c.family)
}

// takeTrains comes last: a socket that stays another's, as something else could not be set, must not join datagrams.
func (c *Conn) takeTrains(fd int, cfg Config) {
	if !cfg.NoGSO {
		_, err := c.kernel.GetOption(fd, sys.SegmentSize)
		c.segments = err == nil
	}
	if !cfg.NoGRO && !c.shared {
		c.recv.joined.Store(c.kernel.SetOption(fd, sys.RecvJoined, 1) == nil)
	}
}

// control runs f with the descriptor, and tells its error.
func control(raw syscall.RawConn, f func(fd int) error) error {
	var err error
	if e := raw.Control(func(fd uintptr) { err = f(int(fd)) }); e != nil {
		return e
	}
	return err
}

func familyOf(local *net.UDPAddr) sys.Family {
	if local != nil && local.IP.To4() != nil {
		return sys.IPv4
	}
	return sys.IPv6
}

func checkNetwork(op, network string) error {
	switch network {
	case "udp", "udp4", "udp6":
		return nil
	}
	return &net.OpError{Op: op, Net: network, Err: fmt.Errorf("network %q: it can be udp, udp4 or udp6: %w", network, net.UnknownNetworkError(network))}
}
