package share

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// model is what a ring must look like from outside.
type model struct {
	ring    *Ring
	now     time.Duration
	sources []*Source
	ready   map[*Source]bool // the visited one included
	removed map[*Source]bool
	visited *Source // now
	again   bool    // it became ready, or is ready anyhow when it ends
	nils    int     // in a row
	first   bool    // the next visit is the first of a turn
}

func (m *model) draw(t *rapid.T) *Source { return rapid.SampledFrom(m.sources).Draw(t, "source") }

func (m *model) markReady(t *rapid.T) {
	s := m.draw(t)
	m.ring.Ready(s)
	if m.removed[s] {
		return
	}
	m.ready[s] = true
	m.again = m.again || s == m.visited
}

func (m *model) remove(t *rapid.T) {
	s := m.draw(t)
	m.ring.Remove(s)
	m.removed[s] = true
	if s != m.visited {
		delete(m.ready, s)
	}
}

// move has a source leave, and another stand for it in some lane.
func (m *model) move(t *rapid.T, to *Lane) {
	s := m.draw(t)
	if s.account.exempt {
		t.Skip("it has a lane of its own")
	}
	want := m.ready[s] && !m.removed[s]
	if got := m.ring.Leave(s); got != want {
		t.Fatalf("Leave tells of work: %v, want %v", got, want)
	}
	m.removed[s] = true
	if s != m.visited {
		delete(m.ready, s)
	}
	moved := to.NewSource(s.Owner)
	m.ring.Made(moved)
	m.sources = append(m.sources, moved)
	if want {
		m.ring.Ready(moved)
		m.ready[moved] = true
	}
}

func (m *model) next(t *rapid.T) {
	if m.visited != nil {
		t.Skip("a visit is in progress")
	}
	s := m.ring.Next(m.now)
	switch {
	case s == nil:
		if m.nils++; (m.nils > 1 || m.first) && len(m.ready) > 0 {
			t.Fatalf("nothing to visit, %d times in a row, with %d ready sources", m.nils, len(m.ready))
		}
		return
	case m.removed[s]:
		t.Fatalf("visit of a source that was removed")
	case !m.ready[s]:
		t.Fatalf("visit of a source that is not ready")
	case !m.ring.Open():
		t.Fatalf("a visit begins without credit")
	}
	m.visited, m.again, m.nils, m.first = s, false, 0, false
}

func (m *model) charge(t *rapid.T) {
	if m.visited == nil {
		t.Skip("no visit is in progress")
	}
	m.now += rapid.SampledFrom([]time.Duration{0, us, 20 * us, 50 * us, 60 * us, ms, 11 * ms}).Draw(t, "took")
	m.ring.Charge(m.now, rapid.IntRange(0, 64).Draw(t, "units"))
}

func (m *model) end(t *rapid.T) {
	if m.visited == nil {
		t.Skip("no visit is in progress")
	}
	more := rapid.Bool().Draw(t, "more")
	m.ring.End(more)
	if m.removed[m.visited] || !more && !m.again {
		delete(m.ready, m.visited)
	}
	m.visited = nil
}

func (m *model) beginTurn(t *rapid.T) {
	m.ring.Inelastic(rapid.SampledFrom([]time.Duration{0, 60 * us, 5 * ms}).Draw(t, "inelastic"))
	m.ring.BeginTurn()
	m.first = true
}

func (m *model) check(t *rapid.T) {
	if m.ring.Len() != len(m.ready) {
		t.Fatalf("Len() = %d, want %d", m.ring.Len(), len(m.ready))
	}
	verify(t, m.ring, m.sources...)
}

// Random calls against the model: Len, who may be visited, all links. At the end every ready source is
// visited, whatever the others do.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &model{ring: NewRing(limits), ready: map[*Source]bool{}, removed: map[*Source]bool{}}
		lanes := make([]Lane, 3)
		for i := range rapid.IntRange(1, 10).Draw(t, "sources") {
			m.sources = append(m.sources, lanes[rapid.IntRange(0, 2).Draw(t, "lane")].NewSource(i))
		}
		if rapid.Bool().Draw(t, "free") {
			s := new(Lane).NewSource("free")
			s.SetExempt(true)
			m.sources = append(m.sources, s)
		}
		t.Repeat(map[string]func(*rapid.T){
			"ready":     m.markReady,
			"ready too": m.markReady, // more often than the others
			"remove": func(t *rapid.T) {
				if rapid.IntRange(0, 3).Draw(t, "rarely") > 0 {
					t.Skip()
				}
				m.remove(t)
			},
			"move": func(t *rapid.T) {
				m.move(t, &lanes[rapid.IntRange(0, 2).Draw(t, "to")])
			},
			"next":       m.next,
			"next too":   m.next,
			"charge":     m.charge,
			"end":        m.end,
			"end too":    m.end,
			"begin turn": m.beginTurn,
			"":           m.check,
		})

		if m.visited != nil {
			m.end(t)
		}
		m.drain(t)
	})
}

// drain serves all until each ready source was visited, then until nobody is left.
func (m *model) drain(t *rapid.T) {
	waits := map[*Source]bool{}
	for s := range m.ready {
		waits[s] = true
	}
	for tries := 0; len(m.ready) > 0; tries++ {
		if tries > tooMany {
			t.Fatalf("of %d sources %d are never visited", len(m.ready), len(waits))
		}
		s := m.ring.Next(m.now)
		if s == nil {
			continue
		}
		delete(waits, s)
		m.now += 50 * us
		m.ring.Charge(m.now, 1)
		more := len(waits) > 0
		m.ring.End(more)
		if !more {
			delete(m.ready, s)
		}
		m.check(t)
	}
	if s := m.ring.Next(m.now); s != nil && m.ring.Len() == 0 {
		t.Fatalf("visit of an empty ring")
	}
}
