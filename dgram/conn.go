package dgram

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weirnet/weir/fault"
	"github.com/weirnet/weir/internal/sock"
	"github.com/weirnet/weir/internal/sys"
)

// Conn is a UDP socket for goroutines. All methods may be called by any number of them at a time.
//
// It is a net.PacketConn and a net.Conn with the methods of *net.UDPConn, but for File, and has all that quic-go looks for.
type Conn struct {
	kernel   sys.Kernel      // set once, as all up to logger
	faults   *fault.Injector // nil: none
	udp      *net.UDPConn    // keeps the descriptor in the runtime's poller
	raw      syscall.RawConn
	local    *net.UDPAddr
	peer     *net.UDPAddr // nil: none
	family   sys.Family
	shared   bool // others may read the socket: one datagram a call, without GRO
	segments bool // the kernel cuts trains into datagrams (GSO)
	single   bool // Config.NoBatches
	logger   *slog.Logger

	filter atomic.Pointer[Filter] // nil: all pass
	recv   receiver
	send   sending

	lostPaths lostPaths

	closed    atomic.Bool
	closeOnce sync.Once
	closeErr  error

	counters counters
}

var (
	_ net.PacketConn = (*Conn)(nil)
	_ net.Conn       = (*Conn)(nil)
	_ syscall.Conn   = (*Conn)(nil)
)

// LocalAddr is the address that the socket is bound to, a *net.UDPAddr.
func (c *Conn) LocalAddr() net.Addr { return c.udp.LocalAddr() }

// RemoteAddr is the peer of a socket that Dial opened, a *net.UDPAddr, and else nil.
func (c *Conn) RemoteAddr() net.Addr { return c.udp.RemoteAddr() }

// String tells the addresses.
func (c *Conn) String() string {
	if c.peer != nil {
		return fmt.Sprintf("udp %v->%v", c.local, c.peer)
	}
	return fmt.Sprintf("udp %v", c.local)
}

// Close closes the socket. Reads and writes that wait are answered net.ErrClosed; what was read ahead is discarded, and
// counted. All later calls of Close answer as the second one.
func (c *Conn) Close() error {
	first := false
	c.closeOnce.Do(func() {
		first = true
		c.counters.keepDrops(c)
		c.closed.Store(true)
		c.recv.wake()
		c.closeErr = c.udp.Close()
		c.recv.discard()
	})
	if !first {
		return c.opError("close", nil, net.ErrClosed)
	}
	return c.closeErr
}

// SetDeadline sets the deadlines of reads and writes.
func (c *Conn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// SetReadDeadline sets when reads fail with os.ErrDeadlineExceeded, those that wait now included; the zero Time: never.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.recv.setDeadline(t) }

// SetWriteDeadline sets when writes fail with os.ErrDeadlineExceeded, those that wait now included; the zero Time: never.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.send.setDeadline(t) }

// SetReadBuffer asks for a receive buffer of the kernel (SO_RCVBUF). It grants up to its limit, to the privileged more.
func (c *Conn) SetReadBuffer(bytes int) error {
	return c.setBuffer(bytes, sys.RecvBuffer, sys.RecvBufferForce, c.udp.SetReadBuffer)
}

// SetWriteBuffer asks for a send buffer of the kernel (SO_SNDBUF). It grants up to its limit, to the privileged more.
func (c *Conn) SetWriteBuffer(bytes int) error {
	return c.setBuffer(bytes, sys.SendBuffer, sys.SendBufferForce, c.udp.SetWriteBuffer)
}

// setBuffer sets it by std where the kernel has no more to offer.
func (c *Conn) setBuffer(bytes int, ask, force sys.Option, std func(int) error) error {
	if bytes <= 0 {
		return c.opError("set", nil, fmt.Errorf("%d bytes: %w", bytes, syscall.EINVAL))
	}
	err := control(c.raw, func(fd int) error { return sock.SetBuffer(c.kernel, fd, ask, force, bytes) })
	if errors.Is(err, errors.ErrUnsupported) {
		err = std(bytes)
	}
	if err != nil {
		return c.opError("set", nil, plain(err))
	}
	return nil
}

// Faults is what decides on the calls that Config.Faults names, or nil.
func (c *Conn) Faults() *fault.Injector { return c.faults }

// opError is an error with the operation and the addresses, as package net gives it.
func (c *Conn) opError(op string, to net.Addr, err error) error {
	if c.peer != nil && to == nil {
		to = c.peer
	}
	if op == "set" {
		return &net.OpError{Op: op, Net: "udp", Addr: c.local, Err: err}
	}
	return &net.OpError{Op: op, Net: "udp", Source: c.local, Addr: to, Err: err}
}

// destination is an address as the socket takes it.
func (c *Conn) destination(to netip.AddrPort) (netip.AddrPort, error) {
	to, err := sock.ResolveZone(to)
	if err != nil {
		return to, err
	}
	return sock.ForFamily(to, c.family)
}
