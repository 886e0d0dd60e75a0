package share

import "time"

// Limits are the constants of the rule. All are above zero.
type Limits struct {
	MinShare time.Duration // Q at least
	MaxShare time.Duration // Q at most
	MaxDebt  time.Duration // what one sample is charged at most, and any debt
	MinCost  time.Duration // what a unit is charged at least
}

// Lane is a group of sources that weighs as much as any other lane. The zero Lane is ready for use.
type Lane struct {
	account account[Lane]
	sources tier[Source]
	held    *Source // stopped by the lane's credit, not by its own: it goes on first
}

// Source is something that can be visited. It belongs to one lane for life.
type Source struct {
	Owner   any           // the visitor's; not used here
	Since   time.Duration // when it became ready, below zero once it was visited; the visitor's, too
	account account[Source]
	lane    *Lane
	again   bool // became ready while it was visited
	removed bool // for good
}

// NewSource makes a source of the lane that belongs to owner.
func (l *Lane) NewSource(owner any) *Source {
	s := &Source{Owner: owner, Since: -1, lane: l}
	s.account.owner = s
	l.account.owner = l
	return s
}

// Lane is the one that the source belongs to.
func (s *Source) Lane() *Lane { return s.lane }

// SetExempt takes the source out of the rule, or puts it back: a free source is visited once a round and
// neither given credit nor charged. Its lane should hold no other.
func (s *Source) SetExempt(free bool) {
	s.account.exempt = free
	s.lane.account.exempt = free
}

// Ring holds the ready sources.
type Ring struct {
	limits    Limits
	q         time.Duration // of this round
	due       time.Duration // Q of a round that begins in this turn
	inelastic time.Duration // longest of this turn
	began     bool          // somebody was visited in this turn
	lanes     tier[Lane]
	ready     int

	// The visit in progress. A lane's outlasts that of one source, and the end of a turn.
	lane      *Lane
	source    *Source
	mark      time.Duration // up to here time has been charged
	units     int           // charged in this visit
	laneUnits int           // and in that of the lane
}

// NewRing makes an empty ring.
func NewRing(limits Limits) *Ring {
	return &Ring{limits: limits, q: limits.MinShare, due: limits.MinShare}
}

// Len is the number of ready sources, the visited one included.
func (r *Ring) Len() int { return r.ready }

// Q is the credit of a visit in this round.
func (r *Ring) Q() time.Duration { return r.q }

// BeginTurn sets Q from what was reported inelastic since the last BeginTurn: at once, or for the next round
// if one goes on from the turn before.
func (r *Ring) BeginTurn() {
	r.due = min(max(r.inelastic, r.limits.MinShare), r.limits.MaxShare)
	r.inelastic, r.began = 0, false
	r.beginRound()
}

func (r *Ring) beginRound() {
	if !r.lanes.served || r.ready == 0 {
		r.q = r.due
	}
}

// Inelastic reports an activity of length d that the ring does not govern.
func (r *Ring) Inelastic(d time.Duration) { r.inelastic = max(r.inelastic, d) }

// Made tells of a source that was made while the ring may be in the middle of a round: it has its first visit
// in the next one. If each visit made the next source, and that went first as what is newly ready does, the
// round would have no end.
func (r *Ring) Made(s *Source) {
	s.account.visited = s.lane.sources.round + 1
	if s.lane.account.visited == 0 {
		s.lane.account.visited = r.lanes.round + 1
	}
}

// Ready puts a source in the ring, and tells whether it came in. One that is there already stays where it is; one that
// is being visited will not leave at the end of its visit; one that was removed stays out.
func (r *Ring) Ready(s *Source) (entered bool) {
	switch {
	case s.removed:
		return false
	case s == r.source:
		s.again = true
		return false
	case s.account.in != nil || s == s.lane.held:
		return false
	}
	s.lane.sources.enter(&s.account)
	r.ready++
	if s.lane != r.lane && s.lane.account.in == nil {
		r.lanes.enter(&s.lane.account)
	}
	return true
}

