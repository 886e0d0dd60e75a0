package weirprom

import (
	"fmt"
	"math"
	"net/http/httptest"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weirnet/weir"
)

// fixed is a collector of one loop that has these Stats.
type fixed weir.Stats

func (f fixed) Describe(descs chan<- *prometheus.Desc) { (&Collector{}).Describe(descs) }

func (f fixed) Collect(out chan<- prometheus.Metric) {
	s := weir.Stats(f)
	collect("fixed", &s, out)
}

// scrape is what Prometheus would read, without comments.
func scrape(t *testing.T, s weir.Stats) []string {
	t.Helper()
	return scrapeFrom(t, fixed(s))
}

func scrapeFrom(t *testing.T, c prometheus.Collector) []string {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(c)
	w := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	return slices.DeleteFunc(strings.Split(w.Body.String(), "\n"), func(line string) bool { return line == "" || line[0] == '#' })
}

// withoutMetric are fields of Stats that have none, each with its reason.
var withoutMetric = map[string]string{
	"UDP.Paths": "false in Stats of a loop",
}

// TestEveryField: each field of Stats, whatever is added to it, is a metric of its own.
func TestEveryField(t *testing.T) {
	t.Parallel()
	none := scrape(t, weir.Stats{})
	for _, path := range fields(reflect.TypeFor[weir.Stats](), "") {
		var s weir.Stats
		v := reflect.ValueOf(&s).Elem()
		for name := range strings.SplitSeq(path, ".") {
			v = v.FieldByName(name)
		}
		switch {
		case withoutMetric[path] != "":
			continue
		case v.Type() == reflect.TypeFor[weir.Histogram]():
			if !slices.ContainsFunc(histograms, func(h histogram) bool { return any(h.of(&s)) == v.Addr().Interface() }) {
				t.Errorf("%s has no metric", path)
			}
			continue
		case v.CanUint():
			v.SetUint(7)
		case v.CanInt():
			v.SetInt(7)
		default:
			t.Errorf("%s is a %s: give it a metric, and say here how it is tested", path, v.Type())
			continue
		}
		changed := slices.DeleteFunc(scrape(t, s), func(line string) bool { return slices.Contains(none, line) })
		if len(changed) != 1 || !strings.HasSuffix(changed[0], " 7") {
			t.Errorf("%s is in the metrics %q, want one", path, changed)
		}
	}
}

// fields are the paths of the fields of a structure, down to those that are no structures to look into.
func fields(s reflect.Type, prefix string) (paths []string) {
	for f := range s.Fields() {
		path := prefix + f.Name
		if f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[weir.Histogram]() && withoutMetric[path] == "" {
			paths = append(paths, fields(f.Type, path+".")...)
			continue
		}
		paths = append(paths, path)
	}
	return paths
}

// TestFieldsWithoutMetric keeps the exceptions from outliving their fields.
func TestFieldsWithoutMetric(t *testing.T) {
	t.Parallel()
	all := fields(reflect.TypeFor[weir.Stats](), "")
	for path := range withoutMetric {
		if !slices.Contains(all, path) {
			t.Errorf("Stats has no field %s", path)
		}
	}
}

// buckets are the lines of a histogram: so many in each from the first, from that of 5 ms, and from that of 3 s,
// which is above all bounds.
func buckets(name string, first, from5ms, above uint64) string {
	var b strings.Builder
	for i := range bounds {
		le, n := (shortestBound << i).Seconds(), first
		if le > 0.005 {
			n = from5ms
		}
		fmt.Fprintf(&b, "%s_bucket{loop=\"a\",le=\"%s\"} %d\n", name, strconv.FormatFloat(le, 'g', -1, 64), n)
	}
	fmt.Fprintf(&b, "%s_bucket{loop=\"a\",le=\"+Inf\"} %d\n", name, above)
	return b.String()
}

func text(n uint64) string { return strconv.FormatUint(n, 10) }

// TestBounds: they double, and end above a second.
func TestBounds(t *testing.T) {
	t.Parallel()
	longest := shortestBound << (bounds - 1)
	if s := longest.Seconds(); s < 1 || s > 2 || math.Abs(shortestBound.Seconds()-1e-6) > 1e-7 {
		t.Errorf("from %v to %v", shortestBound, longest)
	}
}
