package sock

import (
	"math"
	"time"

	"github.com/weirnet/weir/internal/sys"
)

// StreamSettings is what can be told to a stream socket, also to one that is open.
//
// A listener's are those of the connections that it accepts: on Linux 6.18 each of them was seen to be inherited
// over IPv4, IPv6 and IPv4 on an IPv6 socket, the buffers' sizes included (TestInherited).
type StreamSettings struct {
	Delay bool // small writes wait for those before them to be acknowledged (Nagle's algorithm)

	KeepAlive    time.Duration // idle time before the first probe; 0: 15 s, negative: no probes
	KeepInterval time.Duration // 0: 15 s
	KeepCount    int           // 0: 9
	UserTimeout  time.Duration // 0: the system's

	RecvBufferBytes   int // 0: what the system finds right
	SendBufferBytes   int
	NotSentLowAtBytes int // 0: the system's

	TTL          int // 0: the system's
	TrafficClass int
}

// What probes are like by default: as those of net.Dialer and net.ListenConfig.
const (
	keepIdle     = 15 * time.Second
	keepInterval = 15 * time.Second
	keepCount    = 9
)

// Apply tells a socket its settings. One of the family UnixFamily has buffers alone.
//
//   - Units: times are rounded up to the seconds, or the milliseconds of UserTimeout, that the kernel counts in.
//   - Errors: *Error with the setting's name.
//   - Source: tcp(7), socket(7).
func (s *StreamSettings) Apply(k sys.Options, fd int, f sys.Family) error {
	set := func(id sys.Option, value int) func() error {
		return func() error { return k.SetOption(fd, id, value) }
	}
	ip := f != sys.UnixFamily
	probes := ip && s.KeepAlive >= 0
	return applyAll([]setting{
		{"RecvBufferBytes", s.RecvBufferBytes != 0, func() error {
			return SetBuffer(k, fd, sys.RecvBuffer, sys.RecvBufferForce, s.RecvBufferBytes)
		}},
		{"SendBufferBytes", s.SendBufferBytes != 0, func() error {
			return SetBuffer(k, fd, sys.SendBuffer, sys.SendBufferForce, s.SendBufferBytes)
		}},
		{"Delay", ip, set(sys.NoDelay, boolInt(!s.Delay))},
		{"KeepAlive", ip, set(sys.KeepAlive, boolInt(probes))},
		{"KeepAlive", probes, set(sys.KeepIdle, inUnits(orDefault(s.KeepAlive, keepIdle), time.Second))},
		{"KeepInterval", probes, set(sys.KeepInterval, inUnits(orDefault(s.KeepInterval, keepInterval), time.Second))},
		{"KeepCount", probes, set(sys.KeepCount, orDefault(s.KeepCount, keepCount))},
		{"UserTimeout", ip && s.UserTimeout != 0, set(sys.UserTimeout, inUnits(s.UserTimeout, time.Millisecond))},
		{"NotSentLowAtBytes", ip && s.NotSentLowAtBytes != 0, set(sys.NotSentLowAt, s.NotSentLowAtBytes)},
		{"TTL", ip && s.TTL != 0, func() error { return TTL().Set(k, fd, f, s.TTL) }},
		{"TrafficClass", ip && s.TrafficClass != 0, func() error { return TrafficClass().Set(k, fd, f, s.TrafficClass) }},
	})
}

func orDefault[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}

// SetKeepAlive has a peer asked that has been quiet for idle whether it is there, again after each interval, and the
// connection given up when count of these had no answer. Zero values leave what is; a negative idle ends it.
func SetKeepAlive(k sys.Options, fd int, idle, interval time.Duration, count int) error {
	set := func(id sys.Option, value int) func() error {
		return func() error { return k.SetOption(fd, id, value) }
	}
	return applyAll([]setting{
		{"KeepAlive", true, set(sys.KeepAlive, boolInt(idle >= 0))},
		{"KeepAlive", idle > 0, set(sys.KeepIdle, inUnits(idle, time.Second))},
		{"KeepInterval", idle >= 0 && interval > 0, set(sys.KeepInterval, inUnits(interval, time.Second))},
		{"KeepCount", idle >= 0 && count > 0, set(sys.KeepCount, count)},
	})
}

// inUnits is d in whole units, rounded up: what is wanted must not become 0, which is something else to the kernel.
func inUnits(d, unit time.Duration) int {
	n := d / unit
	if d%unit > 0 {
		n++
	}
	return int(min(n, math.MaxInt32))
}
