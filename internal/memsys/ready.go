package memsys

// readyList is a list of registrations, first come first reported. It is linked through them, as one
// may leave from the middle.
type readyList struct {
	first, last *registration
	count       int
}

func (l *readyList) push(r *registration) {
	r.listed = true
	r.prev, r.next = l.last, nil
	if l.last == nil {
		l.first = r
	} else {
		l.last.next = r
	}
	l.last = r
	l.count++
}

func (l *readyList) pop() *registration {
	r := l.first
	l.remove(r)
	return r
}

func (l *readyList) remove(r *registration) {
	if r.prev == nil {
		l.first = r.next
	} else {
		r.prev.next = r.next
	}
	if r.next == nil {
		l.last = r.prev
	} else {
		r.next.prev = r.prev
	}
	r.prev, r.next, r.listed = nil, nil, false
	l.count--
}
