package weir

import (
	"slices"
	"testing"
)

// turnCounts counts events by the turn in which they came.
type turnCounts struct {
	loop  *Loop
	turn  uint64
	total int
	list  []int
}

func (c *turnCounts) add() {
	if c.turn != c.loop.Turn() || len(c.list) == 0 {
		c.turn = c.loop.Turn()
		c.list = append(c.list, 0)
	}
	c.list[len(c.list)-1]++
	c.total++
}

// TestOriginal holds the numbers of datagrams per turn that event loops show which count to 32, and what
// a loop without a bound shows.
func TestOriginal(t *testing.T) {
	rows := []struct {
		name  string
		bound Bound
		// setup opens sockets whose datagrams call count, and returns how many there will be.
		setup func(t *testing.T, l *Loop, bound Bound, count func()) (total int)
		want  []int
	}{
		{"a backlog of 100 on one socket", Count(32), oneBacklog, []int{32, 32, 32, 4}},
		{"the first of 7 sends 100 more to its own socket", Count(32), selfSender, []int{32, 32, 32, 11}},
		{"two sockets with 100 each", Count(32), twoBacklogs, []int{64, 64, 64, 8}},
		{"a backlog of 100 without a bound", Unbounded(), oneBacklog, []int{100}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			onEachKernel(t, func(t *testing.T, k *Kernel) {
				l := newLoop(t, Config{Kernel: k})
				counts := turnCounts{loop: l}
				total := 0
				total = row.setup(t, l, row.bound, func() {
					if counts.add(); counts.total == total {
						_ = l.Close()
					}
				})
				run(t, l)
				if !slices.Equal(counts.list, row.want) {
					t.Errorf("datagrams by turn: %v, want %v", counts.list, row.want)
				}
			})
		})
	}
}

func oneBacklog(t *testing.T, l *Loop, bound Bound, count func()) int {
	u := listen(t, l, bound, func(*UDP, *Datagram) { count() })
	sendNow(t, listen(t, l, Bound{}, nil), u.LocalAddr(), 100)
	return 100
}

func twoBacklogs(t *testing.T, l *Loop, bound Bound, count func()) int {
	return oneBacklog(t, l, bound, count) + oneBacklog(t, l, bound, count)
}

func selfSender(t *testing.T, l *Loop, bound Bound, count func()) int {
	first := true
	u := listen(t, l, bound, func(u *UDP, _ *Datagram) {
		if first {
			first = false
			for range 100 {
				if err := u.Send([]byte("more"), u.LocalAddr()); err != nil {
					t.Error(err)
				}
			}
		}
		count()
	})
	sendNow(t, listen(t, l, Bound{}, nil), u.LocalAddr(), 7)
	return 107
}
