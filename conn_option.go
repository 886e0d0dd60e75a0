package weir

import (
	"syscall"
	"time"

	"github.com/weirnet/weir/internal/sock"
	"github.com/weirnet/weir/internal/sys"
)

// SetNoDelay sends small segments at once (TCP_NODELAY), which is the default; off, they wait until those before are
// acknowledged.
//
//   - Errors: as all setters: ErrClosed, *OpError: what the kernel answers, ENOPROTOOPT or EOPNOTSUPP for a unix
//     connection.
func (c *Conn) SetNoDelay(on bool) error {
	value := 0
	if on {
		value = 1
	}
	return c.setOption(sys.NoDelay, value)
}

// SetKeepAlive asks a peer that has been quiet for idle whether it is there, again after each interval, and gives the
// connection up when count of these had no answer. Zero values leave what is; a negative idle ends it. Units: whole
// seconds, rounded up.
func (c *Conn) SetKeepAlive(idle, interval time.Duration, count int) error {
	return c.set(func() error {
		return sock.SetKeepAlive(c.loop.kernel, c.fd, idle, interval, count)
	})
}

// SetLinger is what close(2) does: with a negative d the kernel goes on sending what it has, which is the default;
// with zero it resets the connection. Close waits for the kernel to take what is queued, whatever this says. A positive
// d is refused with EINVAL: close(2) would wait for the peer, and the whole loop with it (socket(7) SO_LINGER).
func (c *Conn) SetLinger(d time.Duration) error {
	switch {
	case d > 0:
		return c.set(func() error { return syscall.EINVAL })
	case d == 0:
		return c.setOption(sys.Linger, 0)
	default:
		return c.setOption(sys.Linger, -1)
	}
}

// SetBuffers asks for buffers of the kernel of a fixed size, in bytes; zero leaves what is. See
// ConnConfig.RecvBufferBytes.
func (c *Conn) SetBuffers(recv, send int) error {
	return c.set(func() error {
		if recv > 0 {
			if err := sock.SetBuffer(c.loop.kernel, c.fd, sys.RecvBuffer, sys.RecvBufferForce, recv); err != nil {
				return err
			}
		}
		if send > 0 {
			return sock.SetBuffer(c.loop.kernel, c.fd, sys.SendBuffer, sys.SendBufferForce, send)
		}
		return nil
	})
}

// SetTrafficClass is ConnConfig.TrafficClass.
func (c *Conn) SetTrafficClass(class int) error {
	return c.set(func() error {
		if err := sock.InRange("traffic class", class, 0, 255); err != nil {
			return err
		}
		return sock.TrafficClass().Set(c.loop.kernel, c.fd, c.family, class)
	})
}

func (c *Conn) setOption(o sys.Option, value int) error {
	return c.set(func() error { return c.loop.kernel.SetOption(c.fd, o, value) })
}

// set tells an open socket something.
func (c *Conn) set(tell func() error) error {
	if c.fd < 0 {
		return ErrClosed
	}
	if err := tell(); err != nil {
		return c.opError("set", err)
	}
	return nil
}

// TCPInfo is how a TCP connection goes, as the kernel sees it.
type TCPInfo struct {
	RTT              time.Duration // smoothed round-trip time
	RTTVariance      time.Duration
	MinRTT           time.Duration
	SendMSS          int    // bytes of a segment
	CongestionWindow int    // segments
	Unacked          int    // segments that are on their way
	Lost             int    // segments that are taken to be lost
	Retransmits      uint64 // segments sent again, in all
	BytesAcked       uint64
	BytesReceived    uint64
	NotSentBytes     int    // taken by the kernel, and not on their way yet
	DeliveryRate     uint64 // bytes a second, as last measured
}

// Info asks the kernel how the connection goes.
//
//   - Errors: ErrClosed; *OpError: EOPNOTSUPP or ENOPROTOOPT for a unix connection.
//   - Platforms: fields that the kernel does not tell are zero.
//   - Source: tcp(7) TCP_INFO.
func (c *Conn) Info() (info TCPInfo, err error) {
	err = c.set(func() error {
		i, err := c.loop.kernel.Info(c.fd)
		info = TCPInfo(i)
		return err
	})
	return info, err
}
