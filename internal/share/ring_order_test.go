package share

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// "Two levels: lanes share equally, sources share within their lane, so that 1,000 connections cannot
// crowd out the one socket that carries every DNS client."
func TestLanesShareEqually(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		crowd, one func() time.Duration
	}{
		{"alike", between(10*us, 40*us, 1), between(10*us, 40*us, 2)},
		{"the crowd is cheaper", between(0, 3*us, 1), between(10*us, 40*us, 2)},
		{"the crowd is dearer", between(100*us, 900*us, 1), between(10*us, 40*us, 2)},
		{"both are dear", between(0, limits.MaxDebt, 1), between(0, limits.MaxDebt, 2)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := newSim()
			var crowded, single Lane
			crowd := make([]*actor, 1000)
			for i := range crowd {
				crowd[i] = m.add(&crowded, fmt.Sprint(i), endless, c.crowd)
			}
			one := m.add(&single, "one", endless, c.one)
			m.ready(crowd...)
			m.ready(one)

			var time, longest time.Duration // of the crowd
			note := func(a *actor) func() {
				last := a.time
				return func() {
					time += a.time - last
					longest = max(longest, a.time-last)
					last = a.time
				}
			}
			for _, a := range crowd {
				a.callback = note(a)
			}
			m.check = func() {
				if d := (time - one.time).Abs(); one.visits > 0 && d >= limits.MinShare+max(longest, one.longest) {
					t.Fatalf("the crowd has %v, the one %v", time, one.time)
				}
			}
			for m.charges < 20_000 {
				m.turn()
			}

			slices.SortFunc(crowd, func(a, b *actor) int { return int(a.time - b.time) })
			least, most := crowd[0], crowd[len(crowd)-1]
			if most.time-least.time >= limits.MinShare+longest {
				t.Errorf("within the crowd one has %v and one %v", least.time, most.time)
			}
		})
	}
}

// "Sources newly ready go before those that stopped on their bound, for one visit: a quiet connection
// waits for one visit of a flooder, not for a round."
func TestNewBeforeOld(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		lanes int // of the flooders
		own   bool
		most  time.Duration // cost of a callback
	}{
		{"each has a lane", 1000, true, 40 * us},
		{"each has a lane, dear", 1000, true, ms},
		{"two lanes", 2, true, 40 * us},
		{"all in one lane", 1, false, 40 * us},
		{"all in one lane, dear", 1, false, ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := newSim()
			lanes := make([]Lane, c.lanes)
			var own Lane
			lane := &own
			if !c.own {
				lane = &lanes[0]
			}
			quiet := m.add(lane, "quiet", 0, always(us))

			// It becomes ready in the middle of a visit, at most once a round.
			var interrupted *actor
			var since time.Duration
			times := 0
			flooding := false        // all are old; before, they are newly ready themselves
			visited := func() bool { // in this round
				if c.own {
					return own.account.visited == m.ring.lanes.round+1
				}
				return quiet.account.visited == lane.sources.round+1
			}
			for i := range 1000 {
				a := m.add(&lanes[i%c.lanes], fmt.Sprint(i), endless, between(10*us, c.most, uint64(i)))
				a.callback = func() {
					if flooding && quiet.queue == 0 && m.charges%97 == 0 && !visited() {
						quiet.queue = 1
						interrupted, since = a, m.now
						m.ready(quiet)
					}
				}
				m.ready(a)
			}
			// A lane goes on within its visit, so a quiet source of another waits for the lane's.
			m.visit = func(a *actor) {
				switch {
				case interrupted == nil:
				case a == quiet:
					if waited := m.now - since; waited >= limits.MinShare+c.most {
						t.Fatalf("it waited %v", waited)
					}
					interrupted = nil
					times++
				case a.lane == interrupted.lane && (c.own || a == interrupted):
				default:
					t.Fatalf("the visit of %s was in progress, then came that of %s", interrupted.name, a.name)
				}
			}
			for m.charges < 50_000 {
				m.turn()
				flooding = m.charges > 10_000
			}
			if times < 10 {
				t.Errorf("the quiet source was ready %d times only", times)
			}
		})
	}
}

