package share

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The invariants of docs/DESIGN.md, "The bound", one test each.

// drawCosts is a cost that varies up to a limit that itself varies from source to source.
func drawCosts(t *rapid.T, label string) func() time.Duration {
	most := rapid.SampledFrom([]time.Duration{us, 20 * us, 60 * us, ms, limits.MaxDebt}).Draw(t, label+" most")
	return between(0, most, rapid.Uint64().Draw(t, label+" seed"))
}

// "I1 fairness: two sources ready throughout, |T1-T2| <= Q + c1 + c2 for callbacks c <= MaxDebt."
//
// More holds. Both have been given the Q of each round, or one of them that of the last and the other
// not yet; T is what was given minus the credit; and a credit is above -c after a callback of c, at most
// zero between visits, and at most Q. So |T1-T2| < Q + max(c1, c2).
//
// It holds for two sources that each have a lane, whatever other sources come and go, also where Q varies
// and timers cut rounds into turns; Q is then the largest. It holds for two sources of one lane, whatever
// other lanes do, while Q is constant: the rounds within a lane are not those that keep their Q.
func TestFairness(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newSim()
		q := rapid.SampledFrom([]time.Duration{limits.MinShare, 333 * us, limits.MaxShare}).Draw(t, "q")
		lanes := make([]Lane, 4)
		other := &lanes[1]
		activity := always(q)
		switch rapid.SampledFrom([]string{"one lane", "two lanes", "two lanes, Q varies"}).Draw(t, "case") {
		case "one lane":
			other = &lanes[0]
		case "two lanes, Q varies":
			random := between(0, 3, rapid.Uint64().Draw(t, "activity"))
			some := []time.Duration{0, q, q / 3, 3 * ms}
			activity = func() time.Duration { return some[random()] }
			q = limits.MaxShare
		}
		m.ring.Inelastic(activity())
		visits, cut := 0, rapid.IntRange(1, 9).Draw(t, "visits in a turn")
		m.timer = func() bool { visits++; return visits%cut == 0 }

		one := m.add(&lanes[0], "one", endless, drawCosts(t, "one"))
		two := m.add(other, "two", endless, drawCosts(t, "two"))
		m.ready(one, two)

		// Guests are ready now and then. They share a lane with the two only where the two share it.
		var guests []*actor
		from := 2
		if other == &lanes[0] {
			from = 0
		}
		for i := range rapid.IntRange(0, 5).Draw(t, "guests") {
			l := &lanes[rapid.IntRange(from, 3).Draw(t, "lane of guest")]
			guests = append(guests, m.add(l, fmt.Sprint("guest", i), 0, drawCosts(t, "guest")))
		}
		come := between(0, 7, rapid.Uint64().Draw(t, "coming"))

		m.check = func() {
			if one.visits == 0 || two.visits == 0 {
				return
			}
			if d := (one.time - two.time).Abs(); d >= q+max(one.longest, two.longest) {
				t.Fatalf("T1 %v, T2 %v, apart by %v; Q %v, c1 %v, c2 %v", one.time, two.time, d, q, one.longest, two.longest)
			}
			if len(guests) > 0 {
				if a := guests[int(come())%len(guests)]; a.queue == 0 {
					a.queue = int(come())
					m.ready(a)
				}
			}
		}
		for m.turns < 20 || m.charges < 3000 {
			m.turn()
			m.ring.Inelastic(activity())
		}
		if one.time == 0 || two.time == 0 {
			t.Fatalf("T1 %v, T2 %v: nobody was served", one.time, two.time)
		}
	})
}

// The same where a timer falls due again in the middle of a round: Q is large in some turns and small in
// others, and these always come to the same sources.
func TestTimersDoNotFavour(t *testing.T) {
	t.Parallel()
	for _, sources := range []int{2, 3, 10} {
		for _, period := range []time.Duration{0, 500 * us, ms, 3 * ms, 10 * ms} {
			for _, long := range []int{1, 2, 3} { // one in so many takes 2 ms
				t.Run(fmt.Sprintf("%d sources, every %v, one in %d is long", sources, period, long), func(t *testing.T) {
					t.Parallel()
					m := newSim()
					var all []*actor
					for i := range sources {
						all = append(all, m.add(new(Lane), fmt.Sprint(i), endless, between(10*us, 40*us, uint64(i))))
					}
					m.ready(all...)
					due, fired := time.Duration(0), 0
					m.timer = func() bool { return m.now >= due }
					m.begin = func() {
						if m.now < due {
							return
						}
						took := 10 * us
						if fired++; fired%long == 0 {
							took = 2 * ms
						}
						m.now += took
						m.ring.Inelastic(took)
						due = m.now + period
					}
					for m.charges < 10_000 {
						m.turn()
					}
					by := func(a, b *actor) int { return int(a.time - b.time) }
					least, most := slices.MinFunc(all, by), slices.MaxFunc(all, by)
					if most.time-least.time >= limits.MaxShare+40*us {
						t.Errorf("one has %v, one %v", least.time, most.time)
					}
				})
			}
		}
	}
}

