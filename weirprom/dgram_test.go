package weirprom

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirnet/weir/dgram"
)

// TestEveryDgramField: each number in dgram.Stats is a metric of its own, and each in SendErrors a value of the label.
func TestEveryDgramField(t *testing.T) {
	t.Parallel()
	none := scrapeFrom(t, fixedDgram{})
	alone := func(what string, s dgram.Stats, want string) {
		t.Helper()
		changed := slices.DeleteFunc(scrapeFrom(t, fixedDgram(s)), func(line string) bool { return slices.Contains(none, line) })
		if len(changed) != 1 || !strings.HasSuffix(changed[0], want) {
			t.Errorf("%s is in the metrics %q, want one that ends in %s", what, changed, want)
		}
	}
	of := reflect.TypeFor[dgram.Stats]()
	for i := range of.NumField() {
		var s dgram.Stats
		switch v := reflect.ValueOf(&s).Elem().Field(i); {
		case v.CanUint():
			v.SetUint(7)
		case v.CanInt():
			v.SetInt(7)
		default:
			continue // SendErrors, below, and Paths, which are no numbers
		}
		alone(of.Field(i).Name, s, " 7")
	}
	of = reflect.TypeFor[dgram.SendErrors]()
	for i := range of.NumField() {
		var s dgram.Stats
		reflect.ValueOf(&s.SendErrors).Elem().Field(i).SetUint(7)
		name := of.Field(i).Name
		alone(name, s, fmt.Sprintf(`class="%s",conn="fixed"} 7`, strings.ToLower(name)))
	}
}

// fixedDgram is a collector of one Conn that has these Stats.
type fixedDgram dgram.Stats

func (f fixedDgram) Describe(descs chan<- *prometheus.Desc) { (&Collector{}).Describe(descs) }

func (f fixedDgram) Collect(out chan<- prometheus.Metric) {
	s := dgram.Stats(f)
	collectDgram("fixed", &s, out)
}

// TestSetDgram: a Conn comes and goes under its name.
func TestSetDgram(t *testing.T) {
	t.Parallel()
	conn, err := dgram.Listen(t.Context(), "udp", "127.0.0.1:0", dgram.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	c := NewCollector(nil)
	reg := registered(t, c)
	want := "# HELP weir_dgram_sent_total Datagrams taken by the kernel.\n" +
		"# TYPE weir_dgram_sent_total counter\nweir_dgram_sent_total{conn=\"quic\"} 1\n"
	if _, err := conn.WriteTo([]byte("x"), conn.LocalAddr()); err != nil {
		t.Fatal(err)
	}
	c.SetDgram("quic", conn)
	compare(t, reg, want, "weir_dgram_sent_total")
	c.SetDgram("quic", nil)
	compare(t, reg, "", "weir_dgram_sent_total")
}
