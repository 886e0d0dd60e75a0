package weir

import (
	"reflect"
	"testing"
	"time"
)

// TestStatsAdd has each number of Stats counted twice where a Group's loops are two.
func TestStatsAdd(t *testing.T) {
	t.Parallel()
	var one Stats
	count(reflect.ValueOf(&one).Elem())
	one.TurnLength, one.TimerLag, one.VisitWait = measured(), measured(), measured()
	sum := one
	sum.add(&one)
	doubled(t, "Stats", reflect.ValueOf(sum), reflect.ValueOf(one))
}

func measured() Histogram {
	var r recorder
	r.record(time.Millisecond)
	return r.snapshot()
}

func count(v reflect.Value) {
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.Uint64:
			f.SetUint(uint64(i + 1))
		case reflect.Int:
			f.SetInt(int64(i + 1))
		case reflect.Struct:
			if f.Type() != reflect.TypeFor[Histogram]() {
				count(f)
			}
		}
	}
}

func doubled(t *testing.T, name string, sum, one reflect.Value) {
	for i := range sum.NumField() {
		field := name + "." + sum.Type().Field(i).Name
		switch f, g := sum.Field(i), one.Field(i); f.Kind() {
		case reflect.Uint64:
			if f.Uint() != 2*g.Uint() {
				t.Errorf("%s is %d, want twice %d", field, f.Uint(), g.Uint())
			}
		case reflect.Int:
			if f.Int() != 2*g.Int() {
				t.Errorf("%s is %d, want twice %d", field, f.Int(), g.Int())
			}
		case reflect.Struct:
			if h, ok := f.Interface().(Histogram); !ok {
				doubled(t, field, f, g)
			} else if h.Count() != 2 {
				t.Errorf("%s has %d entries, want 2", field, h.Count())
			}
		}
	}
}

// TestVisitWait: "from when the poller told of a source to its visit", of whatever kind the source is.
func TestVisitWait(t *testing.T) {
	onEachKernel(t, func(t *testing.T, k *Kernel) {
		for name, open := range map[string]func(l *Loop){
			"unixgram": func(l *Loop) {
				u := listenGram(t, l, abstractName(t), UnixgramConfig{}, UnixgramHandler{
					OnDatagram: func(*Unixgram, *UnixDatagram) { _ = l.Close() },
				})
				sendGram(t, dialGram(t, l, "", u.LocalName(), UnixgramHandler{}), "x", "")
			},
			"watch": func(l *Loop) {
				f := openForeign(t, l.kernel)
				watchFD(t, l, f.fd, WatchHandler{OnReadable: func(*Watch) { _ = l.Close() }})
				u := listen(t, l, Share(), nil)
				if err := u.Send([]byte("x"), f.local); err != nil {
					t.Fatal(err)
				}
			},
		} {
			l := newLoop(t, Config{Kernel: k})
			open(l)
			run(t, l)
			stats := l.Stats()
			if n := stats.VisitWait.Count(); n != 1 {
				t.Errorf("%s: %d visits have waited, want 1", name, n)
			}
		}
	})
}