// "I2 a due timer waits at most the rest of one visit, one callback and one flush." Here: a visit lasts
// less than the credit that it begins with, which is at most Q, and one callback. The flush is the loop's.
func TestTimerWaitsForOneVisit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newSim()
		period := rapid.SampledFrom([]time.Duration{0, 10 * us, 170 * us, 3 * ms}).Draw(t, "period")
		lanes := make([]Lane, 3)
		for i := range rapid.IntRange(1, 9).Draw(t, "sources") {
			m.ready(m.add(&lanes[i%len(lanes)], "", endless, drawCosts(t, "source")))
		}
		var current *actor
		var began, credit time.Duration // of the visit
		m.visit = func(a *actor) {
			current, began, credit = a, m.now, m.ring.Credit()
			a.longest = 0
			if credit <= 0 || credit > m.ring.Q() {
				t.Fatalf("a visit begins with a credit of %v, Q is %v", credit, m.ring.Q())
			}
		}
		due := time.Duration(0)
		m.timer = func() bool { // after each visit
			if took := m.now - began; took >= credit+current.longest {
				t.Fatalf("a visit took %v, its credit was %v, its longest callback %v", took, credit, current.longest)
			}
			if m.now < due {
				return false
			}
			if late := m.now - max(due, began); late >= limits.MinShare+current.longest {
				t.Fatalf("a timer is late by %v", late)
			}
			due = m.now + period
			return true
		}
		for range 50 {
			m.turn()
		}
	})
}

// "I3 progress: each ring member is served within ceil(debt/Q)+1 rounds."
func TestProgress(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newSim()
		lanes := make([]Lane, rapid.IntRange(1, 6).Draw(t, "lanes"))
		all := make([]*actor, len(lanes))
		since := make([]int, len(lanes)) // the round in which it began to wait
		debt := make([]time.Duration, len(lanes))
		for i := range lanes {
			queue := rapid.SampledFrom([]int{endless, 1, 3}).Draw(t, "queue")
			all[i] = m.add(&lanes[i], fmt.Sprint(i), queue, drawCosts(t, "source"))
		}
		m.ready(all...)
		m.visit = func(a *actor) {
			for i := range all {
				if all[i] != a {
					continue
				}
				// The round in which it began to wait is none of them: it had its visit there.
				allowed := int((debt[i]+limits.MinShare-1)/limits.MinShare) + 1
				if waited := m.rounds - since[i]; waited > allowed {
					t.Fatalf("source %d waited %d rounds with a debt of %v", i, waited, debt[i])
				}
			}
		}
		for m.turns < 400 && m.charges < 1500 {
			m.turn()
			for i, a := range all {
				if a.rounds == m.rounds-1 { // visited in the round that ended
					since[i], debt[i] = m.rounds-1, max(0, -a.account.credit)
				}
				if a.queue == 0 { // it left, and comes back
					a.queue = 1
					since[i], debt[i] = m.rounds, max(0, -a.account.credit)
					m.ready(a)
				}
				allowed := int((debt[i]+limits.MinShare-1)/limits.MinShare) + 1
				if waits := m.rounds - since[i]; waits > allowed {
					t.Fatalf("source %d waits for %d rounds with a debt of %v", i, waits, debt[i])
				}
			}
		}
	})
}

// "I4 work conserving: no blocking wait while the ring is non-empty." A loop that would block when it
// is told twice in a row that there is nothing to visit never blocks while a source is ready.
func TestWorkConserving(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newSim()
		lanes := make([]Lane, 3)
		var all []*actor
		for i := range rapid.IntRange(1, 9).Draw(t, "sources") {
			queue := rapid.SampledFrom([]int{endless, 1, 3, 40}).Draw(t, "queue")
			all = append(all, m.add(&lanes[i%len(lanes)], fmt.Sprint(i), queue, drawCosts(t, "source")))
		}
		m.ready(all...)
		idle := 0
		for m.turns < 400 && m.charges < 1500 {
			switch visits := m.turn(); {
			case visits > 0:
				idle = 0
			case m.ring.Len() > 0:
				if idle++; idle == 2 {
					t.Fatalf("the loop blocks with %d ready sources", m.ring.Len())
				}
			}
			if a := all[m.turns%len(all)]; a.queue == 0 {
				a.queue = 2
				m.ready(a)
			}
		}
	})
}

