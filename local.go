package weir

// Local is what the loop keeps under the key, made by a call of make when there is nothing yet: for packages above weir
// that have something once for a loop. As in a context, the key's type should be unexported.
func (l *Loop) Local(key any, make func() any) any {
	v, ok := l.locals[key]
	if !ok {
		v = make()
		l.setLocal(key, v)
	}
	return v
}

func (l *Loop) setLocal(key, v any) {
	if l.locals == nil {
		l.locals = make(map[any]any)
	}
	l.locals[key] = v
}