// Leave is Remove, and tells whether the source had work, as far as is known: one that is being visited may.
func (r *Ring) Leave(s *Source) (ready bool) {
	ready = !s.removed && (s == r.source || s == s.lane.held || s.account.in != nil)
	r.Remove(s)
	return ready
}

// Remove takes a source out of the ring for good, also in the middle of its visit.
func (r *Ring) Remove(s *Source) {
	l := s.lane
	s.removed = true
	switch {
	case s == r.source:
		return // End takes it out
	case s == l.held:
		l.held = nil
	case s.account.in != nil:
		s.account.in.remove(&s.account)
	default:
		return
	}
	r.ready--
	if l.idle() && l.account.in != nil {
		l.account.in.remove(&l.account)
		l.account.void()
	}
}

func (l *Lane) idle() bool { return l.held == nil && l.sources.empty() }

// Next begins a visit at the time now and returns its source, or nil when the round is over or the ring
// empty. End must follow. The first of a turn is not nil while a source is ready: where timers had cut the
// turn before at the end of a round, the next round begins.
func (r *Ring) Next(now time.Duration) *Source {
	for {
		if r.lane == nil {
			a := r.lanes.pick(r.q)
			if a == nil && !r.began {
				r.beginRound()
				a = r.lanes.pick(r.q)
			}
			if a == nil {
				return nil
			}
			r.lane, r.laneUnits = a.owner, 0
		}
		if s := r.lane.next(r.q); s != nil {
			r.source, r.mark, r.units, r.began = s, now, 0, true
			return s
		}
		r.lane.account.void()
		r.lane = nil
	}
}

// next is the lane's source to visit, or nil when it has none. Rounds within a lane end unnoticed.
func (l *Lane) next(q time.Duration) *Source {
	if s := l.held; s != nil {
		l.held = nil
		return s
	}
	for !l.sources.empty() {
		if a := l.sources.pick(q); a != nil {
			return a.owner
		}
	}
	return nil
}

// Charge takes the time since the last charge of this visit, or since its beginning, off the source and
// its lane: at least MinCost for each unit, at most MaxDebt. It returns the time that went by.
func (r *Ring) Charge(now time.Duration, units int) time.Duration {
	took := now - r.mark
	r.mark = now
	r.units += units
	r.laneUnits += units
	cost := min(max(took, time.Duration(units)*r.limits.MinCost), r.limits.MaxDebt)
	r.source.account.charge(cost, r.limits.MaxDebt)
	r.source.lane.account.charge(cost, r.limits.MaxDebt)
	return took
}

// Open tells whether the visited source may go on.
func (r *Ring) Open() bool {
	return r.source.account.solvent() && r.source.lane.account.solvent()
}

// Exempt tells whether the visited source is outside the rule.
func (r *Ring) Exempt() bool { return r.source.account.exempt }

// Credit is what the visited source may still spend; without meaning for an exempt one.
func (r *Ring) Credit() time.Duration {
	return min(r.source.account.credit, r.source.lane.account.credit)
}

// Batch is how many units of the given cost the visited source should ask for: as many as its credit
// pays, at least one and at most most. A cost that is not known yet counts as the least there is.
func (r *Ring) Batch(most int, cost time.Duration) int {
	if r.source.account.exempt {
		return most
	}
	n := r.Credit() / max(cost, r.limits.MinCost)
	return int(min(max(n, 1), time.Duration(most)))
}

// Spent is the part of the visit that is not charged yet.
func (r *Ring) Spent(now time.Duration) time.Duration { return now - r.mark }

// End ends the visit; more says that the source has work left. A visit in which nothing was found to do was
// none: the source can still have one in this round.
func (r *Ring) End(more bool) {
	s, l := r.source, r.lane
	r.source = nil
	more = (more || s.again) && !s.removed
	s.again = false
	switch {
	case !more:
		s.account.leave(r.units == 0)
		r.ready--
	case s.account.credit > 0 && !l.account.solvent():
		l.held = s
	default:
		l.sources.again(&s.account)
	}
	switch {
	case l.idle():
		l.account.leave(r.laneUnits == 0)
		r.lane = nil
	case s.account.exempt || !l.account.solvent():
		r.lanes.again(&l.account)
		r.lane = nil
	}
}
