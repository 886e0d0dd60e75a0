package weir

import (
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/weirnet/weir/fault"
	"github.com/weirnet/weir/internal/poll"
	"github.com/weirnet/weir/internal/share"
	"github.com/weirnet/weir/internal/sock"
)

// Config is a loop's. The zero Config works. In every field zero stands for the default, and a negative
// number, where it is allowed, for none.
type Config struct {
	// Bound is the default of the loop's sockets. Default: Share.
	Bound Bound

	// MaxShare is the most credit a source gets at a time, and the most time that timers or put-off
	// callbacks take before a source is visited. Default: 2 ms. At least 50 µs.
	MaxShare time.Duration

	// SlowCallback is how long a callback may take before it is logged and counted in Stats.
	// Default: 10 ms. Negative: never.
	SlowCallback time.Duration

	// MaxPosts is how many posted functions may wait. Default: 65,536.
	MaxPosts int

	// StopWhenIdle ends Run when no socket or watch, no timer, no task with work and no queued function is left.
	StopWhenIdle bool

	// Logger hears of slow callbacks, at most one a second, and once of each fast path that a loop or socket loses:
	// attributes path (recvmmsg, sendmmsg, gso, ecn, sendfile) and reason. Nil discards; Stats tells of callbacks and of
	// UDP's paths in any case.
	Logger *slog.Logger

	// NoGSO, NoGRO and NoBatches switch off what makes UDP fast: one send for many datagrams of a size
	// (UDP_SEGMENT), one receive for many (UDP_GRO), and the system calls that move many messages
	// (recvmmsg, sendmmsg). So does the environment's WEIR_DISABLE, which New reads: a list of gso, gro, mmsg,
	// where any other word is an error. NoBatches is of no effect on a Kernel that is given.
	NoGSO     bool
	NoGRO     bool
	NoBatches bool

	// Faults has calls of the loop to its operating system fail as the plan says, on any Kernel, for tests; calls
	// are counted from New on, over all sockets: to fail those of one side alone, give it a loop of its own.
	// Loop.Faults tells what was hit. Default: none, at no cost.
	Faults fault.Plan

	// Kernel replaces the operating system in tests: see weirtest.Network. Nil is this machine's, on which a loop
	// waits in a system call: in a testing/synctest bubble, which has no clock for that, Run would never end.
	Kernel *Kernel
}

// Kernel is an operating system for a loop, opaque here.
type Kernel struct{ backend poll.Backend }

// NewKernel makes a Kernel of a backend. Only packages of this module can: Backend is internal to it.
func NewKernel(b poll.Backend) *Kernel { return &Kernel{b} }

const (
	minShare = 50 * time.Microsecond
	maxDebt  = 10 * time.Millisecond
	minCost  = 200 * time.Nanosecond
)

// resolve fills in the defaults and refuses what makes no sense.
func (c Config) resolve() (Config, error) {
	c.Bound = c.Bound.or(Share())
	if err := c.Bound.check(); err != nil {
		return c, err
	}
	setDefault(&c.MaxShare, 2*time.Millisecond)
	if c.MaxShare < minShare {
		return c, fmt.Errorf("weir: Config.MaxShare is %v, below the least of %v", c.MaxShare, minShare)
	}
	setDefault(&c.SlowCallback, maxDebt)
	if c.SlowCallback < 0 {
		c.SlowCallback = math.MaxInt64
	}
	setDefault(&c.MaxPosts, 65_536)
	if c.MaxPosts < 0 {
		return c, fmt.Errorf("weir: Config.MaxPosts is %d; the queue cannot do without a limit", c.MaxPosts)
	}
	off, err := sock.DisabledByEnvironment()
	if err != nil {
		return c, fmt.Errorf("weir: %w", err)
	}
	c.NoGSO = c.NoGSO || off.GSO
	c.NoGRO = c.NoGRO || off.GRO
	c.NoBatches = c.NoBatches || off.Batches
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Kernel == nil {
		c.Kernel = NewKernel(nativeBackend(!c.NoBatches))
	}
	return c, nil
}

// backend is the operating system with its faults; in is nil where there are none.
func (c Config) backend() (b poll.Backend, in *fault.Injector, err error) {
	if len(c.Faults.Rules) == 0 {
		return c.Kernel.backend, nil, nil
	}
	in, err = fault.NewInjector(c.Faults)
	if err != nil {
		return b, nil, fmt.Errorf("weir: Config.Faults: %w", err)
	}
	return poll.WithFaults(c.Kernel.backend, in), in, nil
}

func nativeBackend(batches bool) poll.Backend {
	if batches {
		return poll.Native()
	}
	return poll.NativeSingle()
}

func (c Config) limits() share.Limits {
	return share.Limits{MinShare: minShare, MaxShare: c.MaxShare, MaxDebt: max(maxDebt, c.MaxShare), MinCost: minCost}
}

func setDefault[T ~int | ~int64](v *T, def T) {
	if *v == 0 {
		*v = def
	}
}
