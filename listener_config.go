package weir

import (
	"fmt"
	"time"

	"github.com/weirnet/weir/internal/sock"
)

// ListenerConfig is a listener's. The zero ListenerConfig works.
type ListenerConfig struct {
	// Conn is for the connections that the listener accepts. Its Bound is the listener's, too; what is counted there is
	// connections.
	Conn ConnConfig

	// Backlog is how many connections may wait to be accepted; the system has a limit of its own
	// (net.core.somaxconn). Default: 4,096.
	Backlog int

	// MaxConns is how many of its connections may be open; those above it wait in the backlog. Default: no limit but
	// that of the process's descriptors.
	MaxConns int

	// IPv6Only keeps IPv4 out of an IPv6 wildcard listener (IPV6_V6ONLY). Default: both families.
	IPv6Only bool

	// ReusePort lets listeners share a port, each with a part of the connections (SO_REUSEPORT): for the loops of a
	// Group. NoReuseAddr does not take a port over of which earlier connections are still being ended (SO_REUSEADDR is
	// on by default, which on Linux lets no two listen at a port).
	ReusePort   bool
	NoReuseAddr bool

	// DeferAccept leaves a connection in the kernel until it has sent something, or so much time has gone by
	// (TCP_DEFER_ACCEPT). Default: not. Units: whole seconds, rounded up.
	DeferAccept time.Duration

	// Device keeps the listener to a network interface by its name (SO_BINDTODEVICE).
	Device string

	// Replace is for a unix path that is there: if it is a socket that nobody listens at any more, it is removed. Default:
	// EADDRINUSE. KeepPath leaves the path there when the listener is closed.
	Replace  bool
	KeepPath bool
}

// ListenerHandler is what a listener and its connections call. Functions left nil do nothing.
type ListenerHandler struct {
	// Conn is for the connections.
	Conn ConnHandler

	// OnError is called for what went wrong without ending the listener: an *OpError, of EMFILE or ENFILE where there
	// was no descriptor for a connection. At most 100 a second come, after 16 at once, and Stats counts all.
	OnError func(ln *Listener, err error)

	// OnClose is the last call: nil after Close or Stop, ErrClosed when the loop ended, else the error that ended the
	// listener. Its connections live on.
	OnClose func(ln *Listener, err error)
}

const defaultBacklog = 4096

// resolve fills in the defaults and refuses what makes no sense.
func (c ListenerConfig) resolve(loop Bound) (ListenerConfig, *connLimits, error) {
	limits, err := c.Conn.resolve(loop)
	if err != nil {
		return c, nil, err
	}
	for _, f := range []struct {
		name  string
		value int
	}{{"Backlog", c.Backlog}, {"MaxConns", c.MaxConns}} {
		if f.value < 0 {
			return c, nil, fmt.Errorf("ListenerConfig.%s is %d; it cannot be negative", f.name, f.value)
		}
	}
	if c.DeferAccept < 0 {
		return c, nil, fmt.Errorf("ListenerConfig.DeferAccept is %v; it cannot be negative", c.DeferAccept)
	}
	setDefault(&c.Backlog, defaultBacklog)
	return c, limits, nil
}

func (c ListenerConfig) options() sock.TCPOptions {
	return sock.TCPOptions{
		IPv6Only: c.IPv6Only, NoReuseAddr: c.NoReuseAddr, ReusePort: c.ReusePort, Device: c.Device,
		StreamSettings: c.Conn.settings(),
	}
}
