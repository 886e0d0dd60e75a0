package share

import (
	"math/rand/v2"
	"testing"
	"time"
)

const (
	us = time.Microsecond
	ms = time.Millisecond
)

// limits are those of the loop.
var limits = Limits{MinShare: 50 * us, MaxShare: 2 * ms, MaxDebt: 10 * ms, MinCost: 200 * time.Nanosecond}

const endless = -1

// tooMany visits in a turn, or callbacks in a visit, are more than any credit pays: it would not end.
const tooMany = 100_000

// actor is a source with a script: what waits in its queue, and what each callback costs.
type actor struct {
	*Source
	name     string
	queue    int // units; endless never ends
	cost     func() time.Duration
	callback func() // runs at the end of each callback; nil does nothing

	time    time.Duration // charged
	longest time.Duration // single charge
	visits  int
	rounds  int // the round of the last visit
}

// sim is the loop of the fake clock. It blocks when it finds nothing to do twice in a row, as the loop
// does after a round and an empty poll.
type sim struct {
	ring    *Ring
	now     time.Duration
	turns   int
	charges int
	rounds  int      // that ended
	order   []string // of visits, when it is asked for
	record  bool

	begin func()      // after BeginTurn: the loop's timers
	timer func() bool // tells between visits whether a timer is due; nil is never
	check func()      // after every charge, if not nil
	visit func(*actor)
}

func newSim() *sim { return &sim{ring: NewRing(limits)} }

func (m *sim) add(l *Lane, name string, queue int, cost func() time.Duration) *actor {
	a := &actor{name: name, queue: queue, cost: cost}
	a.Source = l.NewSource(a)
	return a
}

func (m *sim) ready(actors ...*actor) {
	for _, a := range actors {
		m.ring.Ready(a.Source)
	}
}

// turn is one turn of the loop: visits until the round is over or a timer is due. It returns how many.
func (m *sim) turn() (visits int) {
	m.ring.BeginTurn()
	if m.turns++; m.turns > 10*tooMany {
		panic("turns without end")
	}
	if m.begin != nil {
		m.begin()
	}
	for {
		s := m.ring.Next(m.now)
		if s == nil {
			if visits == 0 && m.ring.Len() > 0 {
				panic("a turn without a visit")
			}
			m.rounds++
			return visits
		}
		if visits++; visits > tooMany {
			panic("a turn without end")
		}
		m.serve(s.Owner.(*actor))
		if m.timer != nil && m.timer() {
			return visits
		}
	}
}

// serve is one visit: callbacks until the queue is empty or the credit is used up.
func (m *sim) serve(a *actor) {
	a.visits++
	a.rounds = m.rounds
	if m.record {
		m.order = append(m.order, a.name)
	}
	if m.visit != nil {
		m.visit(a)
	}
	for calls := 0; a.queue != 0; calls++ {
		if calls > tooMany {
			panic("a visit without end")
		}
		m.call(a)
		if !m.ring.Open() {
			break
		}
	}
	m.ring.End(a.queue != 0)
}

func (m *sim) call(a *actor) {
	m.now += a.cost()
	if a.queue > 0 {
		a.queue--
	}
	cost := min(max(m.ring.Charge(m.now, 1), limits.MinCost), limits.MaxDebt)
	m.charges++
	a.time += cost
	a.longest = max(a.longest, cost)
	if a.callback != nil {
		a.callback()
	}
	if m.check != nil {
		m.check()
	}
}

func always(d time.Duration) func() time.Duration { return func() time.Duration { return d } }

// between is a cost that varies, the same in every run.
func between(from, to time.Duration, seed uint64) func() time.Duration {
	random := rand.New(rand.NewPCG(seed, 0))
	return func() time.Duration { return from + time.Duration(random.Int64N(int64(to-from)+1)) }
}

// once is a cost of d at the n-th call, counted from 1, and what f gives at all others.
func once(n int, d time.Duration, f func() time.Duration) func() time.Duration {
	calls := 0
	return func() time.Duration {
		if calls++; calls == n {
			return d
		}
		return f()
	}
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// verify walks all links of a ring whose sources are known and compares them with Len.
func verify(t failer, r *Ring, sources ...*Source) {
	t.Helper()
	lanes := map[*Lane]bool{}
	for _, s := range sources {
		lanes[s.lane] = true
	}
	standing := walk(t, &r.lanes)
	places := map[*Source]int{}
	for l := range lanes {
		for s := range walk(t, &l.sources) {
			places[s]++
		}
		if l.held != nil {
			places[l.held]++
			if l.held.account.credit <= 0 {
				t.Fatalf("a source is held with a credit of %v", l.held.account.credit)
			}
		}
		if want := !l.idle() && l != r.lane; standing[l] != want {
			t.Fatalf("lane stands in the ring: %v; has ready sources and is not in progress: %v", standing[l], want)
		}
		if l.idle() && l != r.lane && l.account.credit > 0 {
			t.Fatalf("an idle lane keeps a credit of %v", l.account.credit)
		}
		if l.account.credit < -r.limits.MaxDebt || l.account.credit > r.limits.MaxShare {
			t.Fatalf("lane has a credit of %v", l.account.credit)
		}
	}
	if r.source != nil {
		places[r.source]++
	}
	for s, n := range places {
		if n != 1 {
			t.Fatalf("a source stands in %d places", n)
		}
		if !lanes[s.lane] {
			t.Fatalf("a source of an unknown lane")
		}
	}
	if len(places) != r.Len() {
		t.Fatalf("Len() = %d, but %d sources stand in the ring", r.Len(), len(places))
	}
	for _, s := range sources {
		if places[s] == 0 && !s.removed && s.account.credit > 0 {
			t.Fatalf("an idle source keeps a credit of %v", s.account.credit)
		}
		if s.account.credit < -r.limits.MaxDebt || s.account.credit > r.limits.MaxShare {
			t.Fatalf("source has a credit of %v", s.account.credit)
		}
	}
}

// walk returns the members of a tier after a look at each link.
func walk[T any](t failer, tier *tier[T]) map[*T]bool {
	t.Helper()
	found := map[*T]bool{}
	for _, l := range []*list[T]{&tier.fresh, &tier.waiting[0], &tier.waiting[1]} {
		var last *account[T]
		for a := l.first; a != nil; last, a = a, a.next {
			if a.in != l || a.prev != last || found[a.owner] {
				t.Fatalf("broken link: in %p of %p, prev %p after %p, seen before: %v", a.in, l, a.prev, last, found[a.owner])
			}
			found[a.owner] = true
		}
		if l.last != last {
			t.Fatalf("list ends with %p, not with %p", last, l.last)
		}
	}
	return found
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}
