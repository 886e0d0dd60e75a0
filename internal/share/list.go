package share

import "time"

// account is a member of a tier: its place there and what it may spend.
type account[T any] struct {
	owner      *T
	prev, next *account[T]
	in         *list[T] // nil while it stands in no list
	credit     time.Duration
	visited    uint64 // the tier's round of its last visit, counted from 1
	exempt     bool   // neither given credit nor charged
}

// void ends a credit that was not used; debt stays.
func (a *account[T]) void() { a.credit = min(a.credit, 0) }

// leave is void for a member that goes; idle says that its visit found nothing to do.
func (a *account[T]) leave(idle bool) {
	a.void()
	if idle {
		a.visited = 0
	}
}

// charge takes cost off; debt never exceeds maxDebt.
func (a *account[T]) charge(cost, maxDebt time.Duration) {
	if !a.exempt {
		a.credit = max(a.credit-cost, -maxDebt)
	}
}

func (a *account[T]) solvent() bool { return a.exempt || a.credit > 0 }

// list is a queue of accounts, linked through them, so that nothing is allocated and any can be taken out.
type list[T any] struct {
	first, last *account[T]
}

func (l *list[T]) push(a *account[T]) {
	a.in, a.prev = l, l.last
	if l.last != nil {
		l.last.next = a
	} else {
		l.first = a
	}
	l.last = a
}

func (l *list[T]) pop() *account[T] {
	a := l.first
	if a != nil {
		l.remove(a)
	}
	return a
}

func (l *list[T]) remove(a *account[T]) {
	if a.prev != nil {
		a.prev.next = a.next
	} else {
		l.first = a.next
	}
	if a.next != nil {
		a.next.prev = a.prev
	} else {
		l.last = a.prev
	}
	a.in, a.prev, a.next = nil, nil, nil
}
