package weir

import (
	"math"
	"math/bits"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const histogramUnit = time.Duration(1) << histogramUnitBits

// longest is the end of the last bucket; a longer duration is in it, too.
const longest = time.Duration(1) << (histogramUnitBits + histogramOctaves)

// TestHistogramBuckets holds "counts durations in buckets whose bounds are at most 12.5 % apart": every
// bucket begins where the one before ends, and is no wider than an eighth of its beginning, or one unit.
func TestHistogramBuckets(t *testing.T) {
	t.Parallel()
	begin := time.Duration(0)
	for i := range histogramBuckets {
		end := bucketEnd(i)
		if width := end - begin; width < histogramUnit || width > max(begin/8, histogramUnit) {
			t.Errorf("bucket %d is from %v to %v", i, begin, end)
		}
		for _, d := range []time.Duration{begin, begin + (end-begin)/2, end - 1} {
			if got := bucketOf(d); got != i {
				t.Errorf("%v is in bucket %d, want %d (%v to %v)", d, got, i, begin, end)
			}
		}
		begin = end
	}
	if begin != longest || begin < 2*time.Minute {
		t.Errorf("the last bucket ends at %v, want %v", begin, longest)
	}
}

// TestHistogramEdges holds "what is shorter or longer is in the first or last bucket".
func TestHistogramEdges(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]int{
		math.MinInt64: 0, -1: 0, 0: 0, 1: 0, histogramUnit - 1: 0, histogramUnit: 1,
		longest - 1: histogramBuckets - 1, longest: histogramBuckets - 1, math.MaxInt64: histogramBuckets - 1,
	} {
		if got := bucketOf(d); got != want {
			t.Errorf("%v is in bucket %d, want %d", d, got, want)
		}
	}
}

// TestHistogramEmpty holds "the zero Histogram is empty", "an empty histogram answers 0".
func TestHistogramEmpty(t *testing.T) {
	t.Parallel()
	var h Histogram
	for range h.Buckets() {
		t.Error("it has a bucket")
	}
	if h.Count() != 0 || h.Sum() != 0 || h.Quantile(0) != 0 || h.Quantile(0.5) != 0 || h.Quantile(1) != 0 {
		t.Errorf("count %d, median %v", h.Count(), h.Quantile(0.5))
	}
}

// durations draws some as a program has them: of any magnitude.
func durations() *rapid.Generator[[]time.Duration] {
	one := rapid.Custom(func(t *rapid.T) time.Duration {
		width := rapid.IntRange(0, histogramUnitBits+histogramOctaves).Draw(t, "bits")
		return time.Duration(rapid.Int64Range(0, 1<<width-1).Draw(t, "ns"))
	})
	return rapid.SliceOfN(one, 1, 200)
}

// TestHistogramQuantile compares with the sorted durations: "a duration that at least the part q of all do
// not exceed: the end of the bucket in which it lies".
func TestHistogramQuantile(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := durations().Draw(t, "durations")
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		var r recorder
		for _, d := range all {
			r.record(d)
		}
		h := r.snapshot()
		slices.Sort(all)
		for _, q := range []float64{q, 0, 0.5, 0.99, 1} {
			rank := max(int(math.Ceil(q*float64(len(all)))), 1)
			exact := all[rank-1]
			got := h.Quantile(q)
			if got <= exact || got > exact+max(exact/8, histogramUnit)+1 {
				t.Errorf("the quantile %v is %v, exactly it is %v", q, got, exact)
			}
			below := 0
			for _, d := range all {
				if d <= got {
					below++
				}
			}
			if float64(below) < q*float64(len(all)) {
				t.Errorf("%d of %d do not exceed %v, the quantile %v", below, len(all), got, q)
			}
		}
	})
}

// TestHistogramWalk: Buckets tells all there is, from the shortest, and may be left early.
func TestHistogramWalk(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := durations().Draw(t, "durations")
		var r recorder
		want := map[time.Duration]uint64{}
		for _, d := range all {
			r.record(d)
			want[bucketEnd(bucketOf(d))]++
		}
		h := r.snapshot()
		last, total := time.Duration(0), uint64(0)
		for end, n := range h.Buckets() {
			if end <= last || want[end] != n {
				t.Errorf("%d up to %v after %v, want %d", n, end, last, want[end])
			}
			last, total = end, total+n
		}
		if total != uint64(len(all)) || h.Count() != total {
			t.Errorf("%d in the buckets, Count is %d, want %d", total, h.Count(), len(all))
		}
		for range h.Buckets() {
			break
		}
	})
}

// TestHistogramSum holds "all durations together, to the nanosecond; one below zero counts as zero".
func TestHistogramSum(t *testing.T) {
	t.Parallel()
	var r recorder
	for _, d := range []time.Duration{3, -5, 2 * time.Second, longest, 0} {
		r.record(d)
	}
	h := r.snapshot()
	if want := 2*time.Second + longest + 3; h.Sum() != want || h.Count() != 5 {
		t.Errorf("%v of %d, want %v of 5", h.Sum(), h.Count(), want)
	}
}

// TestRecorderAnyGoroutine takes snapshots while durations are recorded.
func TestRecorderAnyGoroutine(t *testing.T) {
	t.Parallel()
	var r recorder
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 10_000 {
			r.record(time.Duration(1) << (i % bits.UintSize >> 1))
		}
	})
	for last := uint64(0); last < 10_000; {
		h := r.snapshot()
		n := h.Count()
		if n < last || n > 10_000 {
			t.Fatalf("%d after %d", n, last)
		}
		last = n
	}
	wg.Wait()
}