// "for one visit": who comes back in the same round waits for the next with the rest. So two that pass a
// ball to each other for ever do not starve one that waits.
func TestComingBackGainsNothing(t *testing.T) {
	t.Parallel()
	for _, same := range []bool{true, false} {
		t.Run(fmt.Sprintf("one lane %v", same), func(t *testing.T) {
			t.Parallel()
			m := newSim()
			m.record = true
			lanes := make([]Lane, 3)
			lane := func(i int) *Lane {
				if same {
					return &lanes[0]
				}
				return &lanes[i]
			}
			ping := m.add(lane(0), "ping", 1, always(us))
			pong := m.add(lane(1), "pong", 0, always(us))
			old := m.add(lane(2), "old", endless, always(limits.MinShare)) // never in debt
			ping.callback = func() { pong.queue = 1; m.ready(pong) }
			pong.callback = func() { ping.queue = 1; m.ready(ping) }
			m.ready(old)
			m.turn()
			m.ready(ping)
			for range 1000 {
				m.turn()
				if len(m.order) > 3000 {
					break
				}
			}
			for i := range m.order {
				if i >= 2 && !slices.Contains(m.order[i-2:i+1], "old") {
					t.Fatalf("visits: %v", m.order[max(0, i-10):i+1])
				}
			}
			if old.visits < 500 || ping.visits < 500 {
				t.Errorf("visits: old %d, ping %d, pong %d", old.visits, ping.visits, pong.visits)
			}
		})
	}
}

// One round, by name: the fresh first, then those that wait; who was visited is not visited again.
func TestRound(t *testing.T) {
	t.Parallel()
	m := newSim()
	m.record = true
	lanes := make([]Lane, 5)
	a := m.add(&lanes[0], "a", endless, always(60*us))
	b := m.add(&lanes[1], "b", endless, always(60*us))
	c := m.add(&lanes[2], "c", endless, always(60*us))
	d := m.add(&lanes[3], "d", 0, always(us))
	e := m.add(&lanes[4], "e", 0, always(us))
	m.ready(a, b, c)
	m.turn()
	a.callback = func() { d.queue++; m.ready(d) }
	d.callback = func() { e.queue++; m.ready(e) }
	e.callback = func() { d.queue++; m.ready(d) }
	m.turn()
	a.callback, d.callback, e.callback = nil, nil, nil
	m.turn()
	equal(t, "order", fmt.Sprint(m.order), "[a b c a d e b c a d b c]")
}

// "never banked above Q", "A source whose queue is empty leaves the ring: positive credit is void, debt
// stays."
func TestCredit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		took time.Duration
		more bool
		want time.Duration // credit of the next visit
		pass int           // rounds that go by before it
	}{
		{"left with credit", 20 * us, false, 50 * us, 0},
		{"left with nothing used", 0, false, 50 * us, 0},
		{"left with all used", 50 * us, false, 50 * us, 0},
		{"left in debt", 60 * us, false, 40 * us, 0},
		{"left in deep debt", 220 * us, false, 30 * us, 3},
		{"stayed with credit", 20 * us, true, 50 * us, 0},
		{"stayed in debt", 60 * us, true, 40 * us, 0},
		{"stayed in deep debt", 220 * us, true, 30 * us, 3},
	} {
		for _, same := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, one lane %v", c.name, same), func(t *testing.T) {
				t.Parallel()
				m := newSim()
				lanes := make([]Lane, 2)
				s := lanes[0].NewSource(nil)
				busy := m.add(&lanes[1], "busy", endless, always(50*us))
				if same {
					busy = m.add(&lanes[0], "busy", endless, always(50*us))
				}
				r := m.ring
				r.Ready(s)
				equal(t, "visited first", r.Next(m.now), s)
				equal(t, "credit of the first visit", r.Credit(), 50*us)
				m.ready(busy)
				m.now += c.took
				r.Charge(m.now, 0)
				r.End(c.more)

				r.Ready(s)
				for busy.visits < 100 {
					switch next := r.Next(m.now); next {
					case nil:
					case s:
						equal(t, "credit of the source", s.account.credit, c.want)
						// A lane that has credit left goes on with the source before the busy one.
						equal(t, "rounds that went by", max(0, busy.visits-1), c.pass)
						return
					default:
						m.serve(busy)
					}
				}
				t.Errorf("was not visited again")
			})
		}
	}
}

