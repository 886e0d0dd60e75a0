package memsys

import (
	"math"
	"syscall"

	"github.com/weirnet/weir/internal/sys"
)

// optionCount is one more than the last option.
const optionCount = sys.MaxSegment + 1

// optionRule is what Linux makes of an option that is a number and nothing more.
type optionRule struct {
	known   bool
	ipv6    bool // of an IPv6 socket only
	flag    bool // reads back as 0 or 1
	least   int
	most    int
	initial int
	reset   bool // -1 stands for initial
}

var optionRules = [optionCount]optionRule{
	sys.TTL:          {known: true, least: 1, most: 255, initial: 64, reset: true},
	sys.HopLimit:     {known: true, ipv6: true, most: 255, initial: 64, reset: true},
	sys.TrafficClass: {known: true, ipv6: true, most: 255, reset: true},

	sys.MulticastTTL:      {known: true, most: 255, initial: 1, reset: true},
	sys.MulticastHopLimit: {known: true, ipv6: true, most: 255, initial: 1, reset: true},
	sys.MulticastLoop:     {known: true, flag: true, initial: 1},
	sys.MulticastLoop6:    {known: true, ipv6: true, most: 1, initial: 1},

	sys.PathMTUDiscovery:  {known: true, most: 5, initial: int(sys.FragmentByRoute)},
	sys.PathMTUDiscovery6: {known: true, ipv6: true, most: 5, initial: int(sys.FragmentByRoute)},

	sys.Reports:  {known: true, flag: true},
	sys.Reports6: {known: true, flag: true, ipv6: true},

	sys.RecvTOS:          {known: true, flag: true},
	sys.RecvTrafficClass: {known: true, flag: true, ipv6: true},
	sys.RecvLocal:        {known: true, flag: true},
	sys.RecvLocal6:       {known: true, flag: true, ipv6: true},
	sys.RecvTime:         {known: true, flag: true},
	sys.RecvJoined:       {known: true, flag: true},
	sys.SegmentSize:      {known: true, most: 65535},

	sys.NoDelay:      {known: true, flag: true},
	sys.KeepAlive:    {known: true, flag: true},
	sys.KeepIdle:     {known: true, least: 1, most: 32767, initial: 7200},
	sys.KeepInterval: {known: true, least: 1, most: 32767, initial: 75},
	sys.KeepCount:    {known: true, least: 1, most: 127, initial: 9},
	sys.UserTimeout:  {known: true, most: math.MaxInt32},
	sys.Linger:       {known: true, least: -1, most: math.MaxInt32, initial: -1},
	sys.NotSentLowAt: {known: true, least: math.MinInt32, most: math.MaxInt32},
}

// initialOptions are the values of a new socket.
func initialOptions() (values [optionCount]int) {
	for o := range optionRules {
		values[o] = optionRules[o].initial
	}
	return values
}

func (s *socket) on(o sys.Option) bool { return s.options[o] != 0 }

// setByRule sets an option that is no more than its value.
func (s *socket) setByRule(o sys.Option, value int) error {
	if int(o) >= len(optionRules) || !optionRules[o].known {
		return syscall.ENOPROTOOPT
	}
	rule := optionRules[o]
	switch {
	case rule.ipv6 && s.family != sys.IPv6:
		return syscall.ENOPROTOOPT
	case rule.flag:
		s.options[o] = flag(value != 0)
	case rule.reset && value == -1:
		s.options[o] = rule.initial
	case value < rule.least || value > rule.most:
		return syscall.EINVAL
	default:
		s.options[o] = value
	}
	return nil
}

// getByRule answers for an IPv4 socket another errno than setByRule, as Linux does.
func (s *socket) getByRule(o sys.Option) (int, error) {
	if int(o) >= len(optionRules) || !optionRules[o].known {
		return 0, syscall.ENOPROTOOPT
	}
	if optionRules[o].ipv6 && s.family != sys.IPv6 {
		return 0, syscall.EOPNOTSUPP
	}
	return s.options[o], nil
}
