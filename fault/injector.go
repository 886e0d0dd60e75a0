package fault

import (
	"fmt"
	"sync/atomic"
)

// Injector counts calls and decides which of them are hit. A nil *Injector hits nothing and counts nothing.
//
//   - Owner: any goroutine, for all methods.
type Injector struct {
	seed  uint64               // set once
	calls [callKinds]callState // by Call
	rules []*ruleState         // in the plan's order; set once

	dropped atomic.Uint64
}

const callKinds = len(callNames)

type callState struct {
	seen  atomic.Uint64
	rules []*ruleState // set once: those of this call, in the plan's order
}

type ruleState struct {
	rule  Rule // set once; normal
	place int  // set once: from 1
	seen  atomic.Uint64
	hits  atomic.Uint64
}

// Decision is what to do with a call. The zero Decision is: make it as it is.
type Decision struct {
	Action
	Rule int // the place in the plan of the rule that decided, from 1; 0: none
}

// String is for logs: "rule 2: delay:20ms+EPERM", or "none".
func (d Decision) String() string {
	if d.Rule == 0 {
		return "none"
	}
	return fmt.Sprintf("rule %d: %v", d.Rule, d.Action)
}

// NewInjector returns an Injector for the plan, of which it keeps a copy.
//
//   - Errors: those of [Plan.Validate].
func NewInjector(p Plan) (*Injector, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	in := &Injector{seed: p.Seed}
	for i, r := range p.Rules {
		s := &ruleState{rule: r.normal(), place: i + 1}
		in.rules = append(in.rules, s)
		in.calls[r.Call].rules = append(in.calls[r.Call].rules, s)
	}
	return in, nil
}

// Check counts a call that is about to be made, and returns what to do with it. fd is the descriptor that the
// call is about; -1 if there is none.
func (in *Injector) Check(call Call, fd int) Decision {
	if in == nil {
		return Decision{}
	}
	return in.check(call, fd)
}

func (in *Injector) check(call Call, fd int) (d Decision) {
	if !call.known() {
		return d
	}
	c := &in.calls[call]
	c.seen.Add(1)
	for _, s := range c.rules {
		if only, ok := s.rule.FD.Number(); ok && only != fd {
			continue
		}
		if n := s.seen.Add(1); d.Rule == 0 && s.hit(in.seed, n) { // the rules behind the first go on counting
			s.hits.Add(1)
			d = Decision{Action: s.rule.Action, Rule: s.place}
		}
	}
	return d
}

// hit says whether the n-th call that matches the rule is hit. It depends on nothing else, so that a run can be
// repeated.
func (s *ruleState) hit(seed, n uint64) bool {
	from := uint64(s.rule.From)
	switch {
	case n < from, s.rule.Times > 0 && n-from >= uint64(s.rule.Times):
		return false
	case s.rule.Chance == 0:
		return true
	}
	return draw(seed, uint64(s.place), n) < s.rule.Chance
}

// draw returns a number from 0 up to 1 for the n-th call of a rule. Each rule has a SplitMix64 of its own.
//
//   - Source: Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014, figure 16.
func draw(seed, place, n uint64) float64 {
	const gamma = 0x9e3779b97f4a7c15
	own := mix64(mix64(seed) + place*gamma)
	return float64(mix64(own+n*gamma)>>11) / (1 << 53)
}

func mix64(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
