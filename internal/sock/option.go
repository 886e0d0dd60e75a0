package sock

import (
	"errors"
	"fmt"
	"math"
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

// Twin is an option of IPv4 with its counterpart of IPv6.
type Twin struct{ V4, V6 sys.Option }

// Set sets the option of a socket. An IPv6 one carries IPv4 as well, unless it was told not to, so it is told
// both.
func (t Twin) Set(k sys.Options, fd int, f sys.Family, value int) error {
	if f == sys.IPv4 {
		return k.SetOption(fd, t.V4, value)
	}
	if err := k.SetOption(fd, t.V6, value); err != nil {
		return err
	}
	err := k.SetOption(fd, t.V4, value)
	if err == syscall.ENOPROTOOPT || err == syscall.EOPNOTSUPP || errors.Is(err, sys.ErrUnsupported) {
		return nil // no IPv4 on this socket
	}
	return err
}

// The options that both families have.
func TTL() Twin                { return Twin{sys.TTL, sys.HopLimit} }
func TrafficClass() Twin       { return Twin{sys.TOS, sys.TrafficClass} }
func MulticastTTL() Twin       { return Twin{sys.MulticastTTL, sys.MulticastHopLimit} }
func MulticastLoop() Twin      { return Twin{sys.MulticastLoop, sys.MulticastLoop6} }
func MulticastInterface() Twin { return Twin{sys.MulticastInterface, sys.MulticastInterface6} }
func PathMTUDiscovery() Twin   { return Twin{sys.PathMTUDiscovery, sys.PathMTUDiscovery6} }
func Reports() Twin            { return Twin{sys.Reports, sys.Reports6} }
func RecvTrafficClass() Twin   { return Twin{sys.RecvTOS, sys.RecvTrafficClass} }

// RecvLocal has no twin: of an IPv4 datagram an IPv6 socket tells the address as mapped.
func RecvLocal(f sys.Family) sys.Option {
	if f == sys.IPv4 {
		return sys.RecvLocal
	}
	return sys.RecvLocal6
}

// SetBuffer asks for a buffer of so many bytes. The privileged get it beyond the system's limit too; others
// get what the limit allows, without an error.
func SetBuffer(k sys.Options, fd int, plain, force sys.Option, bytes int) error {
	bytes = min(bytes, math.MaxInt32/2)
	if err := k.SetOption(fd, plain, bytes); err != nil {
		return err
	}
	if granted, err := k.GetOption(fd, plain); err != nil || granted >= 2*bytes {
		return err
	}
	_ = k.SetOption(fd, force, bytes)
	return nil
}

// setting is something to be told to a socket, where it is wanted.
type setting struct {
	name   string
	wanted bool
	set    func() error
}

// applyAll makes settings in their order, up to one that fails.
func applyAll(all []setting) error {
	for _, s := range all {
		if !s.wanted {
			continue
		}
		if err := s.set(); err != nil {
			return &Error{s.name, err}
		}
	}
	return nil
}

// InRange refuses a value outside its limits, by the name of its option.
func InRange(name string, value, least, most int) error {
	if value < least || value > most {
		return fmt.Errorf("%s is %d; it must be %d to %d: %w", name, value, least, most, syscall.EINVAL)
	}
	return nil
}
