package sock

import (
	"net/netip"
	"syscall"
	"time"

	"github.com/weirnet/weir/internal/sys"
)

// TCPOptions is what a TCP socket is opened with.
type TCPOptions struct {
	Local       netip.AddrPort // no address at all: the wildcard, of IPv6 and IPv4 at once where there is IPv6
	IPv6Only    bool
	NoReuseAddr bool // a port that connections have not left long enough (TIME_WAIT) is refused
	ReusePort   bool
	Device      string // "": any
	StreamSettings
}

func (o *TCPOptions) options(peer netip.AddrPort, reuse bool) UDPOptions {
	return UDPOptions{
		Local: o.Local, Peer: peer, IPv6Only: o.IPv6Only, ReuseAddr: reuse && !o.NoReuseAddr, ReusePort: o.ReusePort,
		Device: o.Device,
	}
}

// ListenTCP opens a socket that takes connections. With deferAccept they are there for Accept when they have sent
// something, or after about that time.
//
//   - Errors: *Error with the step.
func ListenTCP(k sys.Kernel, o TCPOptions, deferAccept time.Duration, backlog int) (fd int, f sys.Family, err error) {
	ip := o.options(netip.AddrPort{}, true)
	fd, f, local, err := socketFor(k, sys.TCP, ip)
	if err != nil {
		return -1, 0, err
	}
	if err := prepareTCP(k, fd, f, ip, &o.StreamSettings); err != nil {
		_ = k.Close(fd)
		return -1, 0, err
	}
	if err := applyAll([]setting{
		{"bind", true, func() error { return k.Bind(fd, local) }},
		{"DeferAccept", deferAccept > 0, func() error {
			return k.SetOption(fd, sys.DeferAccept, inUnits(deferAccept, time.Second))
		}},
		{"listen", true, func() error { return k.Listen(fd, backlog) }},
	}); err != nil {
		_ = k.Close(fd)
		return -1, 0, err
	}
	return fd, f, nil
}

// ConnectTCP opens a socket and begins to connect it. Where connected is false, the handshake goes on.
//
//   - Errors: *Error with the step.
func ConnectTCP(k sys.Kernel, o TCPOptions, peer netip.AddrPort) (fd int, f sys.Family, connected bool, err error) {
	// A port that the kernel chooses must not be one that another socket has, and ReuseAddr would allow that.
	ip := o.options(peer, o.Local.Port() != 0)
	fd, f, local, err := socketFor(k, sys.TCP, ip)
	if err != nil {
		return -1, 0, false, err
	}
	if err := prepareTCP(k, fd, f, ip, &o.StreamSettings); err != nil {
		_ = k.Close(fd)
		return -1, 0, false, err
	}
	connected = true
	if err := applyAll([]setting{
		// Who asks for no address is left unbound: Connect has more ports to choose from than Bind, as it knows the peer.
		{"bind", o.Local != netip.AddrPort{}, func() error { return k.Bind(fd, local) }},
		{"connect", true, func() error {
			to, err := ForFamily(peer, f)
			if err == nil {
				err = k.Connect(fd, to)
			}
			if err == syscall.EINPROGRESS {
				connected, err = false, nil
			}
			return err
		}},
	}); err != nil {
		_ = k.Close(fd)
		return -1, 0, false, err
	}
	return fd, f, connected, nil
}

// prepareTCP does what comes before Bind. The buffers are set there, too, as the window's scale is agreed upon in the
// handshake (tcp(7)).
func prepareTCP(k sys.Kernel, fd int, f sys.Family, o UDPOptions, s *StreamSettings) error {
	if err := claim(k, fd, f, o); err != nil {
		return err
	}
	return s.Apply(k, fd, f)
}
