// Package poll waits for readiness.
//
// A Poller reports, for the descriptors that were added to it, which of them can make progress. The
// contract is level-triggered: a descriptor that stays ready is reported by every Wait, so a caller
// may stop reading where it likes and loses nothing. Failed and HungUp are reported whether asked for
// or not, because no kernel can mask them.
//
// Tokens are the caller's: a number that comes back with the event; all ones is taken. No pointer goes to
// the kernel, and a token should carry a generation, since an event may be in flight while its descriptor closes.
package poll

import (
	"time"

	"github.com/weirnet/weir/internal/sys"
)

// Poller is one readiness queue.
//
//   - Owner: one goroutine, except Wake, which any goroutine may call until Close has begun.
//   - Errors: syscall.Errno values or sys.ErrUnsupported.
type Poller interface {
	// Add registers fd; EEXIST if it is there already.
	Add(fd int, want Interest, token uint64) error

	// Modify replaces what is wanted of fd; no interest at all leaves Failed and HungUp.
	Modify(fd int, want Interest, token uint64) error

	// Remove ends fd's registration. It comes before the descriptor's close: a duplicate elsewhere
	// would keep a closed descriptor registered, out of reach.
	Remove(fd int) error

	// Wait fills events and returns how many.
	//
	//   - Units: timeout < 0 waits for ever, 0 does not wait. It never returns early by more than the
	//     clock's grain, except for an event or a wake.
	//   - Shape: n == 0 after a timeout or a wake; wakes are not counted as events. More ready
	//     descriptors than len(events) rotate: the next Wait begins with those left out.
	//   - Platforms: Linux before 5.11 waits in whole milliseconds, rounded up.
	Wait(events []Event, timeout time.Duration) (n int, err error)

	// Wake makes the Wait that runs now, or else the next one, return. Wakes are folded into one.
	Wake() error

	// Close frees the poller, not the descriptors in it.
	Close() error
}

// Interest is what a caller wants to hear of.
type Interest uint8

// Ready is what a Poller has to say.
type Ready uint8

const (
	Read  Interest = 1 << iota // Readable
	Write                      // Writable
)

const (
	Readable Ready = 1 << iota
	Writable
	Failed // an error is pending (EPOLLERR)
	HungUp // both directions are over (EPOLLHUP)
)

// Event is one descriptor's readiness.
type Event struct {
	Token uint64
	Ready Ready
}

// Backend is an operating system for a loop: its kernel and a maker of pollers that know its descriptors.
type Backend struct {
	Kernel    sys.Kernel
	NewPoller func() (Poller, error)
	RealTime  bool // time goes by as the processor's counter does: not so in a testing/synctest bubble
}