// "Alone, a source's turn ends after Q like any other", and the next begins at once, whatever it owes.
func TestAlone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		cost time.Duration
	}{
		{"cheap", us},
		{"as much as a share", limits.MinShare},
		{"dear", ms},
		{"as much as can be owed", limits.MaxDebt},
		{"more than can be owed", 10 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := newSim()
			m.ready(m.add(new(Lane), "alone", endless, always(c.cost)))
			for range 500 {
				began := m.now
				equal(t, "visits of a turn", m.turn(), 1)
				if took := m.now - began; took >= limits.MinShare+c.cost {
					t.Fatalf("the turn took %v", took)
				}
			}
			if least := 450 * limits.MinShare; m.now < least {
				t.Errorf("500 turns took %v, want %v at least", m.now, least)
			}
		})
	}
}

// "I5 debt <= MaxDebt (10 ms): a longer sample is charged 10 ms and counted, so a preemption cannot
// mute a source."
func TestDebtIsCapped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		samples []time.Duration
		charged time.Duration
	}{
		{"none", []time.Duration{0}, 0},
		{"within the credit", []time.Duration{30 * us}, 30 * us},
		{"just as long", []time.Duration{10 * ms}, 10 * ms},
		{"longer", []time.Duration{10*ms + 1}, 10 * ms},
		{"much longer", []time.Duration{10 * time.Second}, 10 * ms},
		{"two, the sum above", []time.Duration{8 * ms, 9 * ms}, 10*ms + 50*us},
		{"two, each above", []time.Duration{time.Second, time.Second}, 10*ms + 50*us},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := NewRing(limits)
			s := new(Lane).NewSource(nil)
			r.Ready(s)
			now := time.Hour
			r.Next(now)
			for _, d := range c.samples {
				now += d
				equal(t, "time that went by", r.Charge(now, 0), d)
			}
			equal(t, "credit", r.Credit(), limits.MinShare-c.charged)
			equal(t, "credit of the source", s.account.credit, limits.MinShare-c.charged)
			equal(t, "credit of the lane", s.lane.account.credit, limits.MinShare-c.charged)
			equal(t, "open", r.Open(), c.charged < limits.MinShare)
			r.End(false)
		})
	}
}

// "so a preemption cannot mute a source": after ten seconds it is back within MaxDebt/Q + 1 rounds.
func TestPreemptedSourceIsBack(t *testing.T) {
	t.Parallel()
	m := newSim()
	busy := m.add(new(Lane), "busy", endless, always(10*us))
	preempted := m.add(new(Lane), "preempted", endless, once(3, 10*time.Second, always(10*us)))
	m.ready(preempted, busy)
	m.turn()
	equal(t, "visits", preempted.visits, 1)
	rounds := m.rounds
	for preempted.visits == 1 && m.rounds < 10_000 {
		m.turn()
	}
	// It used 20 us of 50, then owed 10 ms less 30 us: 9.97 ms are paid by 199.4 rounds of 50 us.
	equal(t, "rounds until it was visited again", m.rounds-rounds, 200)
}

// "Q = clamp(50 µs, longest inelastic activity of the last turn, MaxShare = 2 ms)."
func TestShare(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		last []time.Duration // activities of the last turn
		want time.Duration
	}{
		{"none", nil, 50 * us},
		{"short", []time.Duration{us}, 50 * us},
		{"as short as counts", []time.Duration{50 * us}, 50 * us},
		{"between", []time.Duration{777 * us}, 777 * us},
		{"the longest, not the last", []time.Duration{100 * us, 900 * us, 300 * us}, 900 * us},
		{"not the sum", []time.Duration{ms, ms, ms}, ms},
		{"as long as counts", []time.Duration{2 * ms}, 2 * ms},
		{"long", []time.Duration{30 * ms}, 2 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := NewRing(limits)
			equal(t, "Q at first", r.Q(), 50*us)
			for _, d := range c.last {
				r.Inelastic(d)
				equal(t, "Q before the turn ends", r.Q(), 50*us)
			}
			r.BeginTurn()
			equal(t, "Q", r.Q(), c.want)
			s := new(Lane).NewSource(nil)
			r.Ready(s)
			r.Next(0)
			equal(t, "credit of a visit", r.Credit(), c.want)
			r.End(false)
			r.BeginTurn()
			equal(t, "Q a turn later", r.Q(), 50*us)
		})
	}
}