// Debt is kept for as long as the source is away, and credit is not collected.
func TestAwayForLong(t *testing.T) {
	t.Parallel()
	m := newSim()
	lanes := make([]Lane, 3)
	busy := m.add(&lanes[0], "busy", endless, always(50*us))
	debtor := m.add(&lanes[1], "debtor", 1, always(220*us))
	saver := m.add(&lanes[2], "saver", 1, always(us))
	m.ready(busy, debtor, saver)
	for range 1000 {
		m.turn()
	}
	equal(t, "credit of the debtor", debtor.account.credit, -170*us)
	equal(t, "credit of its lane", lanes[1].account.credit, -170*us)
	equal(t, "credit of the saver", saver.account.credit, 0)
	equal(t, "credit of its lane", lanes[2].account.credit, 0)
}

// "if all are in debt, all get the same multiple of Q at once", so no round goes by without a visit.
func TestAllInDebt(t *testing.T) {
	t.Parallel()
	for _, same := range []bool{true, false} {
		t.Run(fmt.Sprintf("one lane %v", same), func(t *testing.T) {
			t.Parallel()
			m := newSim()
			m.record = true
			lanes := make([]Lane, 3)
			var all []*actor
			for i, cost := range []time.Duration{1030 * us, 3070 * us, 5 * ms} {
				if same {
					i = 0
				}
				all = append(all, m.add(&lanes[i], fmt.Sprint(cost), endless, once(1, cost, always(50*us))))
			}
			credit := func(a *actor) time.Duration {
				if same {
					return a.account.credit
				}
				return a.lane.account.credit
			}
			m.ready(all...)
			for slices.ContainsFunc(all, func(a *actor) bool { return a.visits == 0 }) {
				m.turn()
			}
			first, second, third := all[0], all[1], all[2]
			equal(t, "first owes", credit(first), -980*us)
			equal(t, "second owes", credit(second), -3020*us)
			equal(t, "third owes", credit(third), -4950*us)

			// 980 us are 19 of 50 and 30 us: 19 for all at once, then a round like any other.
			tier := &m.ring.lanes.round
			if same {
				tier = &lanes[0].sources.round
			}
			round := *tier
			for m.visit = func(*actor) { m.visit = nil }; m.visit != nil; {
				m.turn()
			}
			if n := *tier - round; n > 2 {
				t.Errorf("not at once: %d rounds went by", n)
			}
			equal(t, "first was visited", first.visits, 2)
			equal(t, "and spent", credit(first), (-980+19*50+50-50)*us)
			given := 50 * us
			if same {
				given = 0 // the lane's credit ended with the first: the round has not come to the others
			}
			equal(t, "second owes", credit(second), (-3020+19*50)*us+given)
			equal(t, "third owes", credit(third), (-4950+19*50)*us+given)

			for range 200 {
				if m.turn() == 0 {
					t.Fatalf("a round without a visit")
				}
			}
			if d := third.time - first.time; d.Abs() >= 50*us+5*ms {
				t.Errorf("apart by %v in the end", d)
			}
		})
	}
}

// A source that its lane's credit stopped goes on first at the lane's next visit, on what it has left:
// it is given no new credit.
func TestHeldGoesOnFirst(t *testing.T) {
	t.Parallel()
	r := NewRing(limits)
	lanes := make([]Lane, 2)
	a, b, c := lanes[0].NewSource("a"), lanes[0].NewSource("b"), lanes[0].NewSource("c")
	other := lanes[1].NewSource("other")
	for _, s := range []*Source{a, b, other} {
		r.Ready(s)
	}
	now := time.Duration(0)
	step := func(want *Source, credit, own, cost time.Duration, more bool) {
		t.Helper()
		s := r.Next(now)
		if s != want {
			t.Fatalf("visit of %v, want %v", s, want)
		}
		if s == nil {
			return
		}
		equal(t, "credit of the visit", r.Credit(), credit)
		equal(t, "credit of the source", s.account.credit, own)
		now += cost
		r.Charge(now, 1)
		r.End(more)
		verify(t, r, a, b, c, other)
	}
	step(a, 50*us, 50*us, 30*us, true)
	step(b, 20*us, 50*us, 25*us, true) // the lane is at -5, b has 25 left
	r.Ready(c)                         // c is new, but b is in the middle of its visit
	r.Ready(b)                         // it is there already
	equal(t, "ready sources", r.Len(), 4)
	step(other, 50*us, 50*us, 50*us, true)
	step(nil, 0, 0, 0, false)
	step(b, 25*us, 25*us, 25*us, true) // the lane had 45
	step(c, 20*us, 50*us, 30*us, true) // the lane is at -10, c has 20 left
	step(other, 50*us, 50*us, 50*us, true)
	step(nil, 0, 0, 0, false)
	step(c, 20*us, 20*us, 15*us, true) // it has 5 left, and stopped by itself
	step(a, 25*us, 50*us, 1*us, false)
	step(b, 24*us, 50*us, 1*us, true)
	step(c, 23*us, 50*us, 1*us, false) // what it had is not added
	step(b, 22*us, 50*us, 1*us, false)
}

