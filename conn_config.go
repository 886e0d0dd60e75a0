package weir

import (
	"fmt"
	"time"

	"github.com/weirnet/weir/internal/sock"
	"github.com/weirnet/weir/internal/sys"
)

// ConnConfig is a connection's. The zero ConnConfig works. In every field zero stands for the default, and a negative
// number, where it is allowed, for none.
type ConnConfig struct {
	// Bound replaces the loop's default. What is counted is reads.
	Bound Bound

	// WriteBufferBytes is how much Write takes that the kernel has not taken yet, and as much again through a
	// ConnSender. What a callback writes goes out after it: with less than all that one read (up to 64 KiB) has
	// the program write to a connection, a peer that keeps up is refused like a slow one. Default: 1 MiB.
	WriteBufferBytes int

	// MaxFiles is how many descriptors a unix connection takes with one read, for OnFiles. Those beyond it are closed.
	// Default: none. At most 253.
	MaxFiles int

	// IdleTimeout is the longest time without a byte in either direction, ReadTimeout the longest without one to read
	// while the connection is not paused, and WriteTimeout the longest in which the peer takes nothing of what waits
	// for it. See OnTimeout. A relay's connection is idle, too, while it is paused because the other side is slow.
	// Default: none.
	IdleTimeout  time.Duration
	ReadTimeout  time.Duration
	WriteTimeout time.Duration

	// CloseTimeout is how long Close waits for a peer that takes nothing of what is queued, or, once it has, does not end
	// its own direction where that has to be waited for. Default: 10 s. Negative: as long as it takes, or WriteTimeout
	// says.
	CloseTimeout time.Duration

	// DialTimeout is how long a connection may take to come about. Default: 30 s. Negative: as long as it takes.
	DialTimeout time.Duration

	// Delay holds small segments back until the peer has acknowledged the ones before (Nagle's algorithm). Default:
	// they are sent at once (TCP_NODELAY), as a turn's writes go out together anyway.
	Delay bool

	// KeepAlive is how long a TCP connection is quiet before the peer is asked whether it is still there,
	// KeepAliveInterval the time between such questions, and KeepAliveCount how many go without an answer before the
	// connection is given up. Defaults: 15 s, 15 s, 9. A negative KeepAlive: never. Units: whole seconds, rounded up.
	KeepAlive         time.Duration
	KeepAliveInterval time.Duration
	KeepAliveCount    int

	// UserTimeout is how long what was sent over TCP may go without an acknowledgment (TCP_USER_TIMEOUT). Default:
	// the system's.
	UserTimeout time.Duration

	// RecvBufferBytes and SendBufferBytes ask for buffers of the kernel of a fixed size (SO_RCVBUF, SO_SNDBUF).
	// Default: the system's, which grow with the connection's need.
	RecvBufferBytes int
	SendBufferBytes int

	// NotSentLowAtBytes is how much of what the kernel took may not be on its way yet for the connection to be
	// writable (TCP_NOTSENT_LOWAT): less keeps what is said last fresh. Default: the system's.
	NotSentLowAtBytes int

	// TTL is the time to live, over IPv6 the hop limit, 1 to 255. Default: the system's.
	TTL int

	// TrafficClass is the byte of that name, over IPv4 TOS, 0 to 255: DSCP in the upper six bits.
	TrafficClass int
}

// connLimits is what remains of a ConnConfig once the connection is there. Those of a listener share it.
type connLimits struct {
	bound        Bound
	writeBytes   int
	files        int
	idle         time.Duration // 0: none, as for all that follow
	read         time.Duration
	write        time.Duration
	closeTimeout time.Duration
	dialTimeout  time.Duration
}

func (c ConnConfig) resolve(loop Bound) (*connLimits, error) {
	l := &connLimits{
		bound: c.Bound.or(loop), writeBytes: c.WriteBufferBytes, files: c.MaxFiles,
		idle: max(c.IdleTimeout, 0), read: max(c.ReadTimeout, 0), write: max(c.WriteTimeout, 0),
		closeTimeout: c.CloseTimeout, dialTimeout: c.DialTimeout,
	}
	if err := l.bound.check(); err != nil {
		return nil, err
	}
	for _, f := range []struct {
		name  string
		value int
	}{
		{"WriteBufferBytes", c.WriteBufferBytes},
		{"MaxFiles", c.MaxFiles},
		{"KeepAliveCount", c.KeepAliveCount},
		{"RecvBufferBytes", c.RecvBufferBytes},
		{"SendBufferBytes", c.SendBufferBytes},
		{"NotSentLowAtBytes", c.NotSentLowAtBytes},
	} {
		if f.value < 0 {
			return nil, fmt.Errorf("ConnConfig.%s is %d; it cannot be negative", f.name, f.value)
		}
	}
	for _, f := range []struct {
		name        string
		value, most int
	}{
		{"MaxFiles", c.MaxFiles, sys.MaxFiles},
		{"TTL", c.TTL, 255},
		{"TrafficClass", c.TrafficClass, 255},
	} {
		if err := sock.InRange("ConnConfig."+f.name, f.value, 0, f.most); err != nil {
			return nil, err
		}
	}
	setDefault(&l.writeBytes, 1<<20)
	setDefault(&l.closeTimeout, 10*time.Second)
	setDefault(&l.dialTimeout, 30*time.Second)
	l.closeTimeout, l.dialTimeout = max(l.closeTimeout, 0), max(l.dialTimeout, 0)
	return l, nil
}

func (c ConnConfig) settings() sock.StreamSettings {
	return sock.StreamSettings{
		Delay: c.Delay, KeepAlive: c.KeepAlive, KeepInterval: c.KeepAliveInterval, KeepCount: c.KeepAliveCount,
		UserTimeout: c.UserTimeout, RecvBufferBytes: c.RecvBufferBytes, SendBufferBytes: c.SendBufferBytes,
		NotSentLowAtBytes: c.NotSentLowAtBytes, TTL: c.TTL, TrafficClass: c.TrafficClass,
	}
}
