package share

import "time"

// tier is surplus round robin over the members of one level.
//
// A round visits each member at most once. Those newly ready go before those that wait for more, for
// one visit a round: who has had it waits for the next round like the rest, so coming and going gains
// nothing.
type tier[T any] struct {
	fresh   list[T]    // newly ready, not yet visited in this round
	waiting [2]list[T] // for their turn in this round, and in the next; which is which follows the round
	round   uint64
	served  bool // somebody was picked in this round
}

func (t *tier[T]) current() *list[T] { return &t.waiting[t.round&1] }
func (t *tier[T]) next() *list[T]    { return &t.waiting[(t.round+1)&1] }

// enter puts a member that became ready in its place.
func (t *tier[T]) enter(a *account[T]) {
	if a.visited == t.round+1 {
		t.next().push(a)
	} else {
		t.fresh.push(a)
	}
}

// again puts a member back that was visited and has more to do.
func (t *tier[T]) again(a *account[T]) { t.next().push(a) }

func (t *tier[T]) empty() bool {
	return t.fresh.first == nil && t.waiting[0].first == nil && t.waiting[1].first == nil
}

// pick takes out the next member that may run, with its q of credit. It returns nil when a round is
// over in which somebody ran, or when the tier is empty. A round in which all were in debt does not
// count: they are given what they lack, and the next one begins.
func (t *tier[T]) pick(q time.Duration) *account[T] {
	for {
		if a := t.pickInRound(q); a != nil {
			return a
		}
		served := t.served
		if !served {
			if t.next().first == nil {
				return nil
			}
			t.next().forgive(q)
		}
		t.round++
		t.served = false
		if served {
			return nil
		}
	}
}

func (t *tier[T]) pickInRound(q time.Duration) *account[T] {
	for {
		a := t.fresh.pop()
		if a == nil {
			a = t.current().pop()
		}
		if a == nil {
			return nil
		}
		a.visited = t.round + 1
		a.credit = min(a.credit+q, q)
		if a.solvent() {
			t.served = true
			return a
		}
		t.next().push(a)
	}
}

// forgive gives all members, who are in debt, the same multiple of q: as many as leave the least
// indebted of them in reach of its next visit.
func (l *list[T]) forgive(q time.Duration) {
	times := -l.first.credit / q
	for a := l.first; a != nil; a = a.next {
		times = min(times, -a.credit/q)
	}
	for a := l.first; a != nil; a = a.next {
		a.credit += times * q
	}
}