// "A due timer" ends a turn before the round is over; "the next turn goes on where the ring stopped".
func TestTurnGoesOnWhereTheRingStopped(t *testing.T) {
	t.Parallel()
	run := func(timer func() bool) []string {
		m := newSim()
		m.record, m.timer = true, timer
		lanes := make([]Lane, 4)
		for i := range 12 {
			m.ready(m.add(&lanes[i%4], fmt.Sprint(i), endless, between(0, 80*us, uint64(i))))
		}
		for len(m.order) < 1000 {
			m.turn()
		}
		return m.order[:1000]
	}
	want := run(nil)
	for _, every := range []int{1, 2, 3, 7} {
		visits := 0
		got := run(func() bool { visits++; return visits%every == 0 })
		if !slices.Equal(got, want) {
			t.Errorf("a timer every %d visits changes the order", every)
		}
	}
}

// A timer that is always due leaves a visit to each turn, also to one that begins where a round ended.
func TestTimerAlwaysDue(t *testing.T) {
	t.Parallel()
	for _, sources := range []int{1, 2, 5} {
		m := newSim()
		m.begin = func() { m.now += 500 * us; m.ring.Inelastic(500 * us) }
		m.timer = func() bool { return true }
		for i := range sources {
			m.ready(m.add(new(Lane), fmt.Sprint(i), endless, between(10*us, 40*us, uint64(i))))
		}
		for range 1000 {
			equal(t, "visits of a turn", m.turn(), 1)
		}
		if share := 1 - float64(1000*500*us)/float64(m.now); share < 0.49 {
			t.Errorf("%d sources have %.2f of the time, the timer the rest", sources, share)
		}
	}
}

// "one that is being visited will not leave at the end of its visit"
func TestReadyDuringOwnVisit(t *testing.T) {
	t.Parallel()
	r := NewRing(limits)
	s := new(Lane).NewSource(nil)
	r.Ready(s)
	r.Next(0)
	r.Charge(60*us, 1)
	r.Ready(s)
	r.Ready(s)
	equal(t, "ready sources", r.Len(), 1)
	r.End(false)
	verify(t, r, s)
	equal(t, "ready sources after its visit", r.Len(), 1)
	equal(t, "visit in the same round", r.Next(0), nil)
	equal(t, "visit in the next", r.Next(0), s)
	r.End(false)
	equal(t, "ready sources after the second visit", r.Len(), 0)
	verify(t, r, s)
}

// "One that is there already stays where it is"
func TestReadyTwice(t *testing.T) {
	t.Parallel()
	r := NewRing(limits)
	lanes := make([]Lane, 3)
	a, b, c := lanes[0].NewSource("a"), lanes[1].NewSource("b"), lanes[2].NewSource("c")
	r.Ready(a)
	r.Ready(b)
	r.Ready(c)
	r.Ready(a)
	equal(t, "ready sources", r.Len(), 3)
	for _, want := range []*Source{a, b, c, nil} {
		got := r.Next(0)
		equal(t, "visit", got, want)
		if got != nil {
			r.Charge(time.Hour, 1)
			r.End(want == b)
		}
		r.Ready(b)
		verify(t, r, a, b, c)
	}
}

