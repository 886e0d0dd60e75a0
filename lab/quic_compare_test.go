//go:build linux && perf

package lab

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// quicRatios are medians of what the first rival had to what another had in the same round.
type quicRatios struct{ rate, cost float64 }

// unit is what a table counts in.
type unit struct {
	rate, one string  // what a second gives, and one
	size      float64 // how many of what quicperf counts are one
}

// compareQUIC measures the rivals in turns, every second round backwards, and returns the first's ratios to the second.
func compareQUIC(t *testing.T, u unit, measure func(kind string) figures) quicRatios {
	t.Helper()
	names := rivals()
	all := make([][]figures, len(names))
	for round := range rounds() {
		for i := range names {
			if round%2 == 1 {
				i = len(names) - 1 - i
			}
			all[i] = append(all[i], measure(names[i]))
		}
	}
	text, ratios := quicTable(u, names, all)
	t.Log(text)
	return ratios[1]
}

func quicTable(u unit, names []string, all [][]figures) (text string, ratios []quicRatios) {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\nsocket\t%s\tCPU µs/%s\tp50\tp99\tkernel drops\tpackets lost\trate of %s to it\tCPU of %s to it\t\n", u.rate, u.one, names[0], names[0])
	for i, name := range names {
		rates, costs := each(all[i], rateOf), each(all[i], costOf)
		rate, cost := quotients(all[0], all[i], rateOf), quotients(all[0], all[i], costOf)
		ratios = append(ratios, quicRatios{median(rate), median(cost)})
		fmt.Fprintf(w, "%s\t%.1f\t%.1f\t%v\t%v\t%.0f\t%.0f\t", name, median(rates)/u.size, median(costs)*u.size/1e3,
			time.Duration(median(each(all[i], func(f figures) float64 { return f.p50 }))),
			time.Duration(median(each(all[i], func(f figures) float64 { return f.p99 }))),
			median(each(all[i], func(f figures) float64 { return f.drops })),
			median(each(all[i], func(f figures) float64 { return f.lost })))
		if i > 0 {
			fmt.Fprintf(w, "%s\t%s\t", spread(rate), spread(cost))
		} else {
			fmt.Fprint(w, "\t\t")
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush()
	return b.String(), ratios
}

func rateOf(f figures) float64 { return f.rate }
func costOf(f figures) float64 { return f.cost }

func each(all []figures, of func(figures) float64) (v []float64) {
	for _, f := range all {
		v = append(v, of(f))
	}
	return v
}

func quotients(a, b []figures, of func(figures) float64) (v []float64) {
	for i := range a {
		v = append(v, of(a[i])/of(b[i]))
	}
	return v
}

// spread is a median, with the least and the most.
func spread(v []float64) string {
	return fmt.Sprintf("%.2f (%.2f to %.2f)", median(v), slices.Min(v), slices.Max(v))
}
