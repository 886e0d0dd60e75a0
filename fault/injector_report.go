package fault

import (
	"fmt"
	"strings"
)

// Hits returns how often each rule of the plan decided, in the plan's order. A test checks with it that its
// fault happened.
func (in *Injector) Hits() []int {
	if in == nil {
		return nil
	}
	hits := make([]int, len(in.rules))
	for i, s := range in.rules {
		hits[i] = int(s.hits.Load())
	}
	return hits
}

// Log returns a line for each rule: its text, how many calls it hit, and how many matched its Call and FD.
func (in *Injector) Log() string {
	if in == nil {
		return ""
	}
	var b strings.Builder
	for _, s := range in.rules {
		fmt.Fprintf(&b, "%v: hit %d of %d\n", s.rule, s.hits.Load(), s.seen.Load())
	}
	return b.String()
}

// AddDropped counts datagrams that a Drop has lost; who makes the calls knows their number.
func (in *Injector) AddDropped(datagrams int) { in.dropped.Add(uint64(datagrams)) }

// Dropped returns how many datagrams Drop has lost, in both directions.
func (in *Injector) Dropped() int {
	if in == nil {
		return 0
	}
	return int(in.dropped.Load())
}

// Calls returns how often each call was seen, without those that never were. A sweep runs once with the zero
// Plan to learn how many there are, and then fails the first, the second, and so on.
func (in *Injector) Calls() map[Call]int {
	if in == nil {
		return nil
	}
	seen := map[Call]int{}
	for c := range AllCalls() {
		if n := in.calls[c].seen.Load(); n > 0 {
			seen[c] = int(n)
		}
	}
	return seen
}
