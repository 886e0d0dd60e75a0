package fault

import (
	"syscall"
	"time"
)

// Limits of a plan, in Go and as text.
const (
	MaxRules     = 256     // rules in a plan
	MaxTextBytes = 1 << 16 // bytes that Parse reads; the text of every valid plan is shorter
)

// maxNumber bounds every number but the seed: a plan means the same where an int has 32 bits.
const maxNumber = 1<<31 - 1

// Plan is what shall go wrong. The zero Plan leaves everything as it is.
type Plan struct {
	Seed  uint64 // decides, with each rule's place, which calls a chance hits
	Rules []Rule // for a call that several of them hit, the first one decides
}

// Rule hits some calls of a kind. The zero value of each field but Call and Action stands for its default.
type Rule struct {
	Call Call
	FD   FD // default: any descriptor

	// From is the number of the first call that is hit. A rule counts the calls that match its Call and FD
	// from 1, also those that another rule hits. Default: 1.
	From int

	// Times is how many calls, one after the other, the rule looks at; negative: all that come. Default: one,
	// or all if there is a Chance.
	Times int

	// Chance is the probability with which each of these calls is hit, up to 1. Default: all are hit.
	Chance float64

	Action Action
}

// Action is what becomes of a call that is hit: a Delay, one of the others, or a Delay and one of the others.
type Action struct {
	// Errno is the answer; the call is not made. Only Close is made all the same, so that nothing leaks.
	Errno syscall.Errno

	// Short bounds what the call moves: messages (Recv, Send, RecvErrors), events (Wait) or bytes (Read, Write,
	// SendFile, WriteFiles, ReadFiles).
	Short int

	// Drop loses the messages that the call moves. A send says that it has sent, and has not; a receive takes what there
	// is, throws it away, and answers EAGAIN.
	Drop bool

	// Delay passes before the call is made.
	Delay time.Duration
}

// FD is a descriptor in a rule. The zero FD is any descriptor.
type FD struct{ plus1 int }

// OnlyFD is the descriptor fd and no other; -1 is any descriptor.
func OnlyFD(fd int) FD { return FD{fd + 1} }

// Number returns the descriptor's number; ok is false for any descriptor.
func (d FD) Number() (fd int, ok bool) { return d.plus1 - 1, d.plus1 != 0 }

// normal replaces zero values by the defaults they stand for, so that equal rules have equal values.
func (r Rule) normal() Rule {
	r.From = max(r.From, 1)
	switch {
	case r.Times < 0, r.Times == 0 && r.Chance > 0:
		r.Times = -1
	case r.Times == 0:
		r.Times = 1
	}
	return r
}
