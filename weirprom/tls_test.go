package weirprom

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirnet/weir"
	"github.com/weirnet/weir/weirtls"
)

// TestEveryTLSField: each field of weirtls.Stats is a metric of its own, and each kind of failure a value of the label.
func TestEveryTLSField(t *testing.T) {
	t.Parallel()
	none := scrapeTLS(t, weirtls.Stats{})
	alone := func(what string, s weirtls.Stats, want string) {
		t.Helper()
		changed := slices.DeleteFunc(scrapeTLS(t, s), func(line string) bool { return slices.Contains(none, line) })
		if len(changed) != 1 || !strings.HasSuffix(changed[0], want) {
			t.Errorf("%s is in the metrics %q, want one that ends in %s", what, changed, want)
		}
	}
	of := reflect.TypeFor[weirtls.Stats]()
	for i := range of.NumField() {
		var s weirtls.Stats
		switch v := reflect.ValueOf(&s).Elem().Field(i); {
		case v.CanUint():
			v.SetUint(7)
		case v.CanInt():
			v.SetInt(7)
		default:
			continue // Failed, below
		}
		alone(of.Field(i).Name, s, " 7")
	}
	for k := range weirtls.Kinds {
		var s weirtls.Stats
		s.Failed[k] = 7
		alone(weirtls.Kind(k).String(), s, fmt.Sprintf(`kind="%v",loop="fixed"} 7`, weirtls.Kind(k)))
	}
}

func scrapeTLS(t *testing.T, s weirtls.Stats) []string {
	t.Helper()
	return scrapeFrom(t, fixedTLS(s))
}

// fixedTLS is a collector of one loop whose handshakes have these Stats.
type fixedTLS weirtls.Stats

func (f fixedTLS) Describe(descs chan<- *prometheus.Desc) { (&Collector{}).Describe(descs) }

func (f fixedTLS) Collect(out chan<- prometheus.Metric) {
	s := weirtls.Stats(f)
	collectTLS("fixed", &s, out)
}

// TestSetTLS: a loop's handshakes come and go under its name.
func TestSetTLS(t *testing.T) {
	t.Parallel()
	l := newLoop(t, weir.Config{})
	defer l.Close()
	c := NewCollector(nil)
	reg := registered(t, c)
	want := "# HELP weir_tls_handshakes_waiting TLS connections whose handshake has not begun.\n" +
		"# TYPE weir_tls_handshakes_waiting gauge\nweir_tls_handshakes_waiting{loop=\"web\"} 0\n"
	c.SetTLS("web", weirtls.HandshakesOf(l))
	compare(t, reg, want, "weir_tls_handshakes_waiting")
	c.SetTLS("web", nil)
	compare(t, reg, "", "weir_tls_handshakes_waiting")
}