// "a free source is visited once a round and neither given credit nor charged", and the others share as
// if it were not there.
func TestFreeSource(t *testing.T) {
	t.Parallel()
	run := func(free bool) (*sim, *actor, []*actor) {
		m := newSim()
		lanes := make([]Lane, 4)
		others := []*actor{
			m.add(&lanes[0], "a", endless, between(10*us, 40*us, 1)),
			m.add(&lanes[1], "b", endless, between(10*us, 90*us, 2)),
			m.add(&lanes[1], "c", endless, between(10*us, 900*us, 3)),
		}
		s := m.add(&lanes[3], "free", 0, always(5*ms))
		m.visit = func(a *actor) {
			equal(t, "free", m.ring.Exempt(), a == s)
			if a != s {
				m.order = append(m.order, a.name)
				return
			}
			s.queue = 3 // callbacks a visit, as Count(3) would have it
			equal(t, "batch", m.ring.Batch(64, time.Second), 64)
		}
		s.callback = func() {
			equal(t, "open", m.ring.Open(), true)
			if s.queue == 0 {
				m.ready(s.Source.Owner.(*actor))
			}
		}
		m.ready(others...)
		if free {
			s.SetExempt(true)
			m.ready(s)
		}
		for range 500 {
			m.turn()
			if free {
				equal(t, "visits of the free source", s.visits, m.rounds)
			}
		}
		return m, s, others
	}
	with, s, _ := run(true)
	without, _, _ := run(false)
	if s.account.credit < 0 || s.lane.account.credit < 0 {
		t.Errorf("the free source was charged: %v, its lane %v", s.account.credit, s.lane.account.credit)
	}
	// With the free source no round is without a visit, so debts are paid by rounds, not at once: the
	// order stays, the number differs.
	n := min(len(with.order), len(without.order))
	if n < 500 || !slices.Equal(with.order[:n], without.order[:n]) {
		t.Errorf("the free source changes the order of the others")
	}

	// Back under the rule it is charged again. Out of it, what it owes does not matter.
	s.SetExempt(false)
	s.queue, s.callback, with.visit = endless, nil, nil
	with.ready(s)
	for visits := s.visits; s.visits == visits; {
		with.turn()
	}
	if s.account.credit > -5*ms+limits.MinShare || s.lane.account.credit > -5*ms+limits.MinShare {
		t.Errorf("back under the rule its credit is %v, its lane's %v", s.account.credit, s.lane.account.credit)
	}
	s.SetExempt(true)
	for range 3 {
		s.queue, s.visits = 1, 0
		with.ready(s)
		with.turn()
		equal(t, "visits of a round", s.visits, 1)
	}
}

// A visit that makes a new source, which makes the next, and so on, leaves an old one its visits.
func TestChainOfNewSources(t *testing.T) {
	t.Parallel()
	limits := Limits{MinShare: 50, MaxShare: 2000, MaxDebt: 10_000, MinCost: 1}
	const least = 200 // of 1,000 calls of Next, of which those that end a round are no visit
	for _, oneLane := range []bool{false, true} {
		r := NewRing(limits)
		shared := new(Lane)
		newSource := func() *Source {
			lane := shared
			if !oneLane {
				lane = new(Lane)
			}
			s := lane.NewSource(nil)
			r.Made(s)
			return s
		}
		old := newSource()
		r.Ready(old)
		r.Ready(newSource())
		now, visits := time.Duration(0), 0
		for range 1000 {
			s := r.Next(now)
			if s == nil {
				continue
			}
			if s == old {
				visits++
			} else {
				r.Ready(newSource())
			}
			now += 60
			r.Charge(now, 1)
			r.End(s == old)
		}
		if visits < least {
			t.Errorf("one lane %t: the old source was visited %d times", oneLane, visits)
		}
	}
}

// A visit that found nothing was none: a source that comes back in the same round still goes first.
func TestEmptyVisit(t *testing.T) {
	t.Parallel()
	for _, oneLane := range []bool{false, true} {
		r := NewRing(Limits{MinShare: 50, MaxShare: 2000, MaxDebt: 10_000, MinCost: 1})
		shared := new(Lane)
		newSource := func() *Source {
			if oneLane {
				return shared.NewSource(nil)
			}
			return new(Lane).NewSource(nil)
		}
		quiet := newSource()
		now := time.Duration(0)
		visit := func(units int, more bool) *Source {
			s := r.Next(now)
			if s == nil { // a round is over
				s = r.Next(now)
			}
			now += 3
			if units > 0 {
				now += 60 // all of the credit
			}
			r.Charge(now, units)
			r.End(more)
			return s
		}
		for range 10 {
			r.Ready(newSource())
		}
		for range 12 { // a round, and into the next one
			visit(1, true)
		}
		r.Ready(quiet)
		if visit(0, false) != quiet {
			t.Fatalf("one lane %t: the quiet source is newly ready, and not first", oneLane)
		}
		visit(1, true)
		r.Ready(quiet)
		if visit(1, false) != quiet {
			t.Errorf("one lane %t: after an empty visit the source waits for the round", oneLane)
		}
		r.Ready(quiet)
		if visit(1, true) == quiet {
			t.Errorf("one lane %t: it had its visit, and another in the same round", oneLane)
		}
	}
}