// "I6 no echo: Q does not depend on what Q governs."
func TestNoEcho(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newSim()
		lanes := make([]Lane, 3)
		for i := range rapid.IntRange(1, 6).Draw(t, "sources") {
			a := m.add(&lanes[i%3], "", rapid.SampledFrom([]int{endless, 5}).Draw(t, "queue"), drawCosts(t, "source"))
			m.ready(a)
		}
		reported := between(0, 3*ms, rapid.Uint64().Draw(t, "inelastic seed"))
		want := limits.MinShare
		m.check = func() {
			if m.ring.Q() != want {
				t.Fatalf("Q is %v in the middle of a visit, want %v", m.ring.Q(), want)
			}
		}
		for m.turns < 200 && m.charges < 2000 {
			var d time.Duration
			if m.turns%3 == 0 {
				d = reported()
				m.ring.Inelastic(d)
			}
			want = min(max(d, limits.MinShare), limits.MaxShare)
			m.turn()
			m.check()
		}
	})
}

// "I7 every unit (datagram, empty datagram, report, accept, read) costs at least 200 ns."
func TestUnitsCost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		took  time.Duration
		units int
		want  time.Duration
	}{
		{"nothing", 0, 0, 0},
		{"time without units", 7 * us, 0, 7 * us},
		{"one unit in no time", 0, 1, 200},
		{"one unit in less", 199, 1, 200},
		{"one unit in more", 201, 1, 201},
		{"a batch in no time", 0, 64, 64 * 200},
		{"a batch in less", 3 * us, 64, 64 * 200},
		{"a batch in more", 30 * us, 64, 30 * us},
		{"a batch above the cap", 0, 100_000, 10 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := NewRing(limits)
			s := new(Lane).NewSource(nil)
			r.Ready(s)
			r.Next(time.Hour)
			equal(t, "time that went by", r.Charge(time.Hour+c.took, c.units), c.took)
			equal(t, "credit", r.Credit(), limits.MinShare-c.want)
			equal(t, "credit of the lane", s.lane.account.credit, limits.MinShare-c.want)
			r.End(false)
		})
	}
}

// A flood that costs nothing by the clock is stopped by what its units cost.
func TestFreeUnitsAreBounded(t *testing.T) {
	t.Parallel()
	m := newSim()
	calls := 0
	a := m.add(new(Lane), "flood", endless, always(0))
	a.callback = func() { calls++ }
	m.ready(a)
	m.turn()
	equal(t, "callbacks of a visit", calls, 250)
}

// "I8 a receive call asks for min(slots, credit / measured cost per datagram), at least 1."
func TestBatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		spent time.Duration
		most  int
		cost  time.Duration
		want  int
	}{
		{"slots are fewer", 0, 32, us, 32},
		{"as many slots as credit", 0, 50, us, 50},
		{"credit is less", 0, 64, us, 50},
		{"rounded down", 0, 64, 12 * us, 4},
		{"dearer than the credit", 0, 64, 51 * us, 1},
		{"less credit is left", 30 * us, 64, us, 20},
		{"no credit is left", 50 * us, 64, us, 1},
		{"in debt", 5 * ms, 64, us, 1},
		{"cost unknown", 0, 1024, 0, 250},
		{"cost below the least", 0, 1024, 10, 250},
		{"one slot", 0, 1, us, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := NewRing(limits)
			r.Ready(new(Lane).NewSource(nil))
			r.Next(0)
			r.Charge(c.spent, 0)
			equal(t, "batch", r.Batch(c.most, c.cost), c.want)
			r.End(false)
		})
	}
	t.Run("the lane has less credit than the source", func(t *testing.T) {
		t.Parallel()
		r := NewRing(limits)
		l := new(Lane)
		r.Ready(l.NewSource(nil))
		r.Ready(l.NewSource(nil))
		r.Next(0)
		r.Charge(30*us, 1)
		r.End(false)
		r.Next(30 * us)
		equal(t, "credit", r.Credit(), 20*us)
		equal(t, "batch", r.Batch(64, us), 20)
	})
}

func TestSpent(t *testing.T) {
	t.Parallel()
	r := NewRing(limits)
	r.Ready(new(Lane).NewSource(nil))
	r.Next(ms)
	equal(t, "spent", r.Spent(ms), 0)
	equal(t, "spent", r.Spent(ms+7*us), 7*us)
	r.Charge(ms+10*us, 1)
	equal(t, "spent", r.Spent(ms+10*us), 0)
	equal(t, "spent", r.Spent(ms+13*us), 3*us)
}
